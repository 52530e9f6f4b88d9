"""How the command line speaks: ``error: what (why)``, ``hint: what to do``, and the exit codes. Knows nothing of click."""

from __future__ import annotations

import errno
import sys

__all__ = [
    "BROKEN_PIPE",
    "DONE",
    "FAULT",
    "INTERRUPTED",
    "NO",
    "REFUSED",
    "SPENT",
    "UNAVAILABLE",
    "USAGE",
    "Stop",
    "error",
    "hint",
    "is_of_output",
    "line",
    "warning",
]

DONE = 0
NO = 1
"""Checked, and the answer is no."""
USAGE = 2
"""A usage fault or an invalid file."""
UNAVAILABLE = 69
"""The target, or the port to listen on, cannot be had; ``EX_UNAVAILABLE`` of sysexits.h."""
FAULT = 70
"""A fault of Seawall itself; ``EX_SOFTWARE``."""
REFUSED = 75
"""Refused locally, worth trying later; ``EX_TEMPFAIL``."""
SPENT = 124
"""The budget is spent; as timeout(1)."""
INTERRUPTED = 130
BROKEN_PIPE = 141
"""Whoever read our output has gone; 128 + SIGPIPE, as a shell reports it."""

# A full disk, a full quota, the longest file there may be; nothing to write to.
_UNWRITABLE = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EFBIG, errno.EBADF)


class Stop(Exception):
    """The command cannot go on: :func:`~seawall.cli.main.main` says why and ends with ``code``.

    Args:
        what: What happened, one line or several.
        why: The reason, in parentheses behind it.
        hint: What to do.
        code: The exit code.
    """

    def __init__(self, what: str, why: str = "", hint: str = "", code: int = USAGE) -> None:
        super().__init__(what, why, hint, code)
        self.what = what
        self.why = why
        self.hint = hint
        self.code = code


def line(text: str) -> None:
    """Print a line of result to standard output, at once: whoever waits for it may be a program."""
    print(text, flush=True)


def is_of_output(fault: OSError) -> bool:
    """Whether ``fault`` came from writing to standard output; files and logs are met where they are written.

    By its number, for nothing else tells: once it has failed, a flush says that all is well.
    """
    return fault.errno in _UNWRITABLE


def error(what: str, why: str = "") -> None:
    """Say on standard error what happened: ``error: what (why)``; of several lines each is an error of its own."""
    first, *rest = what.splitlines() or [""]
    _complain(f"error: {first}" + (f" ({why})" if why else ""))
    for one in rest:
        _complain(f"error: {one}")


def hint(text: str) -> None:
    """Say on standard error what to do."""
    _complain(f"hint: {text}")


def warning(text: str) -> None:
    """Say on standard error what is allowed and yet probably not meant."""
    _complain(f"warning: {text}")


def _complain(text: str) -> None:
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        pass  # nobody reads it: the exit code still tells
