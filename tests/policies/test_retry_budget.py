"""Extra attempts are held to a share of the calls, or to some a second; whoever asks, and however many at once."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall import ConfigError, RetryBudget
from tests.clock import ManualClock


def calls(budget: RetryBudget, number: int) -> None:
    for _ in range(number):
        next(budget.first.ticks)


def granted(budget: RetryBudget, asked: int) -> int:
    return sum(budget.withdraw() for _ in range(asked))


def test_it_grants_a_share_of_the_calls() -> None:
    budget = RetryBudget(0.2, 0, clock=ManualClock())
    assert granted(budget, 5) == 0
    calls(budget, 100)
    assert granted(budget, 50) == 20
    assert (budget.calls, budget.spent, budget.refused) == (100, 20, 35)


def test_some_a_second_are_granted_in_any_case() -> None:
    clock = ManualClock()
    budget = RetryBudget(0.0, 2, clock=clock)
    assert granted(budget, 99) == 20  # those of ten seconds may come at once
    clock.advance(3.0)
    assert granted(budget, 99) == 6


def test_what_is_older_than_ten_seconds_counts_for_nothing() -> None:
    clock = ManualClock()
    budget = RetryBudget(0.5, 0, clock=clock)
    calls(budget, 100)
    assert budget.left == 50
    clock.advance(11.0)
    assert granted(budget, 99) == 0


def test_calls_since_the_last_look_are_taken_to_have_come_evenly() -> None:
    clock = ManualClock()
    budget = RetryBudget(0.5, 0, clock=clock)
    clock.advance(1000.0)
    calls(budget, 1000)
    assert granted(budget, 999) == 5  # ten seconds' worth of one a second


def test_calls_may_be_counted_by_what_a_breaker_lets_through() -> None:
    from itertools import count

    budget, started = RetryBudget(0.5, 0, clock=ManualClock()), count()
    budget.first.count_by(started)
    budget.first.count_by(started)
    for _ in range(10):
        next(started)
    assert budget.withdraw()
    budget.first.again()
    next(started)  # the extra attempt is no call
    assert budget.calls == 10
    budget.first.again()
    budget.first.not_made()
    assert budget.calls == 10


@pytest.mark.parametrize(("ratio", "least"), [
    (-0.1, 1), (1.1, 1), ("a", 1), (True, 1), (0.2, -1), (0.2, float("inf")), (0.2, None), (0.2, True),
    (0.2, 10**400), (float("nan"), 1),
])  # fmt: skip
def test_numbers_that_cannot_be_are_refused(ratio: Any, least: Any) -> None:
    with pytest.raises(ConfigError):
        RetryBudget(ratio, least)


@given(
    ratio=st.sampled_from([0.0, 0.1, 0.2, 0.5, 1.0]), least=st.sampled_from([0, 1, 10]),
    steps=st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0, 12.0]), st.integers(0, 50), st.integers(0, 60)),
                   max_size=20),
)  # fmt: skip
@settings(max_examples=200, deadline=None, derandomize=True)
def test_it_never_grants_more_than_it_has(ratio: float, least: int, steps: list[tuple[float, int, int]]) -> None:
    """Over all: the share of all calls, and those of each second and of the ten that may come at once."""
    clock = ManualClock()
    budget = RetryBudget(ratio, least, clock=clock)
    made = given_out = 0
    for seconds, some, asked in steps:
        clock.advance(seconds)
        calls(budget, some)
        made += some
        given_out += granted(budget, asked)
        assert given_out <= ratio * made + least * (10.0 + clock()) + 1e-6
        assert budget.calls == made


@pytest.mark.fault("F38")
def test_a_crowd_that_decides_at_once_cannot_overdraw() -> None:
    """Paid when the attempt is decided upon: what waits is counted as much as what runs."""
    budget = RetryBudget(0.2, 0, clock=ManualClock())
    calls(budget, 1000)
    got: list[int] = []
    start = threading.Barrier(8)

    def ask() -> None:
        start.wait(30)
        got.append(granted(budget, 100))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sum(got) == 200
