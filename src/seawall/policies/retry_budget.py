"""Is there load to spare? Repeated calls are held to a share of the first ones, over all callers of a target."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from threading import RLock

from ..amounts import is_amount
from ..counters import FirstAttempts, reset_in_child
from ..errors import ConfigError

__all__ = ["RetryBudget"]

WINDOW = 10.0
"""Seconds over which the share is taken. As Finagle's: long enough for a share of few calls, short beside an outage."""


class RetryBudget:
    """At most ``ratio`` extra attempts for each call of the last ten seconds, and ``min_per_second`` in any case.

    When everything fails, three attempts a call are three times the load on a target that is down already. Under a budget
    of 0.2 they are 1.2 times. Give one budget to all who call a target: the same :class:`~seawall.Retry`, or one budget in
    several.

    An attempt is paid for when it is decided upon, before the wait: what waits is counted as much as what runs, so a crowd
    that decides at once cannot overdraw.

    Args:
        ratio: Extra attempts to calls, 0 to 1 (0.2).
        min_per_second: Extra attempts a second that are always granted, 0 or more (10): a share of few calls is none. Those
            of ten seconds may come at once.
        clock: Seconds that never go back.

    Raises:
        ConfigError: There are no such numbers.

    Cost: one counter tick a call, and nothing else until one fails. Calls since the last failure are taken to have come
    evenly. Source: the retry budget of Finagle (Twitter), and Google's SRE book, ch. 21.
    """

    __slots__ = (
        "__weakref__", "_clock", "_floor", "_lock", "_looked", "_refilled", "_seen", "_window", "first", "min_per_second",
        "ratio", "refused", "spent",
    )  # fmt: skip

    def __init__(
        self, ratio: float = 0.2, min_per_second: float = 10.0, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if not is_amount(ratio, most=1.0):
            raise ConfigError(f"ratio is a share, 0 to 1 (0.2 is a fifth), not {ratio!r}")
        if not is_amount(min_per_second):
            raise ConfigError(f"min_per_second is a number of attempts, 0 or more, not {min_per_second!r}")
        self.ratio, self.min_per_second = float(ratio), float(min_per_second)
        self.first = FirstAttempts()
        self.spent = self.refused = 0
        self._clock, self._lock = clock, RLock()
        self._window: deque[list[float]] = deque()  # [when it began, calls, extra attempts], a second each
        self._looked = self._refilled = clock()
        self._seen = 0
        self._floor = self._most()
        reset_in_child(self)

    def __repr__(self) -> str:
        return f"<RetryBudget {self.ratio:g} of the calls, {self.min_per_second:g}/s at least; {self.spent} spent>"

    def _after_fork(self) -> None:
        self._lock = RLock()  # a thread of the parent may hold it

    @property
    def calls(self) -> int:
        """Calls counted: first attempts."""
        return max(0, self.first.number)

    @property
    def left(self) -> float:
        """Extra attempts that would be granted now."""
        now = self._clock()
        with self._lock:
            self._let_time_pass_locked(now)
            return max(0.0, self._share_locked()) + self._floor

    def withdraw(self) -> bool:
        """Take one extra attempt out of the budget, if it has one."""
        now = self._clock()
        with self._lock:
            self._let_time_pass_locked(now)
            if self._share_locked() < 1.0:
                if self._floor < 1.0:
                    self.refused += 1
                    return False
                self._floor -= 1.0
            else:
                self._window[-1][2] += 1.0
            self.spent += 1
            return True

    def _most(self) -> float:
        return 0.0 if self.min_per_second == 0 else max(1.0, self.min_per_second * WINDOW)

    def _share_locked(self) -> float:
        """What the calls in the window allow, less what was taken of it."""
        calls = extra = 0.0
        for _, some, spent in self._window:
            calls += some
            extra += spent
        return calls * self.ratio - extra

    def _let_time_pass_locked(self, now: float) -> None:
        passed = max(0.0, now - self._refilled)
        self._refilled = now
        self._floor = min(self._most(), self._floor + passed * self.min_per_second)
        while self._window and self._window[0][0] < now - WINDOW:
            self._window.popleft()
        self._count_locked(now)

    def _count_locked(self, now: float) -> None:
        """Lay the calls since the last look into the window, as if they had come evenly."""
        seen = self.first.number
        calls, self._seen = seen - self._seen, seen
        since = max(0.0, now - self._looked)
        self._looked = now
        if since > WINDOW:
            calls, since = round(calls * WINDOW / since), WINDOW
        if not self._window or now - self._window[-1][0] >= 1.0:
            seconds = max(1, int(since))
            self._window.extend([now - since + second, calls / seconds, 0.0] for second in range(seconds))
            if self._window[-1][0] < now - 1.0:
                self._window.append([now, 0.0, 0.0])
        else:
            self._window[-1][1] += calls
