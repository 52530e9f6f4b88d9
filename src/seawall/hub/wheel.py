"""The deadline wheel: many deadlines, one loop timer, no object for any of them.

Theory of operation
-------------------
Each connection or exchange *is* its own entry (:class:`Timed`): ``due`` is the moment it waits for, ``armed`` the
number of the slot it stands in. Slot ``n`` holds what falls due in ``[n, n + 1) * 10 ms`` and fires at its end, so
nothing fires early and nothing more than 10 ms late (plus what the loop itself is late).

Setting is lazy. A later ``due`` costs one comparison and leaves the entry where it stands; when that slot fires, an
entry whose ``due`` is still ahead moves to its new slot. An *earlier* ``due`` moves at once: a request with 100 ms
behind one with 3 s is cut after 100 ms, which one queue for all timers gets wrong. A connection that carries a
thousand short requests a second therefore moves once per allowance, not once per request.

The loop has a timer for the earliest slot only, found by a heap of slot numbers. Without entries there is no timer, so
an idle hub sleeps. Emptied slots stay until their time (one needless wake-up each): taking a number out of the middle
of a heap costs more, and there are never more slots than the longest allowance divided by 10 ms.

A loop that was held up (by other work, a busy machine, a sleeping one) judges nothing before it has read what came in
meanwhile: a timer that comes late lets the loop go round a few times first. An answer or a connection that was there in
time is then seen in time, and a pause of the hub does not count as a failure of every target at once.

Measured against it: a loop timer for each request adds a sixth to the cost of a relayed request.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Protocol

LATE = 0.01  # s after which a timer counts as late
TURNS = 4  # times round the loop that a connection takes from standing to being in use, and one for the poll before
RATE = 100
"""Slots per second. 10 ms is the promise made for a budget; finer slots only wake the loop more often."""

NOWHERE = 1 << 47
"""``armed`` of an entry that stands in no slot. Bigger than any slot, and below 2**48, up to which CPython compares a
float with an int on its fast path."""

_log = logging.getLogger("seawall.hub")


class OnWheel(Protocol):
    """What the wheel needs of an entry. Entries are told apart by identity and must be hashable."""

    due: float
    armed: int

    def on_due(self, now: float) -> None:
        """Act on the deadline; ``now`` is the loop's time."""


class Timed:
    """Base of what can stand on a wheel.

    Attributes:
        due: Loop time in seconds at which :meth:`on_due` is called; ``inf`` means never. Writing a *later* value (or
            ``inf``) straight to it is allowed and is all that finishing a request costs; an earlier one needs
            :meth:`Wheel.set`.
        armed: The slot it stands in, or ``NOWHERE``. Belongs to the wheel.
    """

    __slots__ = ("armed", "due")

    due: float
    armed: int

    def __init__(self) -> None:
        self.due = math.inf
        self.armed = NOWHERE

    def on_due(self, now: float) -> None:
        """Act on the deadline. ``due`` has been set back to ``inf``; it may be set again from here."""
        raise NotImplementedError


class Cancellable(Protocol):
    """A timer handle, as far as the wheel uses it."""

    def cancel(self) -> None:
        """Forget the timer."""


class Loop(Protocol):
    """An event loop, as far as the wheel uses it; tests give one whose time is set by hand."""

    def time(self) -> float:
        """Seconds, monotonic."""

    def call_at(self, when: float, callback: Callable[[], object], /) -> Cancellable:
        """Call back once at ``when``."""


class Wheel:
    """Calls ``on_due`` of its entries when their time has come. For one event loop, and its thread only."""

    __slots__ = ("_closed", "_expected", "_loop", "_numbers", "_slots", "_timer", "_timer_slot", "_turns")

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._slots: dict[int, dict[OnWheel, None]] = {}  # a dict for its order: equal dues fire as they were set
        self._numbers: list[int] = []  # heap of the keys of _slots
        self._timer: Cancellable | None = None
        self._timer_slot = NOWHERE
        self._expected = 0.0  # when the timer should fire
        self._turns = 0
        self._closed = False

    def __len__(self) -> int:
        """How many entries are held, those with nothing due included. Cost: one step a slot."""
        return sum(map(len, self._slots.values()))

    def set(self, timed: OnWheel, due: float) -> None:
        """Call ``timed.on_due`` at ``due``, in place of what was set before.

        Args:
            timed: The entry; it is held until it fires with nothing due, or is dropped.
            due: Loop time in seconds; in the past means as soon as the loop comes round; ``inf`` means never.

        Cost: one multiplication and one comparison unless ``due`` is earlier than the slot the entry stands in.
        """
        timed.due = due
        if due * RATE < timed.armed:  # then int(due * RATE), its slot, is lower too
            self._move(timed, int(due * RATE))

    def drop(self, timed: OnWheel) -> None:
        """Forget ``timed``: its ``due`` becomes ``inf`` and the wheel no longer holds it. Safe at any time."""
        timed.due = math.inf
        self._leave(timed)

    def close(self) -> None:
        """Drop every entry and the loop's timer. Later calls of :meth:`set` do nothing. Safe to repeat."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for slot in self._slots.values():
            for timed in slot:
                timed.due = math.inf
                timed.armed = NOWHERE
        self._slots.clear()
        self._numbers.clear()

    def _leave(self, timed: OnWheel) -> None:
        if timed.armed != NOWHERE:
            del self._slots[timed.armed][timed]
            timed.armed = NOWHERE

    def _move(self, timed: OnWheel, number: int) -> None:
        if self._closed:
            return
        self._leave(timed)
        timed.armed = number
        slot = self._slots.get(number)
        if slot is None:
            slot = self._slots[number] = {}
            heappush(self._numbers, number)
        slot[timed] = None
        if number < self._timer_slot:
            self._start_timer(number)

    def _start_timer(self, number: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_slot = number
        self._expected = max((number + 1) / RATE, self._loop.time())  # one set in the past is not late
        self._timer = self._loop.call_at(self._expected, self._fire)

    def _fire(self) -> None:
        now = self._loop.time()
        if self._turns < TURNS and now - self._expected > LATE:
            self._turns += 1
            self._timer = self._loop.call_at(now, self._fire)
            return
        self._turns = 0
        self._timer = None  # the slot stays noted till the end, so that what is set meanwhile asks for no timer
        ended = self._take_ended(now)
        ended.reverse()
        try:
            while ended and not self._closed:
                self._fire_one(ended.pop(), now)
        finally:  # KeyboardInterrupt out of an on_due: the rest fires when the loop comes round again
            while ended:
                timed = ended.pop()
                self.set(timed, timed.due)
            self._timer_slot = NOWHERE
            if self._numbers:
                self._start_timer(self._numbers[0])

    def _take_ended(self, now: float) -> list[OnWheel]:
        """Empty the slots that have ended. None of theirs stands anywhere after it, so that set and drop are free."""
        ended: list[OnWheel] = []
        while self._numbers and (self._numbers[0] + 1) / RATE <= now:
            slot = self._slots.pop(heappop(self._numbers))
            for timed in slot:
                timed.armed = NOWHERE
            ended.extend(slot)
        return ended

    def _fire_one(self, timed: OnWheel, now: float) -> None:
        due = timed.due  # read only now: the on_due of another may have dropped this one or put it off
        if due > now:
            self.set(timed, due)
            return
        timed.due = math.inf
        try:
            timed.on_due(now)
        except Exception:
            _log.exception("The deadline handler of %r failed; other deadlines are not affected.", timed)
