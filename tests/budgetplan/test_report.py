"""The report has its four sections, holds every number of both files, and argues with them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.budgetplan.plans import GOOD, changed
from tests.budgetplan.reports import PROBE, absent, written

pytestmark = pytest.mark.req("BUDGET-9")

HEADINGS = {
    "en": ["What takes the time now", "How the phases were divided", "What share retries take",
           "What happens past the budget"],
    "ko": ["지금 무엇이 시간을 먹는가", "구간을 어떻게 나눴나", "재시도가 먹는 몫", "예산을 넘겼을 때 무엇을 하나"],
}


def only(*kinds: str) -> dict[str, Any]:
    """The measurement with some of its rows, and without limits."""
    return {"probes": [row for row in PROBE["probes"] if row["kind"] in kinds]}


@pytest.mark.parametrize("lang", ["en", "ko"])
def test_there_are_exactly_four_sections_with_their_headings(lang: str) -> None:
    told = written(changed(calls_0_name="## x", calls_1_name="# y", name="## z"), lang=lang)
    assert [line[3:] for line in told.splitlines() if line.startswith("##")] == HEADINGS[lang]
    assert re.findall(r"<h2>(.*?)</h2>", written(GOOD, lang=lang, html=True)) == HEADINGS[lang]


@pytest.mark.parametrize("html", [False, True])
@pytest.mark.parametrize("lang", ["en", "ko"])
def test_every_number_of_both_files_stands_in_it(lang: str, html: bool) -> None:
    probe = PROBE | {"runs": 7.25, "host": {"load": [0.03]}}
    plan = changed(calls_0_base_ms=99.5, calls_1_attempt_ms=233.25, calls_2_base_ms=0)
    told = written(plan, probe, lang=lang, html=html)
    assert absent([plan, probe], told) == []


amounts = st.integers(1, 4000) | st.floats(0.01, 4000)
optional = {"attempt_ms": st.just(0.5), "base_ms": st.sampled_from([0, 0.001, 0.25])}
calls = st.fixed_dictionaries({"budget_ms": amounts, "max_attempts": st.integers(1, 2000)}, optional=optional)
rows = st.fixed_dictionaries({
    "kind": st.sampled_from(["refused", "connect_timeout", "read_timeout"]), "target": st.text(max_size=9),
    "elapsed_ms": st.integers(0, 10**6) | st.floats(0, 10**6)})


@settings(max_examples=60)
@given(st.lists(calls, min_size=3, max_size=5), st.integers(100, 900), st.lists(rows, min_size=1, max_size=4),
       st.sampled_from(["en", "ko"]), st.booleans())  # fmt: skip
def test_whatever_is_in_them(
    calls: list[dict[str, Any]], reserve: int, rows: list[dict[str, Any]], lang: str, html: bool
) -> None:
    for index, call in enumerate(calls):
        call["name"] = f"call {index}"
        if "attempt_ms" in call or "base_ms" in call:
            call["max_attempts"], call["attempt_ms"], call["budget_ms"] = 2, 0.5, max(call["budget_ms"], 101)
    worst = round(sum(call["budget_ms"] for call in calls) + reserve, 3)
    plan = {"total_ms": worst + 1, "reserve_ms": reserve, "calls": calls, "worst_case_ms": worst}
    told = written(plan, {"probes": rows}, lang=lang, html=html)
    assert absent([plan, rows], told) == []
    if not html:
        assert [line[3:] for line in told.splitlines() if line.startswith("##")] == HEADINGS[lang]


def test_it_says_what_limits_of_today_come_to() -> None:
    told = written(GOOD)
    assert "300.6 + 1001.3 = 1301.9 ms today" in told
    assert "3 x 1301.9 = 3905.7 ms" in told
    assert "6 x 1301.9 = 7811.4 ms" in told
    assert "That is 2504 times a refusal." in told


def test_it_says_what_share_retries_take_in_numbers() -> None:
    told = written(GOOD)
    assert "| `price` | 3 x 300 = 900 | 100 | 100 + 200 = 300 | 1200 | 1200 | 900 ms, 75 % |" in told
    assert "| `stock` | 1 x 900 = 900 | 100 | 0 | 900 | 900 | 0 ms, 0 % |" in told
    assert "Of the 2700 ms for calls, 1250 ms (46.3 %) are there only for second and further attempts" in told
    assert "All waits together take 400 ms at most and 200 ms on average." in told
    assert "3 calls of a request become up to 6 attempts, 2 times as many" in told


def test_it_counts_the_workers_that_each_limit_ties_up() -> None:
    told = written(GOOD)
    assert "`workers = rate x limit`" in told
    for row in ("| the read limit (measured) | 1001.3 | 10 | 50.1 |", "| the total | 3000 | 30 | 150 |",
                "| 30 s | 30000 | 300 | 1500 |"):  # fmt: skip
        assert row in told
    assert "for 50 requests a second at 3000 ms" in told
    assert "the first one comes back 27000 ms later" in told
    assert "1350 requests stand in line" in told


def test_it_counts_for_the_rates_that_are_given() -> None:
    told = written(GOOD, rates=(4,))
    assert "| 30 s | 30000 | 120 |" in told
    assert "/s |" in told
    assert "Workers at 10/s" not in told


@pytest.mark.parametrize("lang", ["en", "ko"])
@pytest.mark.parametrize("kinds", [
    ("refused",), ("connect_timeout",), ("read_timeout",), ("connect_timeout", "read_timeout"),
])  # fmt: skip
def test_what_was_not_measured_is_not_spoken_of(kinds: tuple[str, ...], lang: str) -> None:
    told = written(GOOD, only(*kinds), lang=lang)
    for kind, word in (("refused", "0.4"), ("connect_timeout", "300.6"), ("read_timeout", "1001.3")):
        assert (word in told) is (kind in kinds)
    assert re.findall(r"None\b(?! of)|\bnan\b|\binf\b", told) == []
    assert re.findall(r"\{\w*\}", told) == []


def test_retries_that_do_not_fit_are_named() -> None:
    told = written(changed(calls_2_max_attempts=3))
    assert "`stock`: with retries 3 x 300 + 100 + 200 = 1200 ms, more than its budget of 900 ms." in told
    assert "For `stock` the plan gives no limit of an attempt" in told


def test_a_plan_without_retries_says_that_they_take_nothing() -> None:
    plan = changed(calls_0_max_attempts=1, calls_1_max_attempts=1)
    assert "No call is tried twice, so of the 2700 ms for calls retries take 0 ms (0 %)." in written(plan)


def test_a_billion_attempts_are_told_in_a_report_of_the_same_length() -> None:
    told = written(changed(calls_2_max_attempts=10**9))
    assert "1000000000000000" in told
    assert len(told) < 20_000


def test_limits_that_fit_into_the_attempts_are_said_to_fit() -> None:
    plan = {"total_ms": 9000, "reserve_ms": 100, "worst_case_ms": 6100,
            "calls": [{"name": name, "budget_ms": 2000, "max_attempts": 1} for name in "abc"]}  # fmt: skip
    told = written(plan)
    assert "leave 1699.4 ms of it for the other side's work" in told
    assert "The 1001.3 ms of silence that were measured fit into an attempt of each call." in told
    assert "It fits today." in told
