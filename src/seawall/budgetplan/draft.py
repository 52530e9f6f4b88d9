"""A draft of a plan, to be changed by whoever knows the calls; as it is, ``plan check --strict`` finds nothing in it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from .check import LEAST_RESERVE_MS
from .model import BASE_MS, Number

__all__ = ["CALLS", "TOTAL_MS", "as_json", "as_toml", "draft", "limit_of_today"]

TOTAL_MS = 3000
CALLS = ("profile", "price", "stock")
_SHORTEST_ATTEMPT = 100  # ms; below that a second attempt is no use to anybody, and the call gets one


def draft(
    calls: Sequence[str] = CALLS, *, total_ms: int | None = None, reserve_ms: int = LEAST_RESERVE_MS,
    slow_ms: Number | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Divide a total evenly.

    Args:
        calls: Their names, in order.
        total_ms: For the whole request; by default 3000, or what each of the calls takes once at ``slow_ms``.
        reserve_ms: For our own work.
        slow_ms: What a party that does not answer takes today; an attempt gets that much where it fits.

    Raises:
        ValueError: There is less than a millisecond a call.
    """
    limit = None if slow_ms is None else max(1, math.ceil(slow_ms))
    total = total_ms if total_ms is not None else TOTAL_MS if limit is None else limit * len(calls) + reserve_ms
    share = (total - reserve_ms) // len(calls)
    if share < 1:
        raise ValueError(f"{total} ms - reserve {reserve_ms} = {total - reserve_ms} ms for {len(calls)} calls")
    attempts, attempt = _attempts(share, limit)
    each = {"budget_ms": share, "max_attempts": attempts, "attempt_ms": attempt}
    if attempts > 1:
        each["base_ms"] = BASE_MS
    entries = [{"name": name, **each} for name in calls]
    return {"total_ms": total, "reserve_ms": reserve_ms, "calls": entries, "worst_case_ms": share * len(calls) + reserve_ms}


def _attempts(share: int, limit: int | None) -> tuple[int, int]:
    """How many attempts, and the limit of each: two where both and the wait between them fit, else one."""
    if limit is not None:
        return (2, limit) if 2 * limit + BASE_MS <= share else (1, min(limit, share))
    half = (share - BASE_MS) // 2
    return (2, half) if half >= _SHORTEST_ATTEMPT else (1, share)


def limit_of_today(took: Sequence[Number | None]) -> Number | None:
    """What one attempt takes today at worst: to connect and then to hear nothing, as measured."""
    known = [time for time in took if time is not None]
    return sum(known) if known else None


def as_json(document: dict[str, Any]) -> str:
    """The plan as JSON: a call on a line of its own."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def as_toml(document: dict[str, Any]) -> str:
    """The plan as TOML."""
    lines = [f"{key} = {value}" for key, value in document.items() if key != "calls"]
    for call in document["calls"]:
        lines += ["", "[[calls]]", *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in call.items())]
    return "\n".join(lines) + "\n"
