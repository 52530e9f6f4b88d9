"""A breaker opens after failures in a row, refuses while open, and lets single trials find out when to close."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from seawall import CircuitBreaker, CircuitOpenError, ConfigError, State
from seawall.outcome import CUT, DISCARDED, FAILURE, IGNORED, SUCCESS
from seawall.policies.states import Trial
from tests.clock import ManualClock
from tests.policies.play import BreakerError, Row, fail, ok, opened, play


@pytest.mark.req("HUB-1")
@pytest.mark.parametrize("table", [
    pytest.param([(0, "allow", True), (0, "record_failure", "CLOSED"), (0, "record_failure", "CLOSED"),
                  (0, "failures", 2), (0, "record_failure", "OPEN"), (0, "failures", 3), (0, "allow", False)],
                 id="the third failure in a row opens"),
    pytest.param([(0, "record_failure", "CLOSED"), (0, "record_failure", "CLOSED"), (0, "record_success", "CLOSED"),
                  (0, "failures", 0), (0, "record_failure", "CLOSED"), (0, "record_failure", "CLOSED"),
                  (0, "record_failure", "OPEN")],
                 id="a success starts the count anew"),
    pytest.param([(0, "fail", "failure CLOSED"), (9e9, "fail", "failure CLOSED"), (18e9, "fail", "failure OPEN")],
                 id="failures in a row do not age"),
    pytest.param([(0, "fail", "failure CLOSED"), (0, "fail", "failure CLOSED"), (0, "ok", "success CLOSED"),
                  (0, "fail", "failure CLOSED"), (0, "fail", "failure CLOSED"), (0, "fail", "failure OPEN"),
                  (0, "ok", "refused OPEN"), (0, "rejected", 1)],
                 id="the same by guarded calls"),
])
def test_failures_in_a_row_open(table: list[Row], manual_clock: ManualClock) -> None:
    play(CircuitBreaker(3, 5.0, manual_clock), table)


@pytest.mark.req("HUB-2")
@pytest.mark.parametrize("table", [
    pytest.param([(4.999, "allow", False), (4.999, "trial_due", False), (5, "trial_due", True), (5, "allow", True),
                  (5, "state", "HALF_OPEN"), (5, "allow", False), (5, "allow", False)],
                 id="due at exactly retry_at, once"),
    pytest.param([(99, "state", "OPEN"), (99, "trial_due", True), (99, "state", "OPEN"), (99, "retry_after", 0.0),
                  (99, "trials", 0), (99, "allow", True), (99, "state", "HALF_OPEN"), (99, "trials", 1)],
                 id="reading changes nothing, however late"),
    pytest.param([(6, "allow", True), (7, "record_success", "CLOSED"), (7, "failures", 0), (7, "retry_at", 0),
                  (7, "allow", True), (7, "record_failure", "CLOSED"), (7, "record_failure", "CLOSED")],
                 id="a good trial closes, and the count starts at 0"),
    pytest.param([(6, "allow", True), (8, "record_failure", "OPEN"), (8, "retry_at", 13), (8, "failures", 4),
                  (12.9, "allow", False), (13, "allow", True), (20, "record_failure", "OPEN"), (20, "retry_at", 25)],
                 id="a failed trial opens again, timer from the start"),
    pytest.param([(0, "retry_after", 5.0), (3, "retry_after", 2.0), (3, "allow", False), (3, "record_success", "OPEN"),
                  (3, "record_failure", "OPEN"), (3, "failures", 3), (3, "retry_at", 5), (4, "retry_after", 1.0)],
                 id="reports while open are void, refusals do not move the open time"),
])
def test_one_trial_decides(table: list[Row], manual_clock: ManualClock) -> None:
    play(opened(manual_clock, failure_threshold=3, reset_timeout=5.0), table)


def test_states_equal_their_names(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock)
    assert breaker.state == "OPEN" == State.OPEN
    assert str(breaker.state) == "OPEN"
    assert breaker.allow() is False
    manual_clock.set(10)
    assert breaker.allow() is True


def test_an_open_time_of_zero_tries_at_once(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock, failure_threshold=1, reset_timeout=0.0)
    play(breaker, [(0, "state", "OPEN"), (0, "fail", "failure OPEN"), (0, "ok", "success CLOSED")])


@pytest.mark.req("TRACE-1")
def test_the_trace_step_by_step(manual_clock: ManualClock) -> None:
    breaker, lines = CircuitBreaker(3, 5, manual_clock), []
    breaker.listen(lambda event: lines.append("probe state=HALF_OPEN") if event.new == "HALF_OPEN" else None)

    def step(at: float, fn: Callable[[], None]) -> None:
        manual_clock.set(at)
        try:
            breaker.call(fn)
        except CircuitOpenError:
            lines.append(f"state={breaker.state} rejected without downstream call started={breaker.started}")
        except BreakerError:
            numbers = f"failures={breaker.failures} started={breaker.started} retry_at={breaker.retry_at}"
            lines.append(f"result=failure state={breaker.state} {numbers}")
        else:
            lines.append(f"result=success state={breaker.state} started={breaker.started}")

    for at, fn in [(0, fail), (0, fail), (0, fail), (0, fail), (0, fail), (6, fail), (12, ok), (12, ok)]:
        step(at, fn)
    assert lines == [
        "result=failure state=CLOSED failures=1 started=1 retry_at=0",
        "result=failure state=CLOSED failures=2 started=2 retry_at=0",
        "result=failure state=OPEN failures=3 started=3 retry_at=5",
        "state=OPEN rejected without downstream call started=3",
        "state=OPEN rejected without downstream call started=3",
        "probe state=HALF_OPEN",
        "result=failure state=OPEN failures=4 started=4 retry_at=11",
        "probe state=HALF_OPEN",
        "result=success state=CLOSED started=5",
        "result=success state=CLOSED started=6",
    ]
    assert breaker.failures == 0


@pytest.mark.req("TRACE-3", "LIB-3", "HUB-9")
def test_trials_at_once_and_successes_to_close_are_two_settings(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock, failure_threshold=1, half_open_max_calls=2, success_threshold=3)
    play(breaker, [
        (10, "allow", True), (10, "allow", True), (10, "allow", False), (10, "trials", 2),
        (10, "record_success", "HALF_OPEN"), (10, "allow", True), (10, "allow", False),
        (10, "record_success", "HALF_OPEN"), (10, "record_success", "CLOSED"),
    ])


def test_one_failed_trial_of_several_opens_again_and_voids_the_others(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock, failure_threshold=1, half_open_max_calls=3, success_threshold=2)
    manual_clock.set(10)
    first, second, third = breaker.admit(), breaker.admit(), breaker.admit()
    breaker.settle(first, SUCCESS)
    breaker.settle(second, FAILURE)
    assert (breaker.state, breaker.retry_at) == ("OPEN", 20)
    breaker.settle(third, SUCCESS)
    assert breaker.state == "OPEN"
    manual_clock.set(20)
    play(breaker, [(20, "ok", "success HALF_OPEN"), (20, "ok", "success CLOSED")])  # the row of successes began anew


@pytest.mark.parametrize("outcome", [IGNORED, CUT, DISCARDED])
def test_a_trial_without_an_answer_gives_its_place_back_and_the_third_in_a_row_opens(
    outcome: Any, manual_clock: ManualClock
) -> None:
    breaker = opened(manual_clock, failure_threshold=1)
    manual_clock.set(10)
    for _ in range(2):
        breaker.settle(breaker.admit(), outcome)
        assert (breaker.state, breaker.snapshot().trials, breaker.failures) == ("HALF_OPEN", 0, 1)
    manual_clock.set(12)
    breaker.settle(breaker.admit(), outcome)
    assert (breaker.state, breaker.retry_at) == ("OPEN", 22)


def test_a_good_trial_in_between_starts_the_count_of_neutral_ones_anew(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock, failure_threshold=1, success_threshold=2)
    manual_clock.set(10)
    for outcome in (DISCARDED, DISCARDED, SUCCESS, DISCARDED, DISCARDED):
        breaker.settle(breaker.admit(), outcome)
    assert breaker.state == "HALF_OPEN"
    breaker.settle(breaker.admit(), SUCCESS)
    assert breaker.state == "CLOSED"


def test_a_trial_goes_to_a_call_that_can_last_it_or_after_one_more_limit_to_any(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock, failure_threshold=1, attempt_limit=3.0, name="CORE")
    manual_clock.set(12)
    with pytest.raises(CircuitOpenError, match=r"CORE keeps its trial for a call with 3 s left"):
        breaker.admit(remaining=2.9)
    with pytest.raises(CircuitOpenError):
        breaker.check(remaining=2.9)
    assert breaker.state == "OPEN"
    breaker.check(remaining=3.0)
    breaker.discard(breaker.admit(remaining=3.0))
    with pytest.raises(CircuitOpenError, match="next trial in 0 s"):
        breaker.admit(remaining=0.1)
    manual_clock.set(13)
    breaker.discard(breaker.admit(remaining=0.1))
    breaker.settle(breaker.admit(), SUCCESS)  # who has no budget has all the time
    assert breaker.state == "CLOSED"


def test_check_takes_nothing(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock, failure_threshold=1)
    with pytest.raises(CircuitOpenError):
        breaker.check()
    manual_clock.set(10)
    for _ in range(3):
        breaker.check()
    assert (breaker.state, breaker.started) == ("OPEN", 1)
    token = breaker.admit()
    with pytest.raises(CircuitOpenError):
        breaker.check()
    breaker.settle(token, SUCCESS)


def test_a_trial_is_settled_once(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock, failure_threshold=1, name="CORE")
    manual_clock.set(10)
    token = breaker.admit()
    assert isinstance(token, Trial)
    breaker.settle(token, SUCCESS)
    with pytest.raises(RuntimeError, match="CORE: this trial has been settled before"):
        breaker.settle(token, FAILURE)
    assert breaker.state == "CLOSED"


def test_a_report_without_a_token_leaves_the_trials_of_others_alone(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock, failure_threshold=1, half_open_max_calls=3, success_threshold=2)
    manual_clock.set(10)
    token = breaker.admit()
    play(breaker, [(10, "record_failure", "HALF_OPEN"), (10, "record_success", "HALF_OPEN"), (10, "allow", True),
                   (10, "record_success", "HALF_OPEN"), (10, "record_failure", "HALF_OPEN")])
    breaker.settle(token, SUCCESS)
    assert breaker.state == "CLOSED"


def test_a_report_without_a_token_settles_the_oldest_trial_first(manual_clock: ManualClock) -> None:
    """The younger one, left out, is the one whose lease ends at 22; the older one's would have ended at 20."""
    breaker = opened(manual_clock, failure_threshold=1, half_open_max_calls=2, success_threshold=2, trial_lease=10.0)
    play(breaker, [(10, "allow", True), (12, "allow", True), (13, "record_success", "HALF_OPEN"),
                   (21, "trials", 1), (21, "allow", True), (22, "allow", False), (22, "state", "OPEN")])


