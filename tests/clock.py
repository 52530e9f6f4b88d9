"""A clock that moves only when a test says so."""

from __future__ import annotations


class ManualClock:
    """Stands in for ``time.monotonic``: call it to read the time, in seconds.

    Moving backwards is refused, as a monotonic clock never does it; a test that needs it passes its own callable.
    """

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def __call__(self) -> float:
        return self._now

    def advance(self, seconds: float) -> float:
        """Move forward and return the new time."""
        return self.set(self._now + seconds)

    def set(self, now: float) -> float:
        """Move to an instant and return it."""
        if now < self._now:
            raise ValueError(f"the clock stands at {self._now} and cannot go back to {now}")
        self._now = now
        return now
