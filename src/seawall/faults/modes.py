"""How a fake target can misbehave, and what it counts while it does."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from .words import LONGEST_MS, nearest, shown

__all__ = ["Control", "Mode", "Tally", "read_json"]

SLOW_MS = 5000  # longer than the hub's default read limit of 2 s, so that slow alone makes it time out
DRIP_MS = 50


class Mode(StrEnum):
    """What a target does with a request; ``/_ctl`` and ``/_stats`` always behave."""

    NORMAL = "normal"
    """Answers at once."""
    FAIL = "fail"
    """Answers HTTP 500 at once."""
    SLOW = "slow"
    """Answers as in normal, after ``delay_ms``."""
    STATUS = "status"
    """Answers at once with the HTTP status that ``status`` says, business as in normal."""
    HANG = "hang"
    """Takes the request and never answers."""
    DRIP = "drip"
    """Sends the head at once, then one byte of the body each ``delay_ms``."""
    DRIP_HEAD = "drip_head"
    """Sends one byte of the whole answer, head included, each ``delay_ms``."""
    CUT = "cut"
    """Sends the head and half of the body, then closes."""
    RESET = "reset"
    """Ends the connection with a TCP reset instead of an answer."""
    GARBAGE = "garbage"
    """Answers with bytes that are not HTTP, then closes."""


def read_json(body: bytes) -> dict[str, Any]:
    """The JSON object in a body, with no key said twice; an empty body is an empty object.

    Raises:
        ValueError: It is no JSON, no object, or says a key twice; the message is what to tell the caller.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = [key for key, n in Counter(key for key, _ in pairs).items() if n > 1]
            raise ValueError(f"key given twice: {', '.join(twice)}")
        return found

    def finite(text: str) -> float:
        number = float(text)
        if not math.isfinite(number):
            raise ValueError(f"{text[:40]} is no number here")
        return number

    if not body.strip():
        return {}
    try:
        value = json.loads(body, object_pairs_hook=once, parse_constant=finite, parse_float=finite)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from None
    except UnicodeDecodeError:
        raise ValueError("not JSON: the bytes are no UTF-8") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("the body is JSON, but no object in braces")
    return value


class Control:
    """The mode of a target and its settings, changed by ``POST /_ctl``.

    Keys, all optional: ``mode``; ``delay_ms`` (0 to an hour in milliseconds, kept until another is said, ``null``
    brings back the default of 5000 for slow and 50 for the drips); ``status`` (200 to 599, default 429, for the mode
    of that name); ``reset`` (``true`` sets the counters to zero).
    """

    KEYS = ("mode", "delay_ms", "status", "reset")

    def __init__(self) -> None:
        self.mode = Mode.NORMAL
        self.status = 429
        self._delay_ms: int | None = None

    @property
    def delay_ms(self) -> int:
        """Milliseconds that slow waits before the answer, and the drips between two bytes."""
        if self._delay_ms is not None:
            return self._delay_ms
        return DRIP_MS if self.mode in (Mode.DRIP, Mode.DRIP_HEAD) else SLOW_MS

    def apply(self, wish: Mapping[str, Any]) -> bool:
        """Change what ``wish`` names, all of it or, where something in it is wrong, nothing.

        Returns:
            Whether the counters are to be set to zero.

        Raises:
            ValueError: An unknown key or value; the message lists what is known.
        """
        for key in wish:
            if key not in self.KEYS:
                raise ValueError(f"unknown key {shown(key)}{nearest(key, self.KEYS)}; known: {', '.join(self.KEYS)}")
        mode = _mode(wish["mode"]) if "mode" in wish else self.mode
        delay_ms = self._delay_ms
        if "delay_ms" in wish:
            delay_ms = None if wish["delay_ms"] is None else _whole("delay_ms", wish["delay_ms"], 0, LONGEST_MS)
        status = _whole("status", wish["status"], 200, 599) if "status" in wish else self.status
        reset = wish.get("reset", False)
        if not isinstance(reset, bool):
            raise ValueError(f"reset is true or false, not {shown(reset)}")
        self.mode, self._delay_ms, self.status = mode, delay_ms, status
        return reset


def _mode(value: object) -> Mode:
    known = [mode.value for mode in Mode]
    if value not in known:
        raise ValueError(f"unknown mode {shown(value)}{nearest(value, known)}; known: {', '.join(known)}")
    return Mode(value)


def _whole(key: str, value: object, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{key} is a whole number from {least} to {most}, not {shown(value)}")
    return value


class Tally:
    """What a target counts. The event loop's thread is the only one that writes.

    ``calls`` and ``by_code`` count transactions (``/tx``); ``other`` the rest but ``/_ctl`` and ``/_stats``;
    ``in_flight``, ``max_inflight`` and ``left`` are about both together.
    """

    def __init__(self) -> None:
        self.in_flight = 0
        self.reset()

    def reset(self) -> None:
        """Zero, as if just started; what runs now stays in flight and is not counted again when it ends."""
        self.era = object()
        self.calls = self.other = self.left = 0
        self.max_inflight = self.in_flight
        self.by_code: Counter[str] = Counter()

    def began(self, is_tx: bool) -> object:
        """A request is taken up; returns the era to give back when it ends."""
        if is_tx:
            self.calls += 1
        else:
            self.other += 1
        self.in_flight += 1
        self.max_inflight = max(self.max_inflight, self.in_flight)
        return self.era

    def ended(self, era: object, is_tx: bool, code: str) -> None:
        """A request came to its end: its answer carried ``code``, or the mode of that name ended it."""
        self.in_flight -= 1
        if is_tx and era is self.era:
            self.by_code[code] += 1

    def gone(self, era: object) -> None:
        """The caller left before its answer."""
        self.in_flight -= 1
        if era is self.era:
            self.left += 1
