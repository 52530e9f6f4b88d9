"""Is there room? At most so many calls at once, over threads and any number of event loops together.

Theory of operation. ``free`` is a list of free slots, used as a stack. ``del free[-1]`` takes one and ``append`` gives
it back, each one atomic step: with the GIL because a list operation on plain objects runs no Python code inside, without
it because each takes the list's own lock. And ``del`` is no call, so no signal can fall between the taking and the next
assignment, which is where a slot would get lost to a ``KeyboardInterrupt``.

A slot that has never been taken is ``FRESH``, one that comes back is ``USED``. Taking from the top leaves the fresh ones
at the bottom until all used ones are out, so the number of fresh ones tells the peak, for nothing.

``alert`` is a list that is not empty while anybody waits: the one question of the hot path. Who gives back pushes,
*then* looks at ``alert``; who waits joins the line and raises ``alert``, *then* looks at ``free``. One of the two sees the
other, whichever comes first: no wake-up is lost. A newcomer that sees a line joins it: first come, first served.

A lowered limit that finds too few free slots leaves a debt: so many slots vanish as they come back. ``alert`` is raised
while anything is owed, too.

The lock is re-entrant for one reason: an abandoned coroutine is closed by the garbage collector, which may run inside
our own locked lines, on the same thread, and the closing coroutine withdraws its ticket.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from threading import RLock

from ..counters import Tally, reset_in_child
from ..drivers import aio, threads
from ..errors import BulkheadFullError
from ..guard import Guarded
from .slots import FRESH, USED, BulkheadSettings, BulkheadSnapshot, ByHand, Holder, Slots, Ticket

__all__ = ["Bulkhead"]


class Bulkhead(Guarded):
    """At most ``max_concurrent`` calls run at once; past it a call waits in a bounded line or is refused at once.

    One bulkhead is one limit, whoever uses it: decorated functions, threads, several event loops.

    Args:
        max_concurrent: Calls at once, 1 or more. The default of 10 at 50 ms a call lets 200 calls a second through.
        max_queue: Calls waiting in line. 0, the default, refuses at once: a line in front of a slow target only moves
            the pile-up. ``None`` is unbounded, and only for work that nobody waits for.
        max_wait: Seconds a call may wait in line (10.0). ``None``, without end, must be written to be had.
        clock: Seconds that never go back. Used for the estimate of the wait, never while there is room.
        name: In errors and snapshots.

    Cost: room free, one list operation to enter and one to leave. Source: Nygard, Release It!, 2nd ed., ch. 5.
    """

    __slots__ = (
        "__weakref__", "_base_peak", "_by_hand", "_handed_at", "_interval", "_line", "_lock", "_owed", "_started", "_total",
        "admitted_waiters", "alert", "clock", "free", "name", "rejected", "settings", "started_ticks",
    )  # fmt: skip

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
        self.settings = BulkheadSettings(max_concurrent, max_queue, max_wait).checked()
        self.name, self.clock = name, clock
        self.rejected = 0
        self.admitted_waiters = 0
        self._started = Tally()
        self.started_ticks = self._started.ticks
        self._base_peak = 0
        self._set_up()
        reset_in_child(self)

    def _set_up(self) -> None:
        self._total = self.settings.max_concurrent  # slots in existence, free or out
        self.free: Slots = [FRESH] * self._total
        self.alert: list[None] = []
        self._line: OrderedDict[Ticket, None] = OrderedDict()  # leaving from anywhere costs O(1)
        self._owed = 0
        self._by_hand = 0
        self._interval: float | None = None  # seconds between hand-overs, smoothed
        self._handed_at: float | None = None
        self._lock = RLock()

    def _after_fork(self) -> None:
        self._base_peak = self.peak_active
        self.started_ticks = self._started.ticks
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
        return self._started.value

    @property
    def in_flight(self) -> int:
        """Calls running now."""
        return max(0, self._total - len(self.free))

    @property
    def waiting(self) -> int:
        """Calls standing in line now."""
        return len(self._line)

    @property
    def completed(self) -> int:
        """Calls that ended after having run, however they ended."""
        return max(0, self._started.value - self.in_flight)

    @property
    def peak_active(self) -> int:
        """The highest ``in_flight`` there has been."""
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
        with self._lock:
            if self.alert or not self._take_locked():
                self.rejected += 1
                return False
            self._by_hand += 1
        next(self.started_ticks)
        return True

    def acquire(self, timeout: float | None = None) -> None:
        """Take a place, waiting in line for it if the settings allow.

        Args:
            timeout: Seconds the caller is willing to wait; ``max_wait`` holds as well.

        Raises:
            BulkheadFullError: No place and no room in line, or none in time.
            RuntimeError: It would have to wait on a thread whose event loop is running.
        """
        hand = ByHand()
        ticket = self.enter(hand, timeout)
        if ticket is not None:
            threads.wait_in_line(self, ticket, self.patience(timeout))
        self._keep(hand)

    async def aacquire(self, timeout: float | None = None) -> None:
        """:meth:`acquire` for a coroutine: waits without blocking the event loop."""
        hand = ByHand()
        ticket = self.enter(hand, timeout)
        if ticket is not None:
            await aio.wait_in_line(self, ticket, self.patience(timeout))
        self._keep(hand)

    def release(self) -> None:
        """Give back a place taken by hand.

        Raises:
            ValueError: More releases than places taken by hand.
        """
        with self._lock:
            if not self._by_hand:
                raise ValueError(f"{self.name or 'bulkhead'}: released more often than acquired")
            self._by_hand -= 1
            self.free.append(USED)
        if self.alert:
            self.pump()

    def _keep(self, hand: ByHand) -> None:
        with self._lock:
            hand.held = None
            self._by_hand += 1
        next(self.started_ticks)

    # -- one call's way, for guard and hub: they give a slot back by ``held.append(USED)``, then ``pump()`` if ``alert``
    def enter(self, holder: Holder, budget: float | None = None) -> Ticket | None:
        """Put a slot into ``holder.held`` and return ``None``, or return a ticket to wait with.

        Args:
            holder: Owns the slot from here on.
            budget: Seconds the caller can wait at most; a line that is estimated to last longer is not joined.

        Raises:
            BulkheadFullError: The line is full too, or too slow for ``budget``.
        """
        if not self.alert:
            free = self.free
            try:
                del free[-1]
                holder.held = free  # no call between the two: see above
                return None
            except IndexError:
                pass
        return self._join(holder, budget)

    def claim(self, ticket: Ticket, waited: float | None) -> None:
        """The waiter is awake: it has its slot, or leaves the line with :class:`~seawall.BulkheadFullError`."""
        self.pump()  # a giver interrupted between its push and its look at the line is made good here
        with self._lock:
            if ticket.granted:
                ticket.left = True
                return
            self._leave_locked(ticket)
            self.rejected += 1
        raise BulkheadFullError(self.name, f"had no place free within {waited or 0:.3g} s", "", None)

    def withdraw(self, ticket: Ticket) -> None:
        """The waiter is gone (cancelled, interrupted, its loop closed). A place granted meanwhile goes to the next."""
        with self._lock:
            self._leave_locked(ticket)
            free, ticket.holder.held = ticket.holder.held, None
            if free is not None:
                free.append(USED)
        if self.alert:
            self.pump()

    def patience(self, budget: float | None) -> float | None:
        """Seconds to wait in line at most: the smaller of ``budget`` and ``max_wait``."""
        longest = self.settings.max_wait
        return budget if longest is None else longest if budget is None else min(budget, longest)

    def pump(self) -> None:
        """Pay what is owed, then hand free slots to the head of the line. One wake-up a slot, outside the lock."""
        now = self.clock() if self._line else None  # before the lock: a clock is the user's code
        while (ticket := self._grant(now)) is not None:
            wake = ticket.wake
            if wake is not None:
                try:
                    wake()
                except RuntimeError:  # its event loop is closed
                    self.withdraw(ticket)

    def configure(self, settings: BulkheadSettings) -> None:
        """Change the numbers in place. With a lower limit running calls finish; nobody new enters until they have."""
        settings.checked()
        with self._lock:
            self._base_peak = self.peak_active
            more = settings.max_concurrent - self.settings.max_concurrent
            self.settings = settings
            forgiven = min(max(more, 0), self._owed)
            self._owed += max(-more, 0) - forgiven
            self._total += max(more, 0) - forgiven
            self.free[:0] = [FRESH] * (max(more, 0) - forgiven)  # at the bottom, where the fresh ones are
            self._alert_locked()
        self.pump()

    # -- inside
    def _join(self, holder: Holder, budget: float | None) -> Ticket:
        ticket = Ticket(holder)
        with self._lock:
            waiting, room = len(self._line), self.settings.max_queue
            if self.alert or not self._give_locked(ticket):
                if room is not None and waiting >= room:
                    self.rejected += 1
                    raise BulkheadFullError(self.name, self._full(waiting), "", None)
                estimate = (waiting + 1) * (self._interval or 0.0)
                if budget is not None and estimate > budget:
                    self.rejected += 1
                    reason = f"has {waiting} waiting: about {estimate:.3g} s, and {budget:.3g} s are left"
                    raise BulkheadFullError(self.name, reason, "", estimate)
                self.admitted_waiters += 1
                self._line[ticket] = None
                self._alert_locked()
        self.pump()
        return ticket

    def _full(self, waiting: int) -> str:
        line = f" and {waiting} waiting" if self.settings.max_queue else ""
        return f"is full: {self.settings.max_concurrent} calls running{line}"

    def _take_locked(self) -> bool:
        try:
            del self.free[-1]
        except IndexError:
            return False
        return True

    def _give_locked(self, ticket: Ticket) -> bool:
        free = self.free
        try:
            del free[-1]
            ticket.holder.held = free
        except IndexError:
            return False
        ticket.granted = True
        return True

    def _grant(self, now: float | None) -> Ticket | None:
        with self._lock:
            while self._owed and self._take_locked():
                self._owed -= 1
                self._total -= 1
            ticket = None if self._owed else self._next_locked()
            if ticket is not None:
                self._note_locked(now)
            self._alert_locked()
            return ticket

    def _next_locked(self) -> Ticket | None:
        while self.free:
            try:
                ticket, _ = self._line.popitem(last=False)
            except KeyError:  # nobody, or the collector has just withdrawn the last one
                return None
            if self._give_locked(ticket):
                return ticket
            self._line[ticket] = None  # a newcomer, who had not seen the line yet, was faster
            self._line.move_to_end(ticket, last=False)
        return None

    def _note_locked(self, now: float | None) -> None:
        """Keep the smoothed interval between hand-overs, from within one busy period only."""
        if now is not None:
            if self._handed_at is not None:
                gap = max(0.0, now - self._handed_at)
                self._interval = gap if self._interval is None else self._interval + (gap - self._interval) / 8
            self._handed_at = now if self._line else None

    def _leave_locked(self, ticket: Ticket) -> None:
        ticket.left = True
        self._line.pop(ticket, None)
        self._alert_locked()

    def _alert_locked(self) -> None:
        if not (self._line or self._owed):
            self.alert.clear()
        elif not self.alert:
            self.alert.append(None)
