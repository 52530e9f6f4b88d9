"""Runs a function in a forked child of this very process, threads and held locks as they are."""

from __future__ import annotations

import os
import select
import signal
import sys
import traceback
from collections.abc import Callable


def in_forked_child(act: Callable[[], object], seconds: float = 30.0) -> None:
    """``act()`` in a child; what it raises is shown, and is an ``AssertionError`` here. So is a child that hangs."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        said = "child: "
        try:
            act()
            said = "well"
        except BaseException:
            said += traceback.format_exc()
        finally:
            os.write(writer, said.encode())
            sys.stdout = sys.stderr = None  # the parent's, and not ours to flush
            os._exit(0)
    os.close(writer)
    try:
        ready, _, _ = select.select([reader], [], [], seconds)
        said = os.read(reader, 65536).decode() if ready else "the child hangs"
    finally:
        os.close(reader)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert said == "well", said
