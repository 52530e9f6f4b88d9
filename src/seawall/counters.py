"""Counting exactly from any number of threads, without a lock on the way in; and starting clean after a fork."""

from __future__ import annotations

import os
from itertools import count
from typing import Protocol
from weakref import WeakSet

__all__ = ["Tally", "reset_in_child"]

class Tally:
    """A counter that one atomic step raises and that is exact to read at any moment.

    Raise it with ``next(tally.ticks)``: one C call under the GIL, a compare-and-swap on free-threaded builds since 3.13.
    Reading it by ``next`` would use up a number, so its text is read, ``count(n)``: that takes no lock (a signal handler
    or a finalizer may ask at any moment) and changes nothing.
    """

    __slots__ = ("ticks",)

    def __init__(self) -> None:
        self.ticks = count()

    @property
    def value(self) -> int:
        """How often it was raised."""
        return int(repr(self.ticks)[len("count(") : -1])


class _Resettable(Protocol):
    def _after_fork(self) -> None: ...


_policies: WeakSet[_Resettable] = WeakSet()


def reset_in_child(policy: _Resettable) -> None:
    """Have ``policy._after_fork()`` called in each child: the threads that held its lock or its slots are not there."""
    _policies.add(policy)


def _after_fork() -> None:
    for policy in list(_policies):
        policy._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
