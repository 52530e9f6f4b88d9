"""A trial that never comes back costs one lease: it has failed, dated at the end of it, and its late word is void."""

from __future__ import annotations

import pytest

from seawall import CircuitBreaker
from seawall.outcome import DISCARDED, FAILURE, SUCCESS, Outcome
from tests.clock import ManualClock
from tests.policies.play import opened, play


def lease_of(breaker: CircuitBreaker) -> float:
    """Seconds the next trial may be silent: taken from a trial that is left alone until it is given up."""
    clock = breaker.clock
    assert isinstance(clock, ManualClock)
    began = clock.set(max(clock(), breaker.retry_at))
    assert breaker.allow()
    while breaker.state == "HALF_OPEN":  # its end is found by asking, a step at a time: no look at private parts
        clock.advance(0.5)
        breaker.allow()
        assert clock() < began + 20_000
    return breaker.retry_at - breaker.settings.reset_timeout - began


@pytest.mark.parametrize(("settings", "lease"), [
    ({"reset_timeout": 10.0}, 60.0),
    ({"reset_timeout": 90.0}, 90.0),
    ({"reset_timeout": 10.0, "attempt_limit": 3.0}, 4.0),
    ({"reset_timeout": 10.0, "attempt_limit": 3.0, "trial_lease": 7.5}, 7.5),
])
def test_how_long_a_lease_is(settings: dict[str, float], lease: float, manual_clock: ManualClock) -> None:
    assert lease_of(opened(manual_clock, failure_threshold=1, **settings)) == lease


@pytest.mark.fault("F05")
def test_the_lease_ends_as_a_failed_trial_dated_at_its_end(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock, failure_threshold=2, reset_timeout=10.0, trial_lease=3.0)
    manual_clock.set(10)
    token = breaker.admit()
    play(breaker, [
        (12.9, "allow", False), (12.9, "state", "HALF_OPEN"), (12.9, "retry_after", pytest.approx(0.1)),
        (14, "state", "HALF_OPEN"),  # reading anticipates nothing
        (14, "allow", False), (14, "state", "OPEN"), (14, "retry_at", 23), (14, "failures", 3),
    ])
    breaker.settle(token, SUCCESS)
    assert (breaker.state, breaker.retry_at) == ("OPEN", 23)


def test_who_asks_long_after_both_lease_and_open_time_gets_the_next_trial(manual_clock: ManualClock) -> None:
    breaker, changes = opened(manual_clock, failure_threshold=1, trial_lease=3.0), []
    breaker.listen(lambda event: changes.append((event.old, event.new, event.at)))
    play(breaker, [(10, "allow", True), (500, "allow", True), (500, "state", "HALF_OPEN")])
    assert changes == [("OPEN", "HALF_OPEN", 10), ("HALF_OPEN", "OPEN", 13), ("OPEN", "HALF_OPEN", 500)]


@pytest.mark.parametrize("outcome", [SUCCESS, FAILURE, DISCARDED])
def test_a_late_settle_is_what_finds_the_lease_ended_and_is_void(outcome: Outcome, manual_clock: ManualClock) -> None:
    """The change it brings to light is told at once, not with the next one."""
    breaker, changes = opened(manual_clock, failure_threshold=1, trial_lease=3.0), []
    breaker.listen(lambda event: changes.append((event.new, event.at)))
    manual_clock.set(10)
    token = breaker.admit()
    manual_clock.set(13)
    breaker.settle(token, outcome)
    assert changes == [("HALF_OPEN", 10), ("OPEN", 13)]
    assert (breaker.state, breaker.retry_at, breaker.failures) == ("OPEN", 23, 2)


def test_a_late_report_without_token_is_void_too(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock, failure_threshold=1, trial_lease=3.0)
    play(breaker, [(10, "allow", True), (13, "record_success", "OPEN"), (13, "retry_at", 23)])


def test_a_report_at_the_last_moment_counts(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock, failure_threshold=1, trial_lease=3.0)
    play(breaker, [(10, "allow", True), (12.999, "record_success", "CLOSED")])


def test_leases_double_for_each_that_ends_in_a_row_up_to_an_hour(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock, failure_threshold=1, reset_timeout=1.0, trial_lease=700.0)
    assert [lease_of(breaker) for _ in range(5)] == [700.0, 1400.0, 2800.0, 3600.0, 3600.0]


def test_a_lease_of_more_than_an_hour_stays_what_it_is(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock, failure_threshold=1, reset_timeout=1.0, trial_lease=5000.0)
    assert [lease_of(breaker) for _ in range(2)] == [5000.0, 5000.0]


def test_a_trial_that_comes_back_ends_the_doubling(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock, failure_threshold=1, reset_timeout=1.0, trial_lease=4.0)
    assert [lease_of(breaker), lease_of(breaker)] == [4.0, 8.0]
    manual_clock.set(breaker.retry_at)
    breaker.settle(breaker.admit(), FAILURE)
    assert lease_of(breaker) == 4.0


def test_after_thousands_of_leases_the_lease_is_still_finite(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock, failure_threshold=1, reset_timeout=0.0, trial_lease=1.0)
    for _ in range(2000):
        assert breaker.allow()
        manual_clock.advance(3600.0)
    assert breaker.allow()
    assert breaker.allow() is False


def test_the_first_lease_to_end_opens_for_all_trials(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock, failure_threshold=1, half_open_max_calls=2, trial_lease=5.0)
    manual_clock.set(10)
    first = breaker.admit()
    manual_clock.set(12)
    second = breaker.admit()
    play(breaker, [(14, "retry_after", 1.0), (15, "allow", False), (15, "retry_at", 25), (15, "trials", 0)])
    for token in (first, second):
        breaker.settle(token, SUCCESS)
    assert breaker.state == "OPEN"


def test_new_settings_do_not_reach_back_to_a_lease_that_has_ended(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock, failure_threshold=1, reset_timeout=10.0, trial_lease=3.0)
    play(breaker, [(10, "allow", True), (14, "state", "HALF_OPEN")])
    breaker.configure(breaker.settings._replace(reset_timeout=99.0))
    assert (breaker.state, breaker.retry_at) == ("OPEN", 23)
