"""F47: reading a counter changes nothing, however often it is read, and whoever reads it."""

from __future__ import annotations

from itertools import count

import pytest

from seawall import CircuitBreaker
from seawall.counters import reading
from tests.clock import ManualClock
from tests.policies.crowd import in_step

pytestmark = pytest.mark.fault("F47")

READABLE = ("failures", "started", "rejected", "retry_at", "retry_after", "state", "mode", "would_reject")


def read(breaker: CircuitBreaker) -> list[object]:
    return [getattr(breaker, name) for name in READABLE] + [breaker.snapshot()]


@pytest.mark.req("HUB-2")
def test_a_breaker_read_all_the_time_does_what_one_does_that_is_never_read(manual_clock: ManualClock) -> None:
    watched, alone = (CircuitBreaker(3, 5.0, manual_clock, trial_lease=4.0) for _ in range(2))
    for at in range(60):
        manual_clock.set(at)
        answers = []
        for breaker in (watched, alone):
            if breaker is watched:
                assert read(watched) == read(watched) == read(watched)
            allowed = breaker.allow()
            if allowed and at % 7 < 4:
                breaker.record_failure()
            elif allowed and at % 11:
                breaker.record_success()
            answers.append((allowed, breaker.state))
        assert answers[0] == answers[1]
    assert read(watched) == read(alone)
    assert watched.snapshot().opened > 2


def test_the_third_failure_opens_not_the_second(manual_clock: ManualClock) -> None:
    breaker = CircuitBreaker(3, 5.0, manual_clock)
    for failures in (1, 2):
        breaker.record_failure()
        assert [breaker.failures for _ in range(10)] == [failures] * 10
    assert breaker.state == "CLOSED"
    breaker.record_failure()
    assert breaker.state == "OPEN"


@pytest.mark.usefixtures("fast_switching")
def test_a_counter_is_exact_while_it_is_raised_and_read_by_many() -> None:
    ticks, seen = count(), [[0] for _ in range(8)]

    def act(number: int, who: int) -> None:
        for _ in range(500):
            if who % 2:
                next(ticks)
            else:
                seen[who].append(reading(ticks))

    in_step(8, 2, act, lambda number: None)
    assert reading(ticks) == reading(ticks) == 4 * 1000
    assert all(row == sorted(row) for row in seen)  # it never went back
