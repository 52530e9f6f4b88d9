"""Calls cut by their callers count for nothing while the target answers, and open the circuit when nobody is at home."""

from __future__ import annotations

import pytest

from seawall import CircuitBreaker
from seawall.outcome import CUT, DISCARDED, FAILURE, IGNORED, SUCCESS, Outcome
from tests.clock import ManualClock


def make(clock: ManualClock, attempt_limit: float | None = 4.0) -> CircuitBreaker:
    return CircuitBreaker(3, 10.0, clock, attempt_limit=attempt_limit, name="CORE")


def cut(breaker: CircuitBreaker, at: float, began: float | None = None) -> str:
    clock = breaker.clock
    assert isinstance(clock, ManualClock)
    clock.set(at)
    breaker.settle(breaker.admit(), CUT, began=began)
    return str(breaker.state)


@pytest.mark.fault("F46")
@pytest.mark.parametrize(("cuts", "states"), [
    pytest.param([(1, 0), (2, 1), (4, 3)], ["CLOSED", "CLOSED", "OPEN"], id="enough of them, the oldest began a limit ago"),
    pytest.param([(1, 0), (2, 1), (3.9, 3), (4, 3.5)], ["CLOSED"] * 3 + ["OPEN"], id="enough, but not for long enough yet"),
    pytest.param([(1, 0), (50, 49)], ["CLOSED", "CLOSED"], id="for long enough, but too few"),
    pytest.param([(1, 0.9)] * 40, ["CLOSED"] * 40, id="a burst of them within a second"),
    pytest.param([(5, 4.9), (5, 4.9), (5, 0.5)], ["CLOSED", "CLOSED", "OPEN"], id="the oldest may be the last to end"),
    pytest.param([(1, None), (2, None), (4, None), (5, None)], ["CLOSED"] * 3 + ["OPEN"],
                 id="with no known beginning the moment of the cut stands in"),
    pytest.param([(1, 99), (2, 99), (5, 99)], ["CLOSED", "CLOSED", "OPEN"], id="a beginning in the future is not believed"),
])
def test_when_cuts_open(cuts: list[tuple[float, float | None]], states: list[str], manual_clock: ManualClock) -> None:
    breaker = make(manual_clock)
    assert [cut(breaker, at, began) for at, began in cuts] == states


def test_they_count_as_that_many_failures_and_say_so(manual_clock: ManualClock) -> None:
    breaker, reasons = make(manual_clock), []
    breaker.listen(lambda event: reasons.append(event.reason))
    breaker.settle(breaker.admit(), FAILURE)
    for at in (1, 2, 5.5):
        cut(breaker, at, 0.5)
    assert (breaker.state, breaker.failures, breaker.retry_at) == ("OPEN", 4, 15.5)
    assert reasons == ["no answer for 5 s, 3 calls in a row cut by their callers"]


@pytest.mark.fault("F46")
@pytest.mark.parametrize("answer", [SUCCESS, FAILURE, IGNORED])
def test_any_answer_in_between_forgets_the_cuts(answer: Outcome, manual_clock: ManualClock) -> None:
    breaker = make(manual_clock)
    cut(breaker, 10, 1)
    cut(breaker, 10, 1)
    breaker.settle(breaker.admit(), answer)
    assert [cut(breaker, at, 10) for at in (20, 21, 22)] == ["CLOSED", "CLOSED", "OPEN"]


def test_a_call_that_never_ran_is_no_answer(manual_clock: ManualClock) -> None:
    breaker = make(manual_clock)
    for at in (1, 2):
        cut(breaker, at, 0)
        breaker.discard(breaker.admit())
    breaker.settle(breaker.admit(), DISCARDED)
    assert cut(breaker, 4, 0) == "OPEN"


def test_without_an_attempt_limit_the_open_time_is_the_patience(manual_clock: ManualClock) -> None:
    breaker = make(manual_clock, attempt_limit=None)
    assert [cut(breaker, at, 0) for at in (1, 2, 9.9, 10)] == ["CLOSED", "CLOSED", "CLOSED", "OPEN"]


def test_cuts_do_not_break_a_row_of_failures(manual_clock: ManualClock) -> None:
    breaker = make(manual_clock)
    for _ in range(3):
        cut(breaker, 0)
        breaker.settle(breaker.admit(), FAILURE)
    assert breaker.state == "OPEN"


def test_a_cut_of_a_call_from_before_the_trip_is_void(manual_clock: ManualClock) -> None:
    breaker = make(manual_clock)
    old = [breaker.admit() for _ in range(3)]
    for _ in range(3):
        breaker.settle(breaker.admit(), FAILURE)
    manual_clock.set(10)
    breaker.settle(breaker.admit(), SUCCESS)
    manual_clock.set(100)
    for token in old:
        breaker.settle(token, CUT, began=0)
    assert (breaker.state, breaker.failures) == ("CLOSED", 0)


def test_forced_closed_does_not_trip_on_cuts_either(manual_clock: ManualClock) -> None:
    breaker = make(manual_clock)
    breaker.set_mode("FORCED_CLOSED")
    assert {cut(breaker, at, 0) for at in range(1, 50)} == {"CLOSED"}
    breaker.set_mode("ENFORCE")
    assert cut(breaker, 50) == "OPEN"
