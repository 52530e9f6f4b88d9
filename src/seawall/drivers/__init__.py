"""Who waits: threads block, tasks are suspended. One small module each."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

__all__ = ["looks"]

FIRST_LOOK = 1.0  # s; long beside what a wake-up takes, short beside max_wait


def looks(seconds: float | None) -> Iterator[float]:
    """How long to sleep before looking by oneself: 1 s, then twice as long each time, ``seconds`` in all.

    Who gives a place back wakes the waiter. A ``KeyboardInterrupt`` in that very moment can lose the wake-up; so it at
    most doubles the wait, even one without an end.
    """
    left, look = inf if seconds is None else seconds, FIRST_LOOK
    while left > 0.0:
        yield min(look, left)
        left -= look
        look *= 2.0
