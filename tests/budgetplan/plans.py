"""Plans for tests: a good one, changed in one place, and checked."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from seawall.budgetplan.check import Checked, check
from seawall.budgetplan.places import Places
from seawall.budgetplan.read import Source

GOOD: dict[str, Any] = {
    "total_ms": 3000, "reserve_ms": 150, "worst_case_ms": 2850,
    "calls": [
        {"name": "login", "budget_ms": 600, "max_attempts": 2, "attempt_ms": 250, "base_ms": 100},
        {"name": "price", "budget_ms": 1200, "max_attempts": 3, "attempt_ms": 300},
        {"name": "stock", "budget_ms": 900, "max_attempts": 1},
    ],
}  # fmt: skip
DROP = object()


def changed(**changes: Any) -> dict[str, Any]:
    """The good plan with other values: ``total_ms=5``, ``calls_1_budget_ms=7``, ``calls_1={…}``; ``DROP`` takes one out."""
    plan = copy.deepcopy(GOOD)
    for path, value in changes.items():
        inside: Any = plan
        key: Any = path
        if path[:6] == "calls_":
            index, _, rest = path[6:].partition("_")
            inside, key = (plan["calls"][int(index)], rest) if rest else (plan["calls"], int(index))
        if value is DROP:
            del inside[key]
        else:
            inside[key] = value
    return plan


def checked(plan: dict[str, Any], *, strict: bool = False) -> Checked:
    return check(Source("plan.json", plan, Places()), strict=strict)


def faults(plan: dict[str, Any], *, strict: bool = False) -> list[str]:
    return [str(fault) for fault in checked(plan, strict=strict).faults]


def written(where: Path, plan: object, name: str = "budget_plan.json") -> str:
    """The plan as a file."""
    (where / name).write_text(json.dumps(plan, indent=1), encoding="utf-8")
    return str(where / name)
