"""F06: a slow call from before the trip that ends after it is void: success does not close, failure moves no open time."""

from __future__ import annotations

import pytest

from seawall import CircuitBreaker
from seawall.outcome import CUT, FAILURE, IGNORED, SUCCESS, Outcome
from tests.clock import ManualClock
from tests.policies.play import play

pytestmark = pytest.mark.fault("F06")


@pytest.mark.parametrize("outcome", [SUCCESS, FAILURE, IGNORED, CUT])
def test_while_open(outcome: Outcome, manual_clock: ManualClock) -> None:
    breaker = CircuitBreaker(2, 10.0, manual_clock)
    slow = breaker.admit()
    play(breaker, [(0, "fail", "failure CLOSED"), (0, "fail", "failure OPEN")])
    manual_clock.set(5)
    breaker.settle(slow, outcome)
    play(breaker, [(5, "state", "OPEN"), (5, "failures", 2), (5, "retry_at", 10), (9.9, "allow", False),
                   (10, "allow", True)])


@pytest.mark.parametrize("outcome", [SUCCESS, FAILURE, IGNORED, CUT])
def test_while_a_trial_is_out(outcome: Outcome, manual_clock: ManualClock) -> None:
    breaker = CircuitBreaker(2, 10.0, manual_clock)
    slow = breaker.admit()
    play(breaker, [(0, "fail", "failure CLOSED"), (0, "fail", "failure OPEN")])
    manual_clock.set(10)
    trial = breaker.admit()
    breaker.settle(slow, outcome)
    play(breaker, [(10, "state", "HALF_OPEN"), (10, "trials", 1)])
    breaker.settle(trial, SUCCESS)
    assert breaker.state == "CLOSED"


@pytest.mark.parametrize("outcome", [SUCCESS, FAILURE])
def test_after_it_has_closed_again(outcome: Outcome, manual_clock: ManualClock) -> None:
    breaker = CircuitBreaker(2, 10.0, manual_clock)
    slow = breaker.admit()
    play(breaker, [(0, "fail", "failure CLOSED"), (0, "fail", "failure OPEN"), (10, "ok", "success CLOSED"),
                   (10, "fail", "failure CLOSED")])
    breaker.settle(slow, outcome)
    assert (breaker.state, breaker.failures) == ("CLOSED", 1)
