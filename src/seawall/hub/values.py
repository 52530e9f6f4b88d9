"""The kinds of values a setting takes: how each is written, and what it may be.

A kind reads text (``read``) and judges a value (``fault``), so a flag, a target's own setting and a dataclass made in
code obey one rule and are refused with the same words. A fault says what would do instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, Protocol, TypeAlias

from seawall.outcome import CODES, REFUSALS, SYSTEM_ERRORS

__all__ = ["Choice", "Failing", "Failures", "Kind", "Pattern", "Seconds", "Switch", "Whole", "faults_in", "nearest"]

DAY = 86400.0
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_TIME = re.compile(r"(\d+\.?\d*|\.\d+)(ms|s|m|h)?", re.ASCII)

Failures: TypeAlias = "frozenset[str] | Literal['any']"


class Kind(Protocol):
    """How one kind of value is read and judged."""

    @property
    def metavar(self) -> str:
        """What stands for the value in help."""

    def read(self, text: str) -> Any:
        """The value that ``text`` says; ``ValueError`` says why it says none."""

    def fault(self, value: object) -> str | None:
        """What is wrong with a value, ``None`` where nothing is."""


def faults_in(values: Mapping[str, object], kinds: Mapping[str, Kind]) -> list[str]:
    """Each fault of each value, with the name it goes by."""
    judged = ((name, kind.fault(values[name])) for name, kind in kinds.items())
    return [f"{name}: {fault}" for name, fault in judged if fault is not None]


def nearest(word: str, known: Mapping[str, object] | frozenset[str] | tuple[str, ...]) -> str:
    """``; did you mean …?`` where a known word is near, else nothing."""
    near = get_close_matches(word, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


@dataclass(frozen=True, slots=True)
class Seconds:
    """A time; a bare number is seconds, ``250ms``, ``2s``, ``1m`` and ``1h`` carry their unit. At most a day.

    Attributes:
        zero: Whether 0 is allowed.
    """

    zero: bool = False
    metavar: str = "SECONDS"

    def read(self, text: str) -> float:
        """The seconds that ``text`` says."""
        match = _TIME.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not a time: write seconds, or a unit as in 250ms, 2s, 1m")
        number, unit = match[1], match[2] or "s"
        return float(number) / 1000 if unit == "ms" else float(number) * _UNITS[unit]

    def fault(self, value: object) -> str | None:
        """Anything but a number in range."""
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return f"is a number of seconds, not {value!r}"
        if value > DAY or value < 0 or value != value or (value == 0 and not self.zero):
            least = "from 0" if self.zero else "more than 0"
            return f"is {least} and at most {DAY:g} s, not {value:g}; a bare number is seconds, 250ms carries its unit"
        return None


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number from ``least`` to ``most``; with ``unit="ms"`` a time with its unit does as well."""

    least: int
    most: int
    unit: str = ""

    @property
    def metavar(self) -> str:
        """The unit where there is one."""
        return self.unit.upper() or "N"

    def read(self, text: str) -> int:
        """The number that ``text`` says."""
        if text.isascii() and text.isdigit() and len(text) <= 18:
            return int(text)
        match = _TIME.fullmatch(text) if self.unit == "ms" else None
        if match is not None and match[2]:
            return round(Seconds().read(text) * 1000)
        like = "write milliseconds, as in 3000, or a unit, as in 3s" if self.unit == "ms" else "write digits, as in 10"
        raise ValueError(f"{text!r} is not a whole number: {like}")

    def fault(self, value: object) -> str | None:
        """Anything but a whole number in range."""
        if isinstance(value, int) and not isinstance(value, bool) and self.least <= value <= self.most:
            return None
        unit = f" {self.unit}" if self.unit else ""
        return f"is a whole number from {self.least} to {self.most}{unit}, not {value!r}"


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]

    @property
    def metavar(self) -> str:
        """The words."""
        return "|".join(self.words)

    def read(self, text: str) -> str:
        """The word itself."""
        fault = self.fault(text)
        if fault is not None:
            raise ValueError(fault)
        return text

    def fault(self, value: object) -> str | None:
        """Any other word."""
        if value in self.words:
            return None
        return f"is one of {', '.join(self.words)}, not {value!r}{nearest(str(value), self.words)}"


@dataclass(frozen=True, slots=True)
class Switch:
    """Yes or no."""

    metavar: str = "yes|no"

    def read(self, text: str) -> bool:
        """``yes``, ``true``, ``on`` and their opposites."""
        if text.lower() in ("yes", "true", "on"):
            return True
        if text.lower() in ("no", "false", "off"):
            return False
        raise ValueError(f"is yes or no, not {text!r}")

    def fault(self, value: object) -> str | None:
        """Anything but a bool."""
        return None if isinstance(value, bool) else f"is True or False, not {value!r}"


@dataclass(frozen=True, slots=True)
class Pattern:
    """Text of a certain look.

    Attributes:
        pattern: What all of it must match.
        like: What it is, in words, with an example.
        none: Whether it may be left out (``None``).
    """

    pattern: str
    like: str
    metavar: str = "TEXT"
    none: bool = False

    def read(self, text: str) -> str:
        """The text itself."""
        fault = self.fault(text)
        if fault is not None:
            raise ValueError(fault)
        return text

    def fault(self, value: object) -> str | None:
        """Anything that does not look like it."""
        if (value is None and self.none) or (isinstance(value, str) and re.fullmatch(self.pattern, value)):
            return None
        return f"is {self.like}, not {value!r}"


@dataclass(frozen=True, slots=True)
class Failing:
    """Which outcome codes count as failures of a target: codes, or the word ``any``."""

    metavar: str = "CODES"

    def read(self, text: str) -> Failures:
        """``any``, or codes separated by commas or plus signs."""
        if text == "any":
            return "any"
        codes = frozenset(part.strip() for part in re.split(r"[,+]", text))
        fault = self.fault(codes)
        if fault is not None:
            raise ValueError(fault)
        return codes

    def fault(self, value: object) -> str | None:
        """A code that can never be a failure of the target, with the reason."""
        if value == "any":
            return None
        if not isinstance(value, frozenset) or not value:
            return f"is a set of codes ({_SYSTEM}), or the word any, not {value!r}"
        reasons = [_why_never(str(code)) for code in sorted(value, key=str) if code not in SYSTEM_ERRORS]
        return "; ".join(reasons) or None


_SYSTEM = ", ".join(sorted(SYSTEM_ERRORS))


def _why_never(code: str) -> str:
    if code in REFUSALS:
        return f"{code} means the call was not made ({CODES[code].meaning}), so it never counts against the target"
    if code in CODES:
        return f"{code} is no failure of the target: {CODES[code].meaning}"
    if code == "0000" or re.fullmatch(r"B\d{3}", code):
        return f"{code} is an answer of a healthy target; the word any counts everything but 0000 as a failure"
    return f"{code!r} is no code that can count: {_SYSTEM}, or the word any{nearest(code, SYSTEM_ERRORS)}"
