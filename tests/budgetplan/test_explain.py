"""A plan is explained: rows with worst case and share, a time line, and a document for programs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.budgetplan.explain import document, rows, summed_up, time_line, wide
from tests.budgetplan.plans import GOOD, changed, checked
from tests.budgetplan.reports import plan_of

pytestmark = pytest.mark.req("BUDGET-8")


def test_each_call_has_its_row_and_so_have_reserve_and_whole() -> None:
    found = rows(plan_of(GOOD))
    assert [(row["call"], row["begins_ms"], row["ends_ms"], row["share"]) for row in found] == [
        ("login", 0, 600, "0.20"), ("price", 600, 1800, "0.40"), ("stock", 1800, 2700, "0.30"),
        ("(reserve)", 2700, 2850, "0.05"), ("(worst case)", 0, 2850, "0.95")]
    columns = ("max_attempts", "attempt_ms", "wait_ceilings_ms", "retry_worst_ms")
    assert [tuple(row[column] for column in columns) for row in found[:3]] == [
        (2, 250, "100", 600), (3, 300, "100 + 200", 1200), (1, 900, "0", 900)]


def test_it_is_summed_up_in_a_line() -> None:
    assert summed_up(plan_of(GOOD)) == "600 + 1200 + 900 + reserve 150 = 2850 ms of total_ms 3000, 150 ms left over"


def test_the_time_line_draws_attempts_waits_rests_and_the_reserve() -> None:
    assert time_line(plan_of(changed(calls_2_attempt_ms=600)), 60) == [
        "login     |#####..#####                                                |",
        "price     |            ######..######....######                        |",
        "stock     |                                    ############------      |",
        "(reserve) |                                                      ===   |",
        "           0                                                     3000 ms"]


@given(st.lists(st.tuples(st.integers(1, 5000), st.integers(1, 10**9)), min_size=3, max_size=6), st.integers(100, 9000),
       st.integers(0, 5000))  # fmt: skip
def test_bars_have_their_width_whatever_the_plan(calls: list[tuple[int, int]], reserve: int, spare: int) -> None:
    entries = [{"name": "가나다" * number + "x", "budget_ms": budget, "max_attempts": attempts}
               for number, (budget, attempts) in enumerate(calls)]  # fmt: skip
    worst = sum(budget for budget, _ in calls) + reserve
    plan = plan_of({"total_ms": worst + spare, "reserve_ms": reserve, "calls": entries, "worst_case_ms": worst})
    *bars, _axis = time_line(plan, 40)
    assert {wide(bar) for bar in bars} == {wide(bars[0])}
    assert all(bar.rpartition("|")[0].rpartition("|")[2].strip() for bar in bars)


def test_programs_get_numbers_of_a_valid_plan_and_the_faults_of_another() -> None:
    found = document(checked(GOOD))
    assert (found["schema"], found["file"], found["valid"], found["faults"]) == ("seawall.plan/1", "plan.json", True, [])
    assert [found[key] for key in ("total_ms", "reserve_ms", "calls_ms", "worst_case_ms", "spare_ms")] == [
        3000, 150, 2700, 2850, 150]
    assert found["calls"][1] == {
        "name": "price", "budget_ms": 1200, "share": 0.4, "max_attempts": 3, "attempt_ms": 300, "base_ms": 100,
        "wait_ceilings_ms": [100, 200], "waits_ms": 300, "retry_worst_ms": 1200, "fits": True, "begins_ms": 600,
        "ends_ms": 1800}  # fmt: skip
    found = document(checked(changed(total_ms=1)))
    assert found["faults"] == [{
        "where": "calls", "line": None, "what": "600 + 1200 + 900 + reserve 150 = 2850 ms, more than total_ms 1",
        "fix": "cut 2849 ms somewhere"}]  # fmt: skip
    assert "calls" not in found
