"""An operator's mode is a second thing beside the state: it refuses, lets through, or switches off, and may expire."""

from __future__ import annotations

from typing import Any

import pytest

from seawall import CircuitBreaker, CircuitOpenError, ConfigError, Mode, ModeChanged, StateChanged
from seawall.outcome import FAILURE, SUCCESS
from tests.clock import ManualClock
from tests.policies.play import opened, play


@pytest.fixture
def breaker(manual_clock: ManualClock) -> CircuitBreaker:
    return CircuitBreaker(2, 5.0, manual_clock, name="CORE")


def refusal(breaker: CircuitBreaker) -> CircuitOpenError:
    with pytest.raises(CircuitOpenError) as caught:
        breaker.admit()
    return caught.value


def test_forced_open_refuses_a_healthy_target_and_says_why(breaker: CircuitBreaker) -> None:
    breaker.set_mode("FORCED_OPEN", "database move")
    assert (breaker.state, breaker.mode, breaker.allow()) == ("CLOSED", "FORCED_OPEN", False)
    error = refusal(breaker)
    assert str(error) == "CORE is forced open by hand: database move"
    assert (error.state, error.retry_after, breaker.retry_after) == ("OPEN", None, float("inf"))
    breaker.set_mode(Mode.ENFORCE)
    assert breaker.allow() is True


def test_forced_open_with_an_end_says_when(breaker: CircuitBreaker, manual_clock: ManualClock) -> None:
    breaker.set_mode(Mode.FORCED_OPEN, expires_in=30)
    manual_clock.set(10)
    assert str(refusal(breaker)) == "CORE is forced open by hand; next trial in 20 s"
    play(breaker, [(29.9, "allow", False), (30, "retry_after", 0.0), (30, "allow", True)])
    assert breaker.mode == "ENFORCE"


def test_forced_open_over_an_open_circuit_says_the_later_of_the_two(
    breaker: CircuitBreaker, manual_clock: ManualClock
) -> None:
    breaker.set_mode(Mode.FORCED_OPEN, expires_in=3)
    play(breaker, [(0, "record_failure", "CLOSED"), (0, "record_failure", "OPEN"), (1, "retry_after", 4.0)])
    assert refusal(breaker).retry_after == 4.0
    assert breaker.snapshot().retry_after == 4.0
    play(breaker, [(4, "retry_after", 1.0), (4, "allow", False), (5, "allow", True)])


def test_a_trial_may_be_due_only_where_one_can_be_had(breaker: CircuitBreaker) -> None:
    play(breaker, [(0, "fail", "failure CLOSED"), (0, "fail", "failure OPEN"), (6, "trial_due", True)])
    for mode, due, wait in [("OBSERVE", True, 0), ("FORCED_OPEN", False, float("inf")), ("DISABLED", False, 0)]:
        breaker.set_mode(mode)
        assert (mode, breaker.snapshot().trial_due, breaker.retry_after) == (mode, due, wait)


def test_observe_refuses_nothing_and_counts_what_it_would_have(breaker: CircuitBreaker) -> None:
    breaker.set_mode(Mode.OBSERVE)
    play(breaker, [
        (0, "fail", "failure CLOSED"), (0, "fail", "failure OPEN"), (1, "fail", "failure OPEN"),
        (2, "ok", "success OPEN"), (2, "retry_after", 0.0), (2, "failures", 2), (2, "rejected", 0),
        (5, "fail", "failure OPEN"), (5, "retry_at", 10), (5, "failures", 3),  # the machine ran: that was its trial
        (10, "ok", "success CLOSED"),
    ])
    assert (breaker.would_reject, breaker.started) == (2, 6)


def test_observe_lets_calls_pass_beside_a_trial(breaker: CircuitBreaker) -> None:
    breaker.set_mode(Mode.OBSERVE)
    play(breaker, [(0, "fail", "failure CLOSED"), (0, "fail", "failure OPEN"), (5, "allow", True),
                   (5, "ok", "success HALF_OPEN"), (5, "fail", "failure HALF_OPEN"), (5, "trials", 1),
                   (5, "record_success", "CLOSED")])
    assert breaker.would_reject == 2


def test_forced_closed_records_and_never_trips(breaker: CircuitBreaker) -> None:
    breaker.set_mode(Mode.FORCED_CLOSED)
    for _ in range(100):
        play(breaker, [(0, "fail", "failure CLOSED")])
    assert breaker.snapshot().failed == 100
    assert breaker.failures == 2  # not without bound
    breaker.set_mode(Mode.ENFORCE)
    play(breaker, [(0, "state", "CLOSED"), (0, "fail", "failure OPEN")])


def test_forced_closed_closes_an_open_circuit(breaker: CircuitBreaker) -> None:
    play(breaker, [(0, "fail", "failure CLOSED"), (0, "fail", "failure OPEN")])
    breaker.set_mode(Mode.FORCED_CLOSED)
    play(breaker, [(0, "state", "CLOSED"), (0, "ok", "success CLOSED")])


def test_forced_closed_ends_on_time_for_a_call_that_began_within_it(
    breaker: CircuitBreaker, manual_clock: ManualClock
) -> None:
    breaker.set_mode(Mode.FORCED_CLOSED, expires_in=5)
    first, second = breaker.admit(), breaker.admit()
    manual_clock.set(5)
    breaker.settle(first, FAILURE)
    breaker.settle(second, FAILURE)
    assert breaker.state == "OPEN"


