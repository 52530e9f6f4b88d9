"""Checks a budget plan and tells every fault at once, each with its arithmetic and with what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from .model import CAP_MS, MOST_ATTEMPTS, MOST_MS, TOLERANCE, Call, Number, Plan, total_of
from .read import Source
from .values import Fault, Judge, same

__all__ = ["LEAST_CALLS", "LEAST_RESERVE_MS", "Checked", "added", "check", "retry_sum"]

LEAST_RESERVE_MS = 100
"""For what is our own: serialization, templates, the answer itself."""
LEAST_CALLS = 3
_MOST_SHOWN = 12  # addends; the sum of more is told by its first ones

_PLAN_KEYS = {
    "total_ms": "the milliseconds the whole request may take",
    "reserve_ms": f"the milliseconds kept for our own work, at least {LEAST_RESERVE_MS}",
    "calls": f"a list of {LEAST_CALLS} calls or more",
    "worst_case_ms": "the sum of all budget_ms and reserve_ms",
}
_CALL_KEYS = {
    "name": "what the call is called",
    "budget_ms": "the milliseconds it may take, attempts and waits together",
    "max_attempts": "how often it is tried, the first time included",
}
_PLAN_NOTES = ("schema", "$schema", "note")


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found.

    Attributes:
        source: The name of the file.
        plan: The plan, ``None`` while there are faults in it.
        faults: All that is wrong.
        advice: What is allowed, and yet worth a thought.
    """

    source: str
    plan: Plan | None
    faults: tuple[Fault, ...]
    advice: tuple[Fault, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether there is nothing wrong."""
        return not self.faults


def check(source: Source, *, strict: bool = False) -> Checked:
    """Check a plan.

    Args:
        source: What stands in the file.
        strict: Whether advice counts as faults.
    """
    judge = Judge(source.places)
    judge.twice()
    plan = _plan(source.document, judge)
    if strict:
        judge.faults += judge.advice
        judge.advice.clear()
    faults = sorted(judge.faults, key=lambda fault: fault.line or 0)
    return Checked(source.name, None if faults else plan, tuple(faults), tuple(judge.advice))


def added(times: Iterable[object]) -> str:
    """Addends with the sign between them; of many the first few."""
    shown = [str(time) for time in times]
    if len(shown) > _MOST_SHOWN:
        shown = [*shown[:_MOST_SHOWN], f"{len(shown) - _MOST_SHOWN} more"]
    return " + ".join(shown)


def _plan(document: dict[str, Any], judge: Judge) -> Plan | None:
    judge.keys(document, "", _PLAN_KEYS, ("name", *_PLAN_NOTES))
    total = judge.time(document, "total_ms", "", 3000)
    reserve = judge.time(document, "reserve_ms", "", 150, zero=True)
    worst = judge.time(document, "worst_case_ms", "", 2850)
    if reserve is not None and reserve < LEAST_RESERVE_MS:
        judge.fault("reserve_ms", f"is {reserve} ms, less than {LEAST_RESERVE_MS}",
                    f"keep {LEAST_RESERVE_MS} ms or more for serialization, templates and the answer itself")  # fmt: skip
    judge.text(document, "name", "", "a name")
    judge.notes(document, "", _PLAN_NOTES)
    calls, budgets = _calls(document.get("calls"), judge) if "calls" in document else ([], None)
    if budgets is not None and reserve is not None:
        _sums(budgets, reserve, total, worst, judge)
    if total is None or reserve is None or worst is None or judge.faults:
        return None
    return Plan(total_ms=total, reserve_ms=reserve, calls=tuple(calls), worst_case_ms=worst, name=document.get("name", ""))


def _sums(budgets: list[Number], reserve: Number, total: Number | None, worst: Number | None, judge: Judge) -> None:
    """The whole: what is handed out must be what is written, and no more than there is."""
    real = total_of([*budgets, reserve])
    arithmetic = f"{added(budgets)} + reserve {reserve} = {real} ms"
    if total is not None and real > total + TOLERANCE:
        judge.fault("calls", f"{arithmetic}, more than total_ms {total}", f"cut {total_of([real, -total])} ms somewhere")
    if worst is not None and not same(worst, real):
        judge.fault("worst_case_ms", f"is {worst}, but {arithmetic}", f"write {real}")


def _calls(found: object, judge: Judge) -> tuple[list[Call], list[Number] | None]:
    """All calls, and their budgets where each of them has one."""
    if not isinstance(found, list):
        judge.fault("calls", "is no list", "write a list of objects, each with name, budget_ms and max_attempts")
        return [], None
    if len(found) < LEAST_CALLS:
        judge.fault("calls", f"there {'is' if len(found) == 1 else 'are'} {len(found)}, a plan has {LEAST_CALLS} or more",
                    "add each call that the request waits for")  # fmt: skip
    budgets: list[Number | None] = []
    calls: list[Call | None] = []
    names: dict[str, str] = {}
    for index, entry in enumerate(found):
        call, budget = _call(entry, f"calls[{index}]", names, judge)
        calls.append(call)
        budgets.append(budget)
    known = [budget for budget in budgets if budget is not None]
    return [call for call in calls if call is not None], known if len(known) == len(found) else None


def _call(entry: object, place: str, names: dict[str, str], judge: Judge) -> tuple[Call | None, Number | None]:
    if not isinstance(entry, dict):
        judge.fault(place, "is no object", "write an object with name, budget_ms and max_attempts")
        return None, None
    judge.keys(entry, place, _CALL_KEYS, ("attempt_ms", "base_ms", "note"))
    name = judge.text(entry, "name", place, "a name")
    budget = judge.time(entry, "budget_ms", place, 900)
    attempts = judge.whole(entry, "max_attempts", place, MOST_ATTEMPTS, 2)
    attempt = judge.time(entry, "attempt_ms", place, 400)
    base = judge.time(entry, "base_ms", place, 100, zero=True)
    judge.notes(entry, place, ("note",))
    if name is not None and names.setdefault(name, place) != place:
        judge.fault(f"{place}.name", f"{name!r} is taken by {names[name]}", "give each call a name of its own")
    unsure = ("attempt_ms" in entry and attempt is None) or ("base_ms" in entry and base is None)
    if budget is None or attempts is None or unsure:
        return None, budget
    call = Call(name=name or place, budget_ms=budget, max_attempts=attempts, given_attempt_ms=attempt, given_base_ms=base)
    if not call.fits:
        _retries(call, place, judge)
    return call, budget


def retry_sum(call: Call) -> str:
    """The worst case of a call, as arithmetic: ``3 x 300 + 100 + 200 = 1200 ms``."""
    waits = call.ceilings() if call.base_ms else []
    more = ["..."] if waits and len(waits) < call.max_attempts - 1 else []
    addends = [f"{call.max_attempts} x {call.attempt_ms}", *map(str, waits), *more]
    worst = call.retry_worst_ms
    return f"{' + '.join(addends)} = {worst} ms" + ("" if worst < CAP_MS else " or longer")


def _retries(call: Call, place: str, judge: Judge) -> None:
    """The retries of a call do not fit into its budget: a fault where the plan says how they go, else advice."""
    say = judge.fault if call.given else judge.advise
    what = f"with retries {retry_sum(call)}, more than budget_ms {call.budget_ms}"
    say(place, what, f"set {' or '.join(_ways(call))}")


def _ways(call: Call) -> list[str]:
    """What would make it fit."""
    each = int((call.budget_ms - call.waits_ms) / call.max_attempts)
    ways = [f"attempt_ms to at most {each}"] if each >= 1 else []
    fewer = _most_attempts(call)
    if fewer >= 1:
        ways.append(f"max_attempts to at most {fewer}")
    if call.given_attempt_ms is not None and call.retry_worst_ms <= MOST_MS:
        ways.append(f"budget_ms to at least {call.retry_worst_ms}")
    return ways or [f"attempt_ms to at most {call.budget_ms}"]


def _most_attempts(call: Call) -> int:
    """How many attempts fit, found by halving: a plan may say a billion."""
    fit, too_many = 0, call.max_attempts
    while too_many - fit > 1:
        middle = (fit + too_many) // 2
        if replace(call, max_attempts=middle).fits:
            fit = middle
        else:
            too_many = middle
    return fit
