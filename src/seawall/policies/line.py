"""The machine inside a bulkhead: free slots, and the line of those who wait for one. Every ``_locked`` expects the lock.

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

A ``KeyboardInterrupt`` may fall on any call in here. Therefore slot, owner and ``granted`` change in steps with no call
between them, the head leaves the line only after it has its slot, and whoever comes by pumps first: that makes good what
an interrupted one has left undone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import RLock

from ..errors import BulkheadFullError
from .slots import FRESH, USED, BulkheadSettings, Slots, Ticket


class Line:
    """Slots and line. ``free`` and ``alert`` are what the hot path looks at, without the lock."""

    __slots__ = (
        "_base_peak", "_handed_at", "_interval", "_line", "_lock", "_owed", "_total", "admitted_waiters", "alert", "clock",
        "free", "name", "rejected", "settings",
    )  # fmt: skip

    def __init__(self, settings: BulkheadSettings, clock: Callable[[], float], name: str) -> None:
        self.settings, self.clock, self.name = settings, clock, name
        self.rejected = self.admitted_waiters = 0
        self._base_peak = 0
        self._set_up()

    def _set_up(self) -> None:
        self._lock = RLock()
        self._total = self.settings.max_concurrent  # slots in existence, free or out
        self.free: Slots = [FRESH] * self._total
        self.alert: list[None] = []
        self._line: OrderedDict[Ticket, None] = OrderedDict()  # leaving from anywhere costs O(1)
        self._owed = 0
        self._interval: float | None = None  # seconds between hand-overs, smoothed
        self._handed_at = 0.0

    # -- joining, getting a slot, leaving
    def join(self, ticket: Ticket) -> bool:
        """Stand in line with ``ticket``. Returns whether it has got its slot already; ``ticket.wake`` tells of it later.

        Whatever is raised in here or while waiting has to lead to :meth:`withdraw`.

        Raises:
            BulkheadFullError: The line is full too, or too slow for the ticket's budget.
        """
        if self.alert:
            self.pump()
        now = self.clock() if self.settings.max_queue != 0 else 0.0  # before the lock: a clock is the user's code
        with self._lock:
            if self.alert or not self._give_locked(ticket):
                self._line_up_locked(ticket, now)
        self.pump()  # only now is the ticket seen by those who give back
        return ticket.granted

    def claim(self, ticket: Ticket, waited: float | None) -> None:
        """The waiter is awake: it has its slot, or leaves the line with :class:`~seawall.BulkheadFullError`."""
        self.pump()
        with self._lock:
            self._leave_locked(ticket)
            if ticket.granted:
                return
            self.rejected += 1
        raise BulkheadFullError(self.name, f"had no place free within {max(0.0, waited or 0.0):.3g} s", "", None)

    def withdraw(self, ticket: Ticket) -> None:
        """The waiter is gone (cancelled, interrupted, its loop closed). A place granted meanwhile goes to the next."""
        self._take_back(ticket)
        if self.alert:
            self.pump()

    def pump(self) -> None:
        """Pay what is owed, then hand free slots to the head of the line. One wake-up a slot, outside the lock."""
        now = self.clock() if self._line else None
        while (ticket := self._grant(now)) is not None:
            wake = ticket.wake
            if wake is not None:
                try:
                    wake()
                except RuntimeError:  # its event loop is closed
                    self._take_back(ticket)

    # -- who may stand in line
    def _line_up_locked(self, ticket: Ticket, now: float) -> None:
        waiting = len(self._line)
        refusal = self._refusal(waiting, ticket.budget)
        if refusal is not None:
            ticket.left = True
            self.rejected += 1
            raise refusal
        if not waiting:
            self._handed_at = now
        self.admitted_waiters += 1
        self._line[ticket] = None
        self._alert_locked()

    def _refusal(self, waiting: int, budget: float | None) -> BulkheadFullError | None:
        room = self.settings.max_queue
        if room is not None and waiting >= room:
            line = f" and {waiting} waiting" if waiting else ""
            reason = f"is full: {self._total} call{'s' if self._total > 1 else ''} running{line}"
            return BulkheadFullError(self.name, reason, "", None)
        if budget is not None and budget <= 0.0:
            return BulkheadFullError(self.name, "is full, and no time is left to wait", "", None)
        estimate = (waiting + 1) * (self._interval or 0.0)
        # The first in line is never refused: were it, an old estimate would keep the line empty, and itself, for ever.
        if budget is not None and waiting and estimate > budget:
            reason = f"has {waiting} waiting: about {estimate:.3g} s, and {budget:.3g} s are left"
            return BulkheadFullError(self.name, reason, "", estimate)
        return None

    def _note_locked(self, now: float) -> None:
        """Keep the smoothed interval between hand-overs; the first of a busy period counts from the joining."""
        gap = max(0.0, now - self._handed_at)
        self._interval = gap if self._interval is None else self._interval + (gap - self._interval) / 8
        self._handed_at = now

    # -- slots from hand to hand
    def _give_locked(self, ticket: Ticket) -> bool:
        free = self.free
        if ticket.granted or ticket.left:  # the collector was here since we looked
            return False
        try:
            del free[-1]
            ticket.holder.held = free
            ticket.granted = True
        except IndexError:
            return False
        return True

    def _take_back(self, ticket: Ticket) -> None:
        with self._lock:
            self._leave_locked(ticket)
            free, ticket.holder.held = ticket.holder.held, None
            if free is not None:
                free.append(USED)

    def _grant(self, now: float | None) -> Ticket | None:
        with self._lock:
            self._pay_locked()
            ticket = None if self._owed else self._next_locked()
            if ticket is not None and now is not None:
                self._note_locked(now)
            self._alert_locked()
            return ticket

    def _head_locked(self) -> Ticket | None:
        for ticket in self._line:  # unlike next(iter(...)) no call, at which the collector could change the line
            return ticket
        return None

    def _next_locked(self) -> Ticket | None:
        while (ticket := self._head_locked()) is not None:
            got = ticket.granted or self._give_locked(ticket)
            if got and self._line.pop(ticket, False) is None:
                return ticket
            if not self.free:  # a newcomer, who had not seen the line yet, was faster
                return None
        return None

    def _leave_locked(self, ticket: Ticket) -> None:
        ticket.left = True
        self._line.pop(ticket, None)
        self._alert_locked()

    def _alert_locked(self) -> None:
        if not (self._line or self._owed):
            self.alert.clear()
        elif not self.alert:
            self.alert.append(None)

    # -- another limit
    def _resize_locked(self, settings: BulkheadSettings) -> None:
        self.alert.append(None)  # first: should this be interrupted, whoever comes by next pays what is owed
        self._base_peak = max(self._base_peak, self._total - self.free.count(FRESH))
        more = settings.max_concurrent - self.settings.max_concurrent
        made, less = max(more, 0), max(-more, 0)
        self.settings = settings
        self._owed += less
        self._total += made
        self.free[:0] = [FRESH] * made  # at the bottom, where the fresh ones are
        self._pay_locked()  # out of the new ones too
        self._alert_locked()

    def _pay_locked(self) -> None:
        try:
            while self._owed:
                del self.free[-1]
                self._owed -= 1
                self._total -= 1
        except IndexError:
            pass
