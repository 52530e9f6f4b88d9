"""Steps of a bulkhead taken one by one, as guard and hub take them: a caller that enters, waits, claims and leaves."""

from __future__ import annotations

import time
from collections.abc import Callable

from seawall.policies.bulkhead import Bulkhead
from seawall.policies.slots import USED, Slots, Ticket


class Caller:
    """One call: holds its slot, and counts how often it was woken."""

    def __init__(self, limit: Bulkhead, budget: float | None = None) -> None:
        self.limit = limit
        self.held: Slots | None = None
        self.woken = 0
        self.ticket: Ticket | None = limit.enter(self, budget)
        if self.ticket is not None:
            self.ticket.wake = self._wake

    def _wake(self) -> None:
        self.woken += 1

    @property
    def in_line(self) -> bool:
        return self.ticket is not None and not self.ticket.granted and not self.ticket.left

    def claim(self) -> None:
        """Wake up: run, or be refused."""
        assert self.ticket is not None
        self.limit.claim(self.ticket, 1.0)
        self.ticket = None

    def withdraw(self) -> None:
        """Go away without having run."""
        assert self.ticket is not None
        self.limit.withdraw(self.ticket)
        self.ticket = None

    def leave(self) -> None:
        """The call has ended: give the slot back as the guard does."""
        free, self.held = self.held, None
        assert free is not None
        free.append(USED)
        if self.limit.alert:
            self.limit.pump()


def assert_at_rest(limit: Bulkhead) -> None:
    """Nobody runs, nobody waits, nothing is owed, and exactly as many calls as allowed can enter."""
    snapshot = limit.snapshot()
    assert (snapshot.in_flight, snapshot.waiting, limit.alert, limit._owed) == (0, 0, [], 0)
    assert len(limit.free) == limit.max_concurrent == limit._total
    taken = [limit.try_acquire() for _ in range(limit.max_concurrent + 1)]
    assert taken == [True] * limit.max_concurrent + [False]
    for _ in range(limit.max_concurrent):
        limit.release()


def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Return once ``condition`` holds; ``TimeoutError`` if it does not within ``seconds``."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("what was waited for has not come")
        time.sleep(0.0005)
