"""Where in a JSON text each value stands, and which keys stand twice: the json module tells neither."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from dataclasses import dataclass, field

__all__ = ["Places", "below", "places_in"]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{},:]|[^\s,\]}:"]+', re.DOTALL)
_DEEPEST = 8  # levels; what lies deeper goes by the place of what it lies in, or places alone would fill the memory
_LAST = re.compile(r"(\.?[^.\[\]]*|\[\d+\])$")  # the last step of a place


@dataclass(slots=True)
class Places:
    """The lines of a document, counted from 1.

    Attributes:
        lines: The line of each value, by its place: ``calls[1].budget_ms``; the whole document is the empty place.
        twice: Each key that an object has once more, by its place, with the line.
    """

    lines: dict[str, int] = field(default_factory=dict)
    twice: list[tuple[str, int]] = field(default_factory=list)

    def line(self, place: str) -> int | None:
        """The line of a place, or of what it would stand in; ``None`` where no lines are known."""
        while place and place not in self.lines:
            shorter = _LAST.sub("", place)
            place = shorter if shorter != place else ""
        return self.lines.get(place)


def below(place: str, key: str | int) -> str:
    """The place of a member or an element."""
    if isinstance(key, int):
        return f"{place}[{key}]"
    word = key if re.fullmatch(r"[\w$-]{1,40}", key) else repr(key[:40])
    return f"{place}.{word}" if place else word


@dataclass(slots=True)
class _Open:
    """An object or a list that has not ended yet."""

    place: str
    index: int | None  # None: an object
    key: str | None = None
    seen: set[str] = field(default_factory=set)

    def next(self) -> str:
        """The place of the value that comes now."""
        if self.index is None:
            return below(self.place, self.key or "")
        self.index += 1
        return below(self.place, self.index - 1)


def places_in(text: str) -> Places:
    """Read a JSON text that the json module has accepted. One pass without recursion, whatever the nesting."""
    found = Places()
    breaks = [match.start() for match in re.finditer("\n", text)]
    stack: list[_Open] = []
    for match in _TOKEN.finditer(text):
        token, line = match[0], bisect_left(breaks, match.start()) + 1
        if token in "]}":
            stack.pop()
        elif token == ",":
            stack[-1].key = None
        elif token == ":":
            continue
        elif stack and stack[-1].index is None and stack[-1].key is None:
            _key(stack[-1], token, line, found)
        else:
            deep = len(stack) > _DEEPEST
            place = stack[-1].place if deep else stack[-1].next() if stack else ""
            if not deep:
                found.lines[place] = line
            if token in "[{":
                stack.append(_Open(place, 0 if token == "[" else None))
    return found


def _key(inside: _Open, token: str, line: int, found: Places) -> None:
    key = inside.key = json.loads(token, strict=False)
    if key in inside.seen:
        found.twice.append((below(inside.place, key), line))
    inside.seen.add(key)
