"""Finds what a test left running: threads that keep a process alive, and child processes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

# Python's own helpers for multiprocessing live until the interpreter ends, by design.
HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")


def threads() -> set[threading.Thread]:
    """The threads, daemons aside, that would keep this process from ending."""
    return {thread for thread in threading.enumerate() if not thread.daemon}


def _has_children() -> bool:
    """Ask without reaping anyone; where the system cannot answer (no ``waitid``), assume there are none."""
    if not hasattr(os, "waitid"):
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()


def children() -> dict[int, str]:
    """Child processes of this one, by id, with their command line (empty for one that ended and was not waited for).

    One system call while there are none, so that every test can afford it; names need ``/proc``.
    """
    found: dict[int, str] = {}
    if not _has_children():
        return found
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])    # a command's name may hold blanks and ")"
            pid = int(stat.parent.name)
            if parent == os.getpid() and not any(helper in (command := _command(pid)) for helper in HELPERS):
                found[pid] = command
        except OSError:     # it ended while we looked
            continue
    return found


def settled(left: Callable[[], list[str]], grace: float = 2.0) -> list[str]:
    """What is still left after a moment: a thread that is told to stop, or a killed child, takes a few milliseconds."""
    end = time.monotonic() + grace
    while (names := left()) and time.monotonic() < end:
        time.sleep(0.01)
    return names
