"""Is there room? At most so many calls at once, over threads and any number of event loops together."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count

from ..counters import reading, reset_in_child
from ..deadline import remaining, used
from ..drivers import aio, threads
from ..guard import Guarded
from .line import Line
from .slots import FRESH, USED, BulkheadSettings, BulkheadSnapshot, ByHand, Holder, Ticket

__all__ = ["Bulkhead"]


class Bulkhead(Line, Guarded):
    """At most ``max_concurrent`` calls run at once; past it a call waits in a bounded line or is refused at once.

    One bulkhead is one limit, whoever uses it: decorated functions, threads, several event loops.

    Args:
        max_concurrent: Calls at once, 1 or more. The default of 10 at 50 ms a call lets 200 calls a second through.
        max_queue: Calls waiting in line. 0, the default, refuses at once: a line in front of a slow target only moves
            the pile-up. ``None`` is unbounded, and only for work that nobody waits for.
        max_wait: Seconds a call may wait in line (10.0). ``None``, without end, must be written to be had.
        clock: Seconds that never go back. Used for the estimate of the wait, never while there is room. The waiting
            itself is done in real seconds.
        name: In errors and snapshots.

    Cost: room free, one list operation to enter and one to leave. Source: Nygard, Release It!, 2nd ed., ch. 5.
    """

    __slots__ = ("__weakref__", "_completed", "_gone", "_hands", "started_ticks")

    def __init__(
        self,
        max_concurrent: int = 10,
        *,
        max_queue: int | None = 0,
        max_wait: float | None = 10.0,
        clock: Callable[[], float] = time.monotonic,
        name: str = "",
    ) -> None:
        if callable(max_concurrent):
            raise TypeError("a bulkhead takes numbers, not the function: write  limit = Bulkhead(10)  and then  @limit")
        super().__init__(BulkheadSettings(max_concurrent, max_queue, max_wait).checked(), clock, name)
        self.started_ticks = count()
        self._hands: list[None] = []  # an element for each place taken by hand
        self._completed = 0  # the most seen so far
        self._gone = 0  # calls that were running in a parent when it forked
        reset_in_child(self)

    def _after_fork(self) -> None:
        """In the child nobody holds the lock or a slot. What is out goes back to the list it came from, which is gone."""
        gone, peak = self._total - len(self.free), self._total - self.free.count(FRESH)
        self._gone, self._base_peak = self._gone + gone, max(self._base_peak, peak)
        self._hands = []
        self._set_up()

    # -- what the guard asks for
    @property
    def breaker(self) -> None:
        """A bulkhead by itself has no breaker."""
        return None

    @property
    def bulkhead(self) -> Bulkhead:
        """Itself: what the guard goes through."""
        return self

    # -- numbers: reading changes nothing
    @property
    def max_concurrent(self) -> int:
        """Calls at once."""
        return self.settings.max_concurrent

    @property
    def started(self) -> int:
        """Calls that got a place and ran."""
        return reading(self.started_ticks)

    @property
    def in_flight(self) -> int:
        """Calls running now."""
        with self._lock:
            return self._total - len(self.free)

    @property
    def waiting(self) -> int:
        """Calls standing in line now."""
        return len(self._line)

    @property
    def completed(self) -> int:
        """Calls that ended after having run, however they ended."""
        with self._lock:  # a call between its slot and its start would let the difference step back for a moment
            self._completed = max(self._completed, self.started - self._gone - self.in_flight)
            return self._completed

    @property
    def peak_active(self) -> int:
        """The highest ``in_flight`` there has been."""
        with self._lock:
            return max(self._base_peak, self._total - self.free.count(FRESH))

    def snapshot(self) -> BulkheadSnapshot:
        """All numbers at once. Cost: O(max_concurrent), for the peak."""
        return BulkheadSnapshot(
            self.name, self.settings.max_concurrent, self.settings.max_queue, self.started, self.in_flight, self.waiting,
            self.completed, self.rejected, self.peak_active, self.admitted_waiters,
        )  # fmt: skip

    # -- by hand
    def try_acquire(self) -> bool:
        """Take a place if one is free and nobody waits; never waits. Give it back with :meth:`release`."""
        if self.alert:
            self.pump()
        if self._take_by_hand():
            return True
        with self._lock:
            self.rejected += 1
        return False

    def acquire(self, timeout: float | None = None) -> None:
        """Take a place, waiting in line for it if the settings allow.

        As with any lock, a ``KeyboardInterrupt`` between this call and the ``try`` that releases loses the place:
        decorated functions do not have that gap.

        Args:
            timeout: Seconds the caller is willing to wait; ``max_wait``, and the budget in force, hold as well.

        Raises:
            BulkheadFullError: No place and no room in line, or none in time.
            RuntimeError: It would have to wait on a thread whose event loop is running.
        """
        if not self._take_by_hand():
            timeout = remaining(timeout) if used else timeout
            hand = ByHand()
            ticket = self.take(hand, timeout)
            if ticket is not None:
                threads.wait_in_line(self, ticket, self.patience(timeout))
            self._keep(hand)

    async def aacquire(self, timeout: float | None = None) -> None:
        """:meth:`acquire` for a coroutine: waits without blocking the event loop."""
        if not self._take_by_hand():
            timeout = remaining(timeout) if used else timeout
            hand = ByHand()
            ticket = self.take(hand, timeout)
            if ticket is not None:
                await aio.wait_in_line(self, ticket, self.patience(timeout))
            self._keep(hand)

    def release(self) -> None:
        """Give back a place taken by hand.

        Raises:
            ValueError: More releases than places taken by hand.
        """
        try:
            del self._hands[-1]  # no call between the two: see line.py
        except IndexError:
            raise ValueError(f"{self.name or 'bulkhead'}: released more often than acquired") from None
        self.free.append(USED)
        if self.alert:
            self.pump()

    def _take_by_hand(self) -> bool:
        if self.alert:
            return False
        free = self.free
        try:
            del free[-1]
        except IndexError:
            return False
        self._hands.append(None)
        next(self.started_ticks)
        return True

    def _keep(self, hand: ByHand) -> None:
        hand.held = None
        self._hands.append(None)
        next(self.started_ticks)

    # -- one call's way, for guard and hub: they give a slot back by ``held.append(USED)``, then ``pump()`` if ``alert``
    def enter(self, holder: Holder, budget: float | None = None) -> Ticket | None:
        """:meth:`take`, and then :meth:`join`: for an event loop's callback, which no signal interrupts half-way.

        Returns:
            ``None`` with a slot in ``holder.held``, or a ticket that stands in line, or that has its slot by now.

        Raises:
            BulkheadFullError: The line is full too, or too slow for ``budget``.
        """
        ticket = self.take(holder, budget)
        if ticket is not None:
            self.join(ticket)
        return ticket

    def take(self, holder: Holder, budget: float | None = None) -> Ticket | None:
        """Put a slot into ``holder.held`` and return ``None``, or return a ticket to :meth:`join` the line with.

        Args:
            holder: Owns the slot from here on.
            budget: Seconds the caller can wait at most; a line that is estimated to last longer is not joined.
        """
        if not self.alert:
            free = self.free
            try:
                del free[-1]
                holder.held = free  # no call between the two: see line.py
                return None
            except IndexError:
                pass
        return Ticket(holder, budget)

    def patience(self, budget: float | None) -> float | None:
        """Seconds to wait in line at most: the smaller of ``budget`` and ``max_wait``."""
        longest = self.settings.max_wait
        return budget if longest is None else longest if budget is None else min(budget, longest)

    def configure(self, settings: BulkheadSettings) -> None:
        """Change the numbers in place. With a lower limit running calls finish; nobody new enters until they have."""
        settings.checked()
        with self._lock:
            self._resize_locked(settings)
        self.pump()
