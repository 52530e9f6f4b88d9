"""Counting exactly from any number of threads, without a lock on the way in; and starting clean after a fork."""

from __future__ import annotations

import os
from itertools import count
from threading import RLock
from typing import Protocol, final
from weakref import WeakSet

__all__ = ["FirstAttempts", "birth", "reading", "reset_in_child"]


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


@final
class FirstAttempts:
    """First attempts, counted by ticks of their own (``ticks``) or by breakers, whose one tick is enough for both.

    A breaker ticks further attempts too. One is told by :meth:`again` before it asks to be let in, and taken back by
    :meth:`not_made` where it is not: so at no moment are there more calls here than were made.
    """

    __slots__ = ("_again", "_breakers", "_not_made", "ticks")

    def __init__(self) -> None:
        self.ticks, self._again, self._not_made = count(), count(), count()
        self._breakers: tuple[tuple[count[int], int], ...] = ()  # ticks, and from where on

    def count_by(self, started: count[int]) -> None:
        """Count what a breaker lets through from here on."""
        with birth():
            if not any(started is known for known, _ in self._breakers):
                self._breakers = (*self._breakers, (started, reading(started)))

    def again(self) -> None:
        """A further attempt is about to ask a breaker that counts."""
        next(self._again)

    def not_made(self) -> None:
        """It was not let in."""
        next(self._not_made)

    @property
    def number(self) -> int:
        """How many there were; for a moment fewer, never more."""
        number = reading(self.ticks) + reading(self._not_made)
        number += sum(reading(started) - before for started, before in self._breakers)
        return number - reading(self._again)


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