@pytest.mark.req("HUB-9")
def test_a_trial_whose_token_is_lost_keeps_no_place(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock, failure_threshold=1)
    manual_clock.set(10)
    token = breaker.admit()
    assert breaker.allow() is False
    del token
    assert breaker.allow() is True


def test_reset_closes_and_forgets(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock, failure_threshold=2)
    play(breaker, [(1, "reset", "CLOSED"), (1, "failures", 0), (1, "retry_at", 0), (1, "fail", "failure CLOSED"),
                   (1, "reset", "CLOSED"), (1, "fail", "failure CLOSED"), (1, "fail", "failure OPEN")])
    assert breaker.snapshot().opened == 2


@pytest.mark.req("LIB-4", "TRACE-4")
def test_a_refusal_says_target_number_and_when(manual_clock: ManualClock) -> None:
    breaker = CircuitBreaker(2, 7200.0, manual_clock, name="CORE")
    for _ in range(2):
        breaker.settle(breaker.admit(), FAILURE, "E901")
    manual_clock.set(1.5)
    with pytest.raises(CircuitOpenError) as caught:
        breaker.admit()
    error = caught.value
    assert str(error) == "CORE is open: 2 failures in a row, last E901; next trial in 7198 s"
    assert (error.target, error.state, error.retry_after) == ("CORE", "OPEN", 7198.5)
    manual_clock.set(7200)
    token = breaker.admit()
    with pytest.raises(CircuitOpenError) as caught:
        breaker.admit()
    assert (caught.value.state, caught.value.retry_after) == ("HALF_OPEN", 7200.0)
    assert "CORE is half-open, its trial is still out" in str(caught.value)
    breaker.settle(token, FAILURE, "E902")
    with pytest.raises(CircuitOpenError, match=r"CORE is open: a trial failed, last E902, 3 failures in a row; next"):
        breaker.admit()


