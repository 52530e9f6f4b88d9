"""What the servers that misbehave share in what they are told: the longest time, and words for what was not understood."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["LONGEST_MS", "nearest", "shown"]

LONGEST_MS = 3_600_000  # an hour: longer than any experiment waits, and short enough that a typo ends some day


def shown(value: object) -> str:
    """The value as Python writes it, at most 60 characters of it."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def nearest(word: object, known: Iterable[str]) -> str:
    """`` (did you mean 'slow'?)``, or nothing where nothing is near."""
    near = difflib.get_close_matches(str(word), list(known), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
