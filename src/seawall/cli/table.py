"""How a measurement is shown: a table for people, one JSON document for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import say

__all__ = ["floor_ms", "ms", "show", "table"]


def ms(seconds: float) -> float:
    """Milliseconds to a tenth."""
    return round(seconds * 1000, 1)


def floor_ms(seconds: float) -> float:
    """Milliseconds to a tenth, rounded down: what is left is never shown as more."""
    return math.floor(seconds * 10000) / 10


def show(document: Mapping[str, Any], lines: Iterable[str], as_json: bool) -> None:
    """Print the result: ``document`` as one line of JSON, or else ``lines``."""
    if as_json:
        say.line(json.dumps(document))
        return
    for line in lines:
        say.line(line)


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> list[str]:
    """Rows under headings; numbers stand to the right, the last column is not padded, ``None`` is a hyphen."""
    cells = [[_shown(row[column]) for column in columns] for row in rows]
    right = [_is_numeric([row[column] for row in rows]) for column in columns]
    widths = [max(map(len, (heading, *column))) for heading, *column in zip(columns, *cells, strict=True)]
    lines = []
    for line in (list(columns), *cells):
        padded = (text.rjust(width) if numeric else text.ljust(width)
                  for text, width, numeric in zip(line, widths, right, strict=True))  # fmt: skip
        lines.append("  ".join(padded).rstrip())
    return lines


def _shown(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def _is_numeric(values: Sequence[object]) -> bool:
    return all(value is None or isinstance(value, (int, float)) for value in values)
