"""What is left of the caller's time, as it comes in and goes out: ``X-Budget-Ms``, whole milliseconds."""

from __future__ import annotations

__all__ = ["read_budget", "shortened"]


def read_budget(raw: bytes) -> tuple[int | None, int]:
    """The smallest of the values in ``raw``, and how many could not be read.

    Args:
        raw: Header values joined by commas. Only digits are read: a sign, a fraction or a unit is not guessed at.

    Returns:
        Milliseconds, or ``None`` where no value could be read: then the hub's own budget holds.
    """
    best: int | None = None
    bad = 0
    for value in raw.split(b","):
        value = value.strip(b" \t")
        if value.isdigit() and len(value) <= 12:
            best = int(value) if best is None else min(best, int(value))
        else:
            bad += 1
    return best, bad


def shortened(own: float, raw: bytes) -> tuple[float, bool, int]:
    """The budget of a request: the hub's own, or the smaller one it came with. A budget sent can only shorten.

    Returns:
        Seconds; whether they are the hub's own; how many values could not be read.
    """
    sent, bad = read_budget(raw)
    if sent is None or sent / 1000 > own:
        return own, True, bad
    return sent / 1000, False, bad
