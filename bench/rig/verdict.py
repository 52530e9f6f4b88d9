"""Verdicts and tables: what was measured, what it must be, whether that held."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """One figure against its limit.

    Attributes:
        what: The figure's name.
        value: The measured number; ``None`` when there is none.
        limit: It must be at most this; ``None`` when it is told, not judged.
        goal: What we would like; reaching it is said.
        unit: Written behind the number.
        why: Why there is no number, or why the number does not count.
    """

    what: str
    value: float | None
    limit: float | None = None
    goal: float | None = None
    unit: str = ""
    why: str = ""

    @property
    def held(self) -> bool:
        """False when it is over its limit, or has a limit and no number that counts."""
        return self.limit is None or (self.value is not None and not self.why and self.value <= self.limit)

    def __str__(self) -> str:
        if self.value is None or self.why:
            return f"{self.what}: NOT MEASURED: {self.why or 'no sample'}"
        whole = self.value == int(self.value)
        number = f"{self.what}: {self.value:{'.0f' if whole else '.2f'}}{self.unit}"
        if self.limit is None:
            return f"{number} (told, not judged)"
        goal = f"; goal {self.goal:g}" if self.goal is not None else ""
        reached = ", goal reached" if self.goal is not None and self.value <= self.goal else ""
        outcome = f"held{reached}" if self.held else "MISSED"
        return f"{number} (must be at most {self.limit:g}{self.unit}{goal}): {outcome}"


def median(values: Iterable[float]) -> float | None:
    """The median, or ``None`` of nothing."""
    found = list(values)
    return statistics.median(found) if found else None


def middle_half(values: Sequence[float]) -> str:
    """The first and third quartile, as ``1.31-1.52``; empty under four values, where it would say nothing."""
    if len(values) < 4:
        return ""
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{low:.2f}-{high:.2f}"


def quantile(values: Sequence[float], share: float) -> float:
    """The value that ``share`` of the values do not exceed."""
    return sorted(values)[int(share * (len(values) - 1))]


def num(value: float | None, digits: int = 1) -> str:
    """A number for a table, ``-`` when there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
