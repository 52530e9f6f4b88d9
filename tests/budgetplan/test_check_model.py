"""The check agrees with a slow, obvious model that adds one wait after the other in exact fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from seawall.budgetplan.model import CAP_MS, Call
from tests.budgetplan.plans import checked

pytestmark = pytest.mark.req("BUDGET-8")

# Quarters are exact in binary and in decimal notation.
times = st.one_of(st.integers(1, 4000), st.integers(1, 16000).map(lambda quarters: quarters / 4))
waits = st.one_of(st.just(0), st.integers(1, 400), st.integers(1, 400).map(lambda quarters: quarters / 4))


def calls(name: str) -> st.SearchStrategy[dict[str, Any]]:
    required = {"name": st.just(name), "budget_ms": times, "max_attempts": st.integers(1, 9)}
    return st.fixed_dictionaries(required, optional={"attempt_ms": times, "base_ms": waits})


def worst(call: dict[str, Any]) -> Fraction:
    """One attempt after the other, one wait after the other."""
    attempts = call["max_attempts"]
    attempt = Fraction(call["attempt_ms"]) if "attempt_ms" in call else Fraction(call["budget_ms"]) / attempts
    base = Fraction(call.get("base_ms", 100))
    spent = Fraction(0)
    for number in range(1, attempts + 1):
        spent += attempt
        if number < attempts:
            spent += base * 2 ** (number - 1)
    return spent


def too_long(call: dict[str, Any]) -> bool:
    return worst(call) > Fraction(call["budget_ms"])


def promised(call: dict[str, Any]) -> bool:
    return "attempt_ms" in call or "base_ms" in call


@settings(max_examples=300)
@given(st.tuples(*map(calls, "abc")), st.integers(100, 400), st.integers(-50, 400), st.sampled_from([0, 0, 0, -1, 0.25]))
@example(({"name": "a", "budget_ms": 1000, "max_attempts": 3, "attempt_ms": 200},
          {"name": "b", "budget_ms": 1, "max_attempts": 1}, {"name": "c", "budget_ms": 1, "max_attempts": 1}), 100, 0, 0)
def test_a_plan_is_valid_exactly_when_the_model_says_so(
    calls: tuple[dict[str, Any], ...], reserve: int, spare: int, wrong: float
) -> None:
    real = sum(Fraction(call["budget_ms"]) for call in calls) + reserve
    total, written = float(real) + spare, float(real) + wrong
    if total <= 0 or written <= 0:
        return
    found = checked({"total_ms": total, "reserve_ms": reserve, "calls": list(calls), "worst_case_ms": written})
    places = {fault.where for fault in found.faults}
    assert ("calls" in places) is (real > Fraction(total))
    assert ("worst_case_ms" in places) is (real != Fraction(written))
    for index, call in enumerate(calls):
        assert (f"calls[{index}]" in places) is (promised(call) and too_long(call))
    advice = {advice.where for advice in found.advice}
    assert advice == {f"calls[{index}]" for index, call in enumerate(calls) if not promised(call) and too_long(call)}
    assert found.valid is (not places)


@settings(max_examples=200)
@given(calls("a"))
def test_the_closed_form_is_the_sum(call: dict[str, Any]) -> None:
    made = Call(name="a", budget_ms=call["budget_ms"], max_attempts=call["max_attempts"],
                given_attempt_ms=call.get("attempt_ms"), given_base_ms=call.get("base_ms"))  # fmt: skip
    assert made.retry_worst_ms == float(worst(call))
    assert made.waits_ms == sum(made.ceilings(100))
    parts = list(made.segments())
    assert sum(length for _, _, length in parts) == pytest.approx(made.budget_ms, abs=0.01)
    ends = 0.0
    for _, at, length in parts:
        assert at == pytest.approx(ends, abs=0.01)
        ends = at + length


@settings(max_examples=100)
@given(st.integers(1, 80), st.sampled_from([0, 0.001, 1, 100, 86_400_000]))
def test_beyond_every_clock_the_sum_is_the_cap(attempts: int, base: float) -> None:
    made = Call(name="a", budget_ms=1, max_attempts=attempts, given_attempt_ms=1, given_base_ms=base)
    exact = sum(Fraction(base) * 2**done for done in range(attempts - 1))
    assert made.waits_ms == (CAP_MS if exact >= CAP_MS else pytest.approx(float(exact), abs=0.001))
    assert len(list(made.segments())) <= 2 * attempts
