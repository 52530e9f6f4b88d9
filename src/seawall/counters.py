"""Counting exactly from any number of threads, without a lock on the way in; and starting clean after a fork."""

from __future__ import annotations

import os
from itertools import count
from threading import RLock
from typing import Protocol
from weakref import WeakSet

__all__ = ["birth", "reading", "reset_in_child"]


def reading(ticks: count[int]) -> int:
    """How often ``next(ticks)`` was called: ``itertools.count()`` is a counter that one atomic step raises.

    ``next`` on it is one C call under the GIL, a compare-and-swap on free-threaded builds since 3.13. Reading it by
    ``next`` would use up a number, so its text is read, ``count(n)``: that takes no lock (a signal handler or a finalizer
    may ask at any moment) and changes nothing.
    """
    return int(repr(ticks)[len("count(") : -1])


_birth = RLock()  # re-entrant: the collector may close a coroutine in those lines, which settles with another policy


def birth() -> RLock:
    """The lock under which a policy makes what it needs from its first trouble on, its own lock among it."""
    return _birth


class _Resettable(Protocol):
    def _after_fork(self) -> None: ...


_policies: WeakSet[_Resettable] = WeakSet()


def reset_in_child(policy: _Resettable) -> None:
    """Have ``policy._after_fork()`` called in each child: the threads that held its lock or its slots are not there."""
    _policies.add(policy)


def _after_fork() -> None:
    global _birth
    _birth = RLock()
    for policy in list(_policies):
        policy._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
