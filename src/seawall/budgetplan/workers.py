"""How many workers a silent party ties up: Little's law, ``workers = rate * limit``."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .model import Number, Plan
from .probed import Probe

__all__ = ["LONG_MS", "Limit", "Pool", "limits", "long_ms", "near", "workers"]

LONG_MS = 30_000
"""A limit of the kind that is set when somebody says "just raise the timeout"."""
_FAR = 3  # times the total; what is to be called generous is at least that much


@dataclass(frozen=True, slots=True)
class Limit:
    """A time after which a worker comes back, and what sets it: a key of the report's words."""

    key: str
    ms: Number


def workers(rate: int, limit_ms: Number) -> float:
    """The average number of workers that wait, at ``rate`` requests a second.

    Source: J. D. C. Little, A Proof for the Queuing Formula L = λW, 1961.
    """
    return rate * limit_ms / 1000


def near(value: float) -> str:
    """A computed number, to three digits where it is small and to a whole where it is large."""
    if value >= 100:
        return str(math.ceil(value - 1e-9))
    return f"{value:.3g}" if value >= 0.001 else "0"


def long_ms(plan: Plan) -> Number:
    """Half a minute, or ten totals where that is not long."""
    return LONG_MS if plan.total_ms * _FAR <= LONG_MS else plan.total_ms * 10


def limits(probe: Probe, plan: Plan) -> list[Limit]:
    """What was measured and what is planned, from the shortest to the longest."""
    found = [Limit(kind, took) for kind in ("refused", "connect_timeout", "read_timeout")
             if (took := probe.took(kind)) is not None]  # fmt: skip
    found += [Limit("largest", max(call.budget_ms for call in plan.calls)), Limit("worst", plan.worst_case_ms),
              Limit("total", plan.total_ms), Limit("half_a_minute", LONG_MS)]  # fmt: skip
    if long_ms(plan) != LONG_MS:
        found.append(Limit("ten_totals", long_ms(plan)))
    return sorted(found, key=lambda limit: limit.ms)


@dataclass(frozen=True, slots=True)
class Pool:
    """Just enough workers for a rate at the plan's total, and what becomes of them when the limit is longer.

    Attributes:
        workers: How many there are.
        gap_ms: From the moment all of them wait to the moment the first comes back.
        stranded: Requests that come in meanwhile.
    """

    workers: int
    gap_ms: Number
    stranded: float

    @classmethod
    def of(cls, plan: Plan, rate: int) -> Pool:
        """For a plan and a rate."""
        size = math.ceil(workers(rate, plan.total_ms) - 1e-9)
        gap = round(max(0, long_ms(plan) - size / rate * 1000), 1)
        return cls(size, int(gap) if gap == int(gap) else gap, rate * gap / 1000)
