"""A plan is checked: each fault is told at once, with its place, its arithmetic, and what to do."""

from __future__ import annotations

import math
import time
from typing import Any

import pytest

from tests.budgetplan.plans import DROP, GOOD, changed, checked, faults

pytestmark = pytest.mark.req("BUDGET-8")


def test_a_good_plan_has_no_faults_and_no_advice() -> None:
    found = checked(GOOD, strict=True)
    assert (found.valid, found.faults, found.advice) == (True, (), ())
    assert found.plan is not None
    assert (found.plan.calls_ms, found.plan.worst_case_ms, found.plan.spare_ms) == (2700, 2850, 150)


KEYS = "there are total_ms, reserve_ms, calls, worst_case_ms, name, schema, $schema, note"
WHOLE = "the milliseconds the whole request may take"


@pytest.mark.parametrize(("changes", "fault"), [
    # The whole
    ({"total_ms": 2500}, "calls: 600 + 1200 + 900 + reserve 150 = 2850 ms, more than total_ms 2500: cut 350 ms somewhere"),
    ({"total_ms": 2849}, "calls: 600 + 1200 + 900 + reserve 150 = 2850 ms, more than total_ms 2849: cut 1 ms somewhere"),
    ({"worst_case_ms": 2849}, "worst_case_ms: is 2849, but 600 + 1200 + 900 + reserve 150 = 2850 ms: write 2850"),
    ({"worst_case_ms": 4000}, "worst_case_ms: is 4000, but 600 + 1200 + 900 + reserve 150 = 2850 ms: write 2850"),
    ({"worst_case_ms": DROP}, "worst_case_ms: is missing: write the sum of all budget_ms and reserve_ms"),
    ({"total_ms": DROP}, f"total_ms: is missing: write {WHOLE}"),
    ({"total_ms": 0}, "total_ms: is 0 ms, no time to speak of: write milliseconds, as in 3000; at least 0.001"),
    ({"total_ms": -1}, "total_ms: is -1, less than nothing: write milliseconds, as in 3000"),
    ({"total_ms": True}, "total_ms: is true, no number: write milliseconds, as in 3000"),
    ({"total_ms": None}, "total_ms: is null, no number: write milliseconds, as in 3000"),
    ({"total_ms": "3000"}, "total_ms: is '3000', no number: write milliseconds, as in 3000, without quotes"),
    ({"total_ms": [1]}, "total_ms: is a list, no number: write milliseconds, as in 3000"),
    ({"total_ms": math.nan}, "total_ms: is NaN, no finite number: write milliseconds, as in 3000"),
    ({"total_ms": math.inf}, "total_ms: is Infinity, no finite number: write milliseconds, as in 3000"),
    ({"total_ms": 86_400_001},
     "total_ms: is 86400001 ms, more than a day: write milliseconds, as in 3000; at most 86400000"),
    ({"reserve_ms": 99, "worst_case_ms": 2799},
     "reserve_ms: is 99 ms, less than 100: keep 100 ms or more for serialization, templates and the answer itself"),
    ({"reserve_ms": 0, "worst_case_ms": 2700},
     "reserve_ms: is 0 ms, less than 100: keep 100 ms or more for serialization, templates and the answer itself"),
    # Calls
    ({"calls": DROP}, "calls: is missing: write a list of 3 calls or more"),
    ({"calls": {}}, "calls: is no list: write a list of objects, each with name, budget_ms and max_attempts"),
    ({"calls_2": DROP, "worst_case_ms": 1950},
     "calls: there are 2, a plan has 3 or more: add each call that the request waits for"),
    ({"calls_1": 7}, "calls[1]: is no object: write an object with name, budget_ms and max_attempts"),
    ({"calls_1_name": DROP}, "calls[1].name: is missing: write what the call is called"),
    ({"calls_1_name": " "}, "calls[1].name: is ' ': write a name: 1 to 100 characters on one line"),
    ({"calls_1_name": "a\nb"}, "calls[1].name: is 'a\\nb': write a name: 1 to 100 characters on one line"),
    ({"calls_1_name": 5}, "calls[1].name: is 5: write a name: 1 to 100 characters on one line"),
    ({"calls_2_name": "login"}, "calls[2].name: 'login' is taken by calls[0]: give each call a name of its own"),
    ({"calls_1_budget_ms": DROP},
     "calls[1].budget_ms: is missing: write the milliseconds it may take, attempts and waits together"),
    ({"calls_1_budget_ms": -5}, "calls[1].budget_ms: is -5, less than nothing: write milliseconds, as in 900"),
    ({"calls_1_max_attempts": DROP},
     "calls[1].max_attempts: is missing: write how often it is tried, the first time included"),
    ({"calls_1_max_attempts": 0}, "calls[1].max_attempts: is 0: write a whole number from 1, as in 2"),
    ({"calls_1_max_attempts": 2.5}, "calls[1].max_attempts: is 2.5: write a whole number from 1, as in 2"),
    ({"calls_1_max_attempts": False}, "calls[1].max_attempts: is false, no number: write a whole number from 1, as in 2"),
    ({"calls_1_max_attempts": 10**30},
     f"calls[1].max_attempts: is {10**30}: write a whole number from 1 to 1000000000"),
    ({"calls_1_attempt_ms": 0},
     "calls[1].attempt_ms: is 0 ms, no time to speak of: write milliseconds, as in 400; at least 0.001"),
    ({"calls_1_base_ms": -1}, "calls[1].base_ms: is -1, less than nothing: write milliseconds, as in 100"),
    ({"calls_1_note": 1}, "calls[1].note: is 1: write a text"),
    # Retries: what a plan says of them has to fit
    ({"calls_1_attempt_ms": 400},
     "calls[1]: with retries 3 x 400 + 100 + 200 = 1500 ms, more than budget_ms 1200: set attempt_ms to at most 300 or "
     "max_attempts to at most 2 or budget_ms to at least 1500"),
    ({"calls_1_max_attempts": 4},
     "calls[1]: with retries 4 x 300 + 100 + 200 + 400 = 1900 ms, more than budget_ms 1200: set attempt_ms to at most 125 "
     "or max_attempts to at most 3 or budget_ms to at least 1900"),
    ({"calls_2_attempt_ms": 901},
     "calls[2]: with retries 1 x 901 = 901 ms, more than budget_ms 900: set attempt_ms to at most 900 or budget_ms to at "
     "least 901"),
    ({"calls_2_base_ms": 1, "calls_2_max_attempts": 2},
     "calls[2]: with retries 2 x 450 + 1 = 901 ms, more than budget_ms 900: set attempt_ms to at most 449 or max_attempts "
     "to at most 1"),
    # Keys
    ({"tolal_ms": 1}, "tolal_ms: no such key: did you mean total_ms?"),
    ({"calls_0_atempt_ms": 1}, "calls[0].atempt_ms: no such key: did you mean attempt_ms?"),
    ({"colour": 1}, f"colour: no such key: {KEYS}"),
    ({"a.b\n": 1}, f"'a.b\\n': no such key: {KEYS}"),
])  # fmt: skip
def test_each_fault_says_where_what_and_what_to_do(changes: dict[str, Any], fault: str) -> None:
    assert faults(changed(**changes)) == [fault]


