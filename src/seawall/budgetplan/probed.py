"""What ``seawall probe`` has measured, read back from its file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from .model import MOST_MS, Number
from .places import below
from .read import Source
from .values import Fault, Judge, spelled

__all__ = ["KINDS", "Probe", "ProbeError", "Row", "probe_of"]

KINDS = ("refused", "connect_timeout", "read_timeout")
"""The shapes of failure that are told apart; as :data:`seawall.measure.probe.KINDS`."""
_SCHEMA = "seawall.probe/1"
_LONGEST = 300  # characters of a text that a report shows
_LIMITS = {"connect": ("connect", "connect_s"), "read": ("read", "read_s")}
_ROW = {"kind": f"one of {', '.join(KINDS)}", "target": "what was called", "elapsed_ms": "the milliseconds it took"}
_KNOWN = frozenset({*_ROW, "error"})


class ProbeError(Exception):
    """The document is no measurement. ``faults`` has all that is wrong with it."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Row:
    """One call that failed, measured: its kind, what was called, for how many milliseconds, and its error."""

    kind: str
    target: str
    elapsed_ms: Number
    error: str


@dataclass(frozen=True, slots=True)
class Probe:
    """A measurement.

    Attributes:
        rows: One a call.
        connect: The limit to connect that was in force, in seconds; ``None``: the file does not say.
        read: The limit without a byte, in seconds.
        others: Every other number in the file, with its place: a report leaves none out.
    """

    rows: tuple[Row, ...]
    connect: Number | None
    read: Number | None
    others: tuple[tuple[str, Number], ...] = ()

    def slowest(self, kind: str) -> Row | None:
        """The row of a kind; of several the one that took longest."""
        return max((row for row in self.rows if row.kind == kind), key=lambda row: row.elapsed_ms, default=None)

    def took(self, kind: str) -> Number | None:
        """Its milliseconds; ``None`` where it was not measured."""
        row = self.slowest(kind)
        return None if row is None else row.elapsed_ms


def probe_of(source: Source) -> Probe:
    """Read a measurement.

    Raises:
        ProbeError: It is none; each fault at once.
    """
    judge = Judge(source.places)
    judge.twice()
    document = source.document
    if document.get("schema", _SCHEMA) != _SCHEMA:
        judge.fault("schema", f"is {spelled(document['schema'])}", f"{_SCHEMA} is what a measurement has")
    limits = {name: _limit(document, keys, judge) for name, keys in _LIMITS.items()}
    rows = _rows(document, judge)
    if judge.faults:
        raise ProbeError(sorted(judge.faults, key=lambda fault: fault.line or 0))
    taken = {keys[0] if keys[0] in document else keys[1] for keys in _LIMITS.values()}
    return Probe(tuple(rows), limits["connect"], limits["read"], tuple(_others(document, taken)))


def _limit(document: dict[str, Any], keys: tuple[str, str], judge: Judge) -> Number | None:
    key = keys[0] if keys[0] in document else keys[1]
    return _time(judge, document, key, "", "write seconds, as in 0.3", MOST_MS // 1000)


def _time(judge: Judge, found: dict[str, Any], key: str, place: str, fix: str, most: int) -> Number | None:
    """A time that was measured, or the limit of one: at most a day, as all times of a plan."""
    value = judge.number(found, key, place, fix)
    if value is not None and value > most:
        judge.fault(below(place, key), f"is {spelled(value)}, more than a day", f"{fix}; at most {most}")
        return None
    return value


def _rows(document: dict[str, Any], judge: Judge) -> list[Row]:
    found = document.get("probes")
    if not isinstance(found, list) or not found:
        what = "is missing" if "probes" not in document else "is an empty list" if found == [] else "is no list"
        judge.fault("probes", what, "`seawall probe -o probe.json` writes it")
        return []
    rows = [_row(entry, below("probes", index), judge) for index, entry in enumerate(found)]
    return [row for row in rows if row is not None]


def _row(entry: object, place: str, judge: Judge) -> Row | None:
    if not isinstance(entry, dict):
        judge.fault(place, "is no object", "write kind, target, elapsed_ms and error")
        return None
    judge.keys(entry, place, _ROW, tuple(entry))
    elapsed = _time(judge, entry, "elapsed_ms", place, "write milliseconds, as in 300.4", MOST_MS)
    kind = entry.get("kind")
    if "kind" in entry and kind not in KINDS:
        near = get_close_matches(str(kind), KINDS, n=1)
        judge.fault(f"{place}.kind", f"is {spelled(kind)}", f"did you mean {near[0]}?" if near else f"write {_ROW['kind']}")
    texts = [entry.get(key) for key in ("target", "error")]
    for key, text in zip(("target", "error"), texts, strict=True):
        if key in entry and not isinstance(text, str) and not (key == "error" and text is None):
            judge.fault(below(place, key), f"is {spelled(text)}, no text", "write it in quotes")
    if elapsed is None or judge.faults:
        return None
    return Row(str(kind), _line(texts[0]), elapsed, _line(texts[1] or ""))


def _line(text: object) -> str:
    """On one line, in characters that can be printed."""
    return "".join(char if char.isprintable() else " " for char in str(text))[:_LONGEST]


def _others(document: dict[str, Any], taken: set[str]) -> Iterator[tuple[str, Number]]:
    for key, value in document.items():
        if key == "probes":
            for index, entry in enumerate(value):
                for name, inner in entry.items():
                    if name not in _KNOWN:
                        yield from _numbers(inner, below(below(key, index), name))
        elif key not in taken:
            yield from _numbers(value, below("", key))


def _numbers(value: object, place: str) -> Iterator[tuple[str, Number]]:
    """Every number inside a value; a stack, for a file may be nested as deeply as it likes."""
    stack = [(place, value)]
    while stack:
        where, one = stack.pop()
        if isinstance(one, dict):
            stack += [(below(where, str(key)), inner) for key, inner in reversed(one.items())]
        elif isinstance(one, list):
            stack += [(below(where, index), inner) for index, inner in reversed(list(enumerate(one)))]
        elif isinstance(one, (int, float)) and not isinstance(one, bool):
            yield where, one
