"""Counting exactly from any number of threads, without a lock on the way in; and starting clean after a fork."""

from __future__ import annotations

import os
from itertools import count
from threading import Lock
from typing import Protocol
from weakref import WeakSet

__all__ = ["Tally", "reset_in_child"]

_reading = Lock()


class Tally:
    """A counter that one atomic step raises and that is exact to read at any moment.

    Raise it with ``next(tally.ticks)``: one C call under the GIL, a compare-and-swap on free-threaded builds since 3.13.
    A read uses up a number too, so the reads are counted, under a lock among readers only, and taken off again: reading
    changes nothing that can be read.
    """

    __slots__ = ("_reads", "ticks")

    def __init__(self) -> None:
        self.ticks = count()
        self._reads = 0

    @property
    def value(self) -> int:
        """How often it was raised."""
        with _reading:
            seen = next(self.ticks) - self._reads
            self._reads += 1
            return seen


class _Resettable(Protocol):
    def _after_fork(self) -> None: ...


_policies: WeakSet[_Resettable] = WeakSet()


def reset_in_child(policy: _Resettable) -> None:
    """Have ``policy._after_fork()`` called in each child: the threads that held its lock or its slots are not there."""
    _policies.add(policy)


def _after_fork() -> None:
    global _reading
    _reading = Lock()
    for policy in list(_policies):
        policy._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
