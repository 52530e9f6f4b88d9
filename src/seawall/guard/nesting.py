"""Loops within loops: three attempts of three attempts are nine calls to a target that is down.

Whether a call stands in a loop of the same target is read off the stack, once it has failed: each guard that repeats has
registered its code. Keeping a list of the loops a task stands in would cost every call that goes well two steps of a
context variable, which is more than all the policies cost together.
"""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from ..policies.retry import Retry

__all__ = ["loops_around", "repeats"]

_names: WeakKeyDictionary[CodeType, str] = WeakKeyDictionary()


def repeats(code: CodeType, name: str) -> None:
    """Each call of ``code`` is one loop; the policies are in its variable ``name``."""
    _names[code] = name


def loops_around() -> list[Retry]:
    """The loops in which the present one stands, in this thread or task; the nearest first."""
    found: list[Retry] = []
    frame: FrameType | None = sys._getframe(1)
    own = True
    while frame is not None:
        name = _names.get(frame.f_code)
        if name is not None:
            # Not of the own one: its locals, once looked at, would hold the error, whose traceback holds the frame.
            retry = None if own else frame.f_locals[name].retry
            own = False
            if retry is not None:
                found.append(retry)
        frame = frame.f_back
    return found