def test_disabled_records_nothing_and_voids_what_was_under_way(
    breaker: CircuitBreaker, manual_clock: ManualClock
) -> None:
    play(breaker, [(0, "fail", "failure CLOSED")])
    before = breaker.admit()
    breaker.set_mode(Mode.DISABLED)
    play(breaker, [(0, "fail", "failure CLOSED"), (0, "fail", "failure CLOSED"), (0, "record_failure", "CLOSED")])
    breaker.settle(before, FAILURE)
    assert (breaker.failures, breaker.started) == (0, 4)
    during = breaker.admit()
    breaker.set_mode(Mode.ENFORCE)
    breaker.settle(during, FAILURE)
    breaker.settle(before, FAILURE)
    assert breaker.failures == 0


def test_disabled_lets_calls_pass_an_open_circuit_that_stays_as_it_is(breaker: CircuitBreaker) -> None:
    play(breaker, [(0, "fail", "failure CLOSED"), (0, "fail", "failure OPEN")])
    breaker.set_mode(Mode.DISABLED)
    play(breaker, [(1, "ok", "success OPEN"), (6, "ok", "success OPEN")])
    breaker.set_mode(Mode.ENFORCE)
    play(breaker, [(6, "ok", "success CLOSED")])


def test_disabled_ends_on_time_for_who_only_reports(breaker: CircuitBreaker) -> None:
    breaker.set_mode(Mode.DISABLED, expires_in=5)
    play(breaker, [(4, "record_failure", "CLOSED"), (4, "failures", 0),
                   (5, "record_failure", "CLOSED"), (5, "record_failure", "OPEN")])


def test_a_trial_voided_by_disabling_neither_closes_nor_blocks(
    breaker: CircuitBreaker, manual_clock: ManualClock
) -> None:
    play(breaker, [(0, "fail", "failure CLOSED"), (0, "fail", "failure OPEN")])
    manual_clock.set(5)
    trial = breaker.admit()
    breaker.set_mode(Mode.DISABLED)
    breaker.set_mode(Mode.ENFORCE)
    breaker.settle(trial, SUCCESS)
    assert breaker.state == "HALF_OPEN"
    play(breaker, [(5, "ok", "success CLOSED")])


def test_a_trial_out_when_forced_open_still_tells_what_it_found(
    breaker: CircuitBreaker, manual_clock: ManualClock
) -> None:
    play(breaker, [(0, "fail", "failure CLOSED"), (0, "fail", "failure OPEN")])
    manual_clock.set(5)
    trial = breaker.admit()
    breaker.set_mode(Mode.FORCED_OPEN)
    breaker.settle(trial, SUCCESS)
    assert (breaker.state, breaker.allow()) == ("CLOSED", False)


def test_an_expired_mode_is_over_for_readers_before_anybody_calls(
    breaker: CircuitBreaker, manual_clock: ManualClock
) -> None:
    breaker.set_mode(Mode.FORCED_OPEN, "for a minute", expires_in=60)
    assert (breaker.mode, breaker.snapshot().mode_reason) == ("FORCED_OPEN", "for a minute")
    manual_clock.set(60)
    shot = breaker.snapshot()
    assert (breaker.mode, shot.mode, shot.mode_reason, breaker.retry_after) == ("ENFORCE", "ENFORCE", "", 0.0)


def test_changes_of_mode_are_told_in_order_and_dated(breaker: CircuitBreaker, manual_clock: ManualClock) -> None:
    told: list[Any] = []
    breaker.listen(told.append)
    breaker.set_mode(Mode.FORCED_OPEN, "move", expires_in=10)
    breaker.set_mode(Mode.FORCED_OPEN, "still", expires_in=20)  # the same mode: nothing new to tell
    manual_clock.set(25)
    breaker.set_mode(Mode.DISABLED, "off")
    assert told == [
        ModeChanged("CORE", "ENFORCE", "FORCED_OPEN", 0, "move"),
        ModeChanged("CORE", "FORCED_OPEN", "ENFORCE", 20, "expired"),
        ModeChanged("CORE", "ENFORCE", "DISABLED", 25, "off"),
    ]


@pytest.mark.parametrize("mode", ["OBSERVE", "FORCED_OPEN", "FORCED_CLOSED", "DISABLED"])
def test_the_end_of_a_mode_is_told_with_the_next_call(
    mode: str, breaker: CircuitBreaker, manual_clock: ManualClock
) -> None:
    told: list[Any] = []
    breaker.set_mode(mode, expires_in=5)
    breaker.listen(told.append)
    manual_clock.set(7)
    breaker.call(lambda: None)
    assert told == [ModeChanged("CORE", mode, "ENFORCE", 5, "expired")]


def test_a_mode_and_a_lease_that_have_both_ended_are_told_in_the_order_of_time(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock, failure_threshold=1, trial_lease=5.0)
    manual_clock.set(10)
    assert breaker.allow()
    breaker.set_mode(Mode.FORCED_OPEN, expires_in=8)
    told: list[ModeChanged | StateChanged] = []
    breaker.listen(told.append)
    manual_clock.set(100)
    breaker.allow()
    assert [(event.new, event.at) for event in told] == [("OPEN", 15), ("ENFORCE", 18), ("HALF_OPEN", 100)]


def test_what_is_no_mode_and_no_time_is_refused(breaker: CircuitBreaker) -> None:
    with pytest.raises(ConfigError, match="there is no mode 'forced': it is one of ENFORCE, OBSERVE, FORCED_OPEN"):
        breaker.set_mode("forced")
    for expires_in in (0, -1, float("nan")):
        with pytest.raises(ConfigError, match="expires_in is in seconds, more than 0"):
            breaker.set_mode(Mode.DISABLED, expires_in=expires_in)
    assert breaker.mode == "ENFORCE"
