"""Judges single values of a document, collects what is wrong with them, and says what would be right."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from .model import MOST_MS, TOLERANCE, Number
from .places import Places, below

__all__ = ["Fault", "Judge", "same", "spelled"]

SHORTEST_MS = 0.001
LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong.

    Attributes:
        where: Its place: ``calls[1].budget_ms``.
        what: What is wrong, with its arithmetic.
        fix: What to do.
        line: The line of the file, where that is known.
    """

    where: str
    what: str
    fix: str
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.where}: {self.what}: {self.fix}"


def spelled(value: object) -> str:
    """A value as the file spells it, in short."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else f"{value[:40]}...")
    if value is None or isinstance(value, (bool, int, float)):
        return json.dumps(value)
    return str(value)


@dataclass(slots=True)
class Judge:
    """Looks at values by their place; each method answers with the value, or with ``None`` where it cannot be used."""

    places: Places
    faults: list[Fault] = field(default_factory=list)
    advice: list[Fault] = field(default_factory=list)

    def fault(self, where: str, what: str, fix: str) -> None:
        """Something is wrong."""
        self.faults.append(Fault(where, what, fix, self.places.line(where)))

    def advise(self, where: str, what: str, fix: str) -> None:
        """Something is allowed and yet worth a thought."""
        self.advice.append(Fault(where, what, fix, self.places.line(where)))

    def keys(self, found: Mapping[str, Any], place: str, required: Mapping[str, str], known: Sequence[str]) -> None:
        """Each key that is missing, and each that is not known."""
        for key, meaning in required.items():
            if key not in found:
                self.fault(below(place, key), "is missing", f"write {meaning}")
        for key in found:
            if key not in required and key not in known:
                near = get_close_matches(key, (*required, *known), n=1)
                fix = f"did you mean {near[0]}?" if near else f"there are {', '.join((*required, *known))}"
                self.fault(below(place, key), "no such key", fix)

    def number(self, found: Mapping[str, Any], key: str, place: str, fix: str) -> Number | None:
        """Any number from 0 up that is finite; a key that is missing is no fault here."""
        if key not in found:
            return None
        value, where = found[key], below(place, key)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            plain = f"{fix}, without quotes" if isinstance(value, str) else fix
            self.fault(where, f"is {spelled(value)}, no number", plain)
        elif not math.isfinite(value):
            self.fault(where, f"is {spelled(value)}, no finite number", fix)
        elif value < 0:
            self.fault(where, f"is {spelled(value)}, less than nothing", fix)
        else:
            return value
        return None

    def time(self, found: Mapping[str, Any], key: str, place: str, like: int, zero: bool = False) -> Number | None:
        """Milliseconds: at least a microsecond (or 0), at most a day."""
        fix = f"write milliseconds, as in {like}"
        value = self.number(found, key, place, fix)
        if value is None or (zero and value == 0):
            return value
        if value < SHORTEST_MS:
            least = "0, or at least" if zero else "at least"
            self.fault(below(place, key), f"is {spelled(value)} ms, no time to speak of", f"{fix}; {least} {SHORTEST_MS}")
        elif value > MOST_MS:
            self.fault(below(place, key), f"is {spelled(value)} ms, more than a day", f"{fix}; at most {MOST_MS}")
        else:
            return value
        return None

    def whole(self, found: Mapping[str, Any], key: str, place: str, most: int, like: int) -> int | None:
        """A whole number from 1."""
        fix = f"write a whole number from 1, as in {like}"
        value = self.number(found, key, place, fix)
        if value is None:
            return None
        if value > most:
            self.fault(below(place, key), f"is {spelled(value)}", f"write a whole number from 1 to {most}")
        elif not isinstance(value, int) or value < 1:
            self.fault(below(place, key), f"is {spelled(value)}", fix)
        else:
            return value
        return None

    def text(self, found: Mapping[str, Any], key: str, place: str, like: str) -> str | None:
        """A line of text that can be printed."""
        if key not in found:
            return None
        value = found[key]
        if isinstance(value, str) and value.strip() and value.isprintable() and len(value) <= LONGEST_NAME:
            return value
        self.fault(below(place, key), f"is {spelled(value)}", f"write {like}: 1 to {LONGEST_NAME} characters on one line")
        return None

    def notes(self, found: Mapping[str, Any], place: str, keys: Sequence[str]) -> None:
        """Texts that are for people."""
        for key in keys:
            if not isinstance(found.get(key, ""), str):
                self.fault(below(place, key), f"is {spelled(found[key])}", "write a text")

    def twice(self) -> None:
        """Each key that stands twice in one object: the json module silently takes the last."""
        for where, line in self.places.twice:
            self.faults.append(Fault(where, "stands twice in one object", "keep one of the two", line))


def same(one: Number, other: Number) -> bool:
    """Whether two times are the same to the microsecond."""
    return abs(one - other) <= TOLERANCE