def test_a_snapshot_shows_everything_and_changes_nothing(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock, failure_threshold=2, reset_timeout=4.0, name="CORE")
    manual_clock.set(3)
    breaker.allow()
    shot = breaker.snapshot()
    assert shot == breaker.snapshot()
    assert (shot.name, shot.state, shot.mode, shot.failures, shot.started, shot.failed, shot.rejected) == (
        "CORE", "OPEN", "ENFORCE", 2, 2, 2, 1)
    assert (shot.opened, shot.retry_at, shot.retry_after, shot.trial_due, shot.trials) == (1, 4.0, 1.0, False, 0)


@pytest.mark.parametrize(("settings", "fault"), [
    ({"failure_threshold": 0}, "failure_threshold is a number of calls, 1 or more, not 0"),
    ({"failure_threshold": True}, "failure_threshold"),
    ({"failure_threshold": 2.5}, "failure_threshold"),
    ({"half_open_max_calls": 0}, "half_open_max_calls"),
    ({"success_threshold": -1}, "success_threshold"),
    ({"reset_timeout": -0.1}, "reset_timeout is in seconds, 0 or more, not -0.1"),
    ({"reset_timeout": float("nan")}, "reset_timeout"),
    ({"reset_timeout": float("inf")}, "reset_timeout"),
    ({"reset_timeout": "10s"}, "reset_timeout"),
    ({"trial_lease": 0}, "trial_lease is in seconds, more than 0, or None for the default, not 0"),
    ({"attempt_limit": -1}, "attempt_limit"),
])
def test_a_setting_that_cannot_work_is_named(settings: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        CircuitBreaker(**settings)


def test_all_faults_are_named_at_once() -> None:
    with pytest.raises(ValueError, match=r"failure_threshold.*; reset_timeout.*; trial_lease"):
        CircuitBreaker(0, -1, trial_lease=0)


def test_a_function_or_a_number_in_the_wrong_place_is_explained() -> None:
    with pytest.raises(TypeError, match=r"breaker = CircuitBreaker\(\)  and then  @breaker"):
        CircuitBreaker(lambda: None)  # type: ignore[arg-type]  # the mistake under test
    with pytest.raises(TypeError, match="clock is called to read the time"):
        CircuitBreaker(3, 5.0, 0.0)  # type: ignore[arg-type]  # the mistake under test


def test_new_settings_apply_in_place_and_leave_an_open_time_alone(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock, failure_threshold=3, reset_timeout=10.0)
    breaker.configure(breaker.settings._replace(failure_threshold=1, reset_timeout=2.0, half_open_max_calls=2))
    play(breaker, [(9, "allow", False), (10, "allow", True), (10, "allow", True), (10, "allow", False),
                   (10, "record_failure", "OPEN"), (10, "retry_at", 12), (12, "ok", "success CLOSED"),
                   (12, "fail", "failure OPEN")])
    with pytest.raises(ConfigError):
        breaker.configure(breaker.settings._replace(failure_threshold=0))
    assert breaker.failure_threshold == 1
