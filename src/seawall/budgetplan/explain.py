"""A plan for people and for programs: what each call may take, with retries, and when."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unicodedata import east_asian_width

from .check import Checked, added
from .model import CAP_MS, Call, Number, Plan, total_of
from .values import Fault

__all__ = ["SCHEMA", "ceilings", "document", "rows", "summed_up", "time_line", "wide"]

SCHEMA = "seawall.plan/1"
_SIGNS = {"attempt": "#", "wait": ".", "rest": "-"}
_LONGEST_NAME = 24


def summed_up(plan: Plan) -> str:
    """The plan in a line of arithmetic."""
    handed_out = f"{added(call.budget_ms for call in plan.calls)} + reserve {plan.reserve_ms} = {plan.worst_case_ms} ms"
    return f"{handed_out} of total_ms {plan.total_ms}, {plan.spare_ms} ms left over"


def ceilings(call: Call) -> str:
    """The ceilings of the waits: ``100 + 200``; of many the first ones."""
    shown = [str(time) for time in call.ceilings()]
    return " + ".join([*shown, *["..."] * (len(shown) < call.max_attempts - 1)]) or "0"


def rows(plan: Plan) -> list[dict[str, Any]]:
    """A row a call, the reserve, and the whole."""
    begins = plan.begins()
    found = [_row(call, plan, begins[index]) for index, call in enumerate(plan.calls)]
    found.append(_sum_row("(reserve)", plan.reserve_ms, plan, begins[-1]))
    found.append(_sum_row("(worst case)", plan.worst_case_ms, plan, 0))
    return found


def _row(call: Call, plan: Plan, begins: Number) -> dict[str, Any]:
    worst = call.retry_worst_ms
    return {
        "call": call.name, "budget_ms": call.budget_ms, "share": f"{plan.share(call.budget_ms):.2f}",
        "max_attempts": call.max_attempts, "attempt_ms": call.attempt_ms, "wait_ceilings_ms": ceilings(call),
        "retry_worst_ms": worst if worst < CAP_MS else f">={CAP_MS}", "begins_ms": begins,
        "ends_ms": total_of([begins, call.budget_ms]),
    }  # fmt: skip


def _sum_row(name: str, time: Number, plan: Plan, begins: Number) -> dict[str, Any]:
    shown = {"call": name, "budget_ms": time, "share": f"{plan.share(time):.2f}", "begins_ms": begins}
    return shown | dict.fromkeys(("max_attempts", "attempt_ms", "wait_ceilings_ms", "retry_worst_ms")) | {
        "ends_ms": total_of([begins, time])}  # fmt: skip


def wide(text: str) -> int:
    """The columns a text takes on a terminal; Hangul takes two a letter."""
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def time_line(plan: Plan, width: int = 60, reserve: str = "(reserve)") -> list[str]:
    """Bars, one a call: ``#`` attempts, ``.`` waits at their ceilings, ``-`` what is left of it; ``=`` is the reserve."""
    names = [_shortened(call.name) for call in plan.calls]
    column = max(map(wide, [*names, reserve]))
    lines = []
    for name, call, begins in zip(names, plan.calls, plan.begins(), strict=False):
        parts = [(_SIGNS[kind], begins + at, length) for kind, at, length in call.segments()]
        lines.append(_bar(name, column, parts, plan, width))
    return [*lines, _bar(reserve, column, [("=", plan.begins()[-1], plan.reserve_ms)], plan, width),
            f"{'':{column}}  0{f'{plan.total_ms} ms':>{width}}"]  # fmt: skip


def _bar(name: str, column: int, parts: list[tuple[str, Number, Number]], plan: Plan, width: int) -> str:
    signs = [" "] * width
    for sign, at, length in parts:
        first, past = (round(moment / plan.total_ms * width) for moment in (at, at + length))
        first = min(first, width - 1)
        signs[first:max(past, first + 1)] = sign * (max(past, first + 1) - first)  # what is short is seen all the same
    return f"{name}{' ' * (column - wide(name))} |{''.join(signs[:width])}|"


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME - 3]}..."


def document(checked: Checked) -> dict[str, Any]:
    """What was found, for programs; the numbers are there only where the plan is valid."""
    found: dict[str, Any] = {
        "schema": SCHEMA, "file": checked.source, "valid": checked.valid,
        "faults": [_told(fault) for fault in checked.faults], "advice": [_told(fault) for fault in checked.advice],
    }  # fmt: skip
    plan = checked.plan
    if plan is not None:
        found |= {
            "total_ms": plan.total_ms, "reserve_ms": plan.reserve_ms, "calls_ms": plan.calls_ms,
            "worst_case_ms": plan.worst_case_ms, "spare_ms": plan.spare_ms, "calls": list(_calls(plan)),
        }  # fmt: skip
    return found


def _told(fault: Fault) -> dict[str, Any]:
    return {"where": fault.where, "line": fault.line, "what": fault.what, "fix": fault.fix}


def _calls(plan: Plan) -> Iterator[dict[str, Any]]:
    for call, begins in zip(plan.calls, plan.begins(), strict=False):
        yield {
            "name": call.name, "budget_ms": call.budget_ms, "share": round(plan.share(call.budget_ms), 4),
            "max_attempts": call.max_attempts, "attempt_ms": call.attempt_ms, "base_ms": call.base_ms,
            "wait_ceilings_ms": call.ceilings(), "waits_ms": call.waits_ms, "retry_worst_ms": call.retry_worst_ms,
            "fits": call.fits, "begins_ms": begins, "ends_ms": total_of([begins, call.budget_ms]),
        }  # fmt: skip
