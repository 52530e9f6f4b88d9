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

__all__ = ["loop_around", "repeats"]

_names: WeakKeyDictionary[CodeType, str] = WeakKeyDictionary()


def repeats(code: CodeType, name: str) -> None:
    """Each call of ``code`` is one loop; the policies are in its variable ``name``."""
    _names[code] = name


def loop_around(retry: Retry) -> Retry | None:
    """The loop for the same target in which the present loop of ``retry`` stands, in this thread or task.

    The same target: the same :class:`~seawall.Retry`, or one of the same name.
    """
    frame: FrameType | None = sys._getframe(1)
    own = True
    while frame is not None:
        name = _names.get(frame.f_code)
        if name is not None:
            if not own:
                other: Retry | None = frame.f_locals[name].retry
                if other is not None and (other is retry or (retry.name and retry.name == other.name)):
                    return other
            own = False
        frame = frame.f_back
    return None