def test_every_fault_is_told_at_once() -> None:
    plan = changed(total_ms=2000, worst_case_ms=1, calls_0_attempt_ms=300, calls_1_name="login", calls_2_budget=1)
    assert [fault.partition(":")[0] for fault in faults(plan)] == [
        "calls[0]", "calls[1].name", "calls[2].budget", "calls", "worst_case_ms"]


def test_an_empty_object_lacks_everything() -> None:
    assert [fault.partition(":")[0] for fault in faults({})] == ["total_ms", "reserve_ms", "calls", "worst_case_ms"]


def test_a_sum_that_cannot_be_known_is_not_guessed() -> None:
    plan = changed(calls_1_budget_ms="much", total_ms=10)
    assert [fault.partition(":")[0] for fault in faults(plan)] == ["calls[1].budget_ms"]


def test_retries_of_which_the_plan_says_nothing_are_advice() -> None:
    plan = changed(calls_2_max_attempts=2)
    found = checked(plan)
    assert (found.valid, [str(advice) for advice in found.advice]) == (True, [
        "calls[2]: with retries 2 x 450 + 100 = 1000 ms, more than budget_ms 900: set attempt_ms to at most 400 or "
        "max_attempts to at most 1"])


def test_strict_makes_a_fault_of_advice() -> None:
    plan = changed(calls_2_max_attempts=2)
    found = checked(plan, strict=True)
    assert (found.valid, found.plan, len(found.faults), found.advice) == (False, None, 1, ())


def test_either_of_attempt_and_base_makes_retries_a_promise() -> None:
    assert len(faults(changed(calls_2_max_attempts=2, calls_2_base_ms=100))) == 1
    assert len(faults(changed(calls_2_max_attempts=2, calls_2_attempt_ms=450))) == 1
    assert faults(changed(calls_2_max_attempts=2, calls_2_base_ms=0)) == []


@pytest.mark.parametrize("attempts", [61, 62, 63, 1000, 100_000, 10**9])
def test_any_number_of_attempts_is_reckoned_at_once(attempts: int) -> None:
    began = time.monotonic()
    for more in ({}, {"calls_2_base_ms": 0.001}, {"calls_2_attempt_ms": 0.001}):
        found = checked(changed(calls_2_max_attempts=attempts, **more))
        assert found.valid is (not more)
        (told,) = found.faults or found.advice
        assert "1000000000000000 ms or longer, more than budget_ms 900" in told.what
    assert faults(changed(calls_2_max_attempts=10**5, calls_2_attempt_ms=0.009, calls_2_base_ms=0)) == []
    assert time.monotonic() - began < 10


def test_fractions_that_went_through_decimal_notation_add_up() -> None:
    calls = [{"name": name, "budget_ms": 1000 / 3, "max_attempts": 1} for name in "abc"]
    assert faults({"total_ms": 1100, "reserve_ms": 100, "calls": calls, "worst_case_ms": 1100}) == []
    calls = [{"name": name, "budget_ms": 0.1 + 0.2, "max_attempts": 1} for name in "abc"]
    assert faults({"total_ms": 100.9, "reserve_ms": 100, "calls": calls, "worst_case_ms": 100.9}) == []
    assert len(faults({"total_ms": 100.89, "reserve_ms": 100, "calls": calls, "worst_case_ms": 100.9})) == 1


def test_a_sum_of_many_calls_is_told_by_its_first() -> None:
    calls = [{"name": str(n), "budget_ms": 1, "max_attempts": 1} for n in range(100)]
    (fault,) = faults({"total_ms": 150, "reserve_ms": 100, "calls": calls, "worst_case_ms": 200})
    assert fault.startswith("calls: 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 88 more + reserve 100 = 200 ms")
