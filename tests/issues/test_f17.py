"""F17: a trial that the breaker admits and a bulkhead refuses leaves the circuit as it was, and the trial is free."""

from __future__ import annotations

import pytest

from seawall import Bulkhead, BulkheadFullError, CircuitBreaker, CircuitOpenError, Target
from tests.clock import ManualClock
from tests.lines import Caller, assert_at_rest

pytestmark = pytest.mark.fault("F17")


def opened(clock: ManualClock) -> CircuitBreaker:
    breaker = CircuitBreaker(1, 10.0, clock)
    breaker.record_failure("E901")
    clock.advance(10.0)
    return breaker


def seven() -> int:
    return 7


def test_in_a_target_the_bulkhead_refuses_before_any_trial_is_taken(manual_clock: ManualClock) -> None:
    breaker, limit = opened(manual_clock), Bulkhead(1)
    target = Target("CORE", breaker=breaker, bulkhead=limit)
    running = Caller(limit)
    for _ in range(20):
        with pytest.raises(BulkheadFullError):
            target.call(int)
        assert (breaker.state, breaker.started, breaker.snapshot().trials) == ("OPEN", 0, 0)
    running.leave()
    assert target.call(int) == 0
    assert breaker.state == "CLOSED"
    assert_at_rest(limit)


def test_a_trial_refused_further_in_is_returned_and_counts_for_nothing(manual_clock: ManualClock) -> None:
    """Two decorators, the breaker outside: here the trial is out when the bulkhead refuses."""
    breaker, limit = opened(manual_clock), Bulkhead(1)
    guarded = breaker(limit(seven))
    running = Caller(limit)
    for _ in range(2):
        with pytest.raises(BulkheadFullError):
            guarded()
        assert (breaker.state, breaker.failures, breaker.snapshot().trials) == ("HALF_OPEN", 1, 0)
    running.leave()
    assert guarded() == 7
    assert breaker.state == "CLOSED"
    assert_at_rest(limit)


def test_three_refused_trials_in_a_row_wait_for_the_next_open_time_and_then_try_again(manual_clock: ManualClock) -> None:
    breaker, limit = opened(manual_clock), Bulkhead(1)
    guarded = breaker(limit(seven))
    running = Caller(limit)
    for _ in range(3):
        with pytest.raises(BulkheadFullError):
            guarded()
    with pytest.raises(CircuitOpenError):
        guarded()
    running.leave()
    manual_clock.advance(10.0)
    assert guarded() == 7
    assert breaker.state == "CLOSED"
