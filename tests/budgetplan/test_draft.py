"""A draft is a plan in which even the strict check finds nothing."""

from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seawall.budgetplan.draft import as_json, as_toml, draft, limit_of_today
from tests.budgetplan.plans import checked

pytestmark = pytest.mark.req("BUDGET-8")

limits = st.none() | st.floats(0, 5000)


@given(st.integers(3, 12), st.none() | st.integers(1, 20_000), st.integers(100, 1000), limits)
@example(3, 103, 100, None)
@example(3, 103, 100, 1.0)
def test_every_draft_is_valid_even_strictly(calls: int, total: int | None, reserve: int, slow: float | None) -> None:
    names = [f"call {number}" for number in range(calls)]
    try:
        made = draft(names, total_ms=total, reserve_ms=reserve, slow_ms=slow)
    except ValueError:
        assert (3000 if total is None else total) - reserve < calls
        return
    found = checked(made, strict=True)
    assert found.faults == ()
    assert found.plan is not None
    assert found.plan.spare_ms < calls
    assert [call.name for call in found.plan.calls] == names


def test_two_attempts_where_both_and_the_wait_fit() -> None:
    assert draft(["a", "b", "c"], total_ms=3100)["calls"][0] == {
        "name": "a", "budget_ms": 1000, "max_attempts": 2, "attempt_ms": 450, "base_ms": 100}
    assert draft(["a", "b", "c"], total_ms=400)["calls"][0] == {
        "name": "a", "budget_ms": 100, "max_attempts": 1, "attempt_ms": 100}


def test_an_attempt_gets_what_a_silent_party_takes_today_where_it_fits() -> None:
    assert limit_of_today([300.6, None]) == 300.6
    assert limit_of_today([None, None]) is None
    slow = limit_of_today([300.6, 1001.3])
    assert draft(slow_ms=slow)["total_ms"] == 3 * 1302 + 100
    for total, attempts, attempt in ((10_000, 2, 1302), (5000, 1, 1302), (2000, 1, 633)):
        call = draft(total_ms=total, slow_ms=slow)["calls"][0]
        assert (call["max_attempts"], call["attempt_ms"]) == (attempts, attempt)


def test_it_is_the_same_plan_in_json_and_in_toml() -> None:
    made = draft(['a "quoted" name', "이름", "\N{GRINNING FACE} \\ tab"], total_ms=4000)
    assert json.loads(as_json(made)) == tomllib.loads(as_toml(made)) == made
