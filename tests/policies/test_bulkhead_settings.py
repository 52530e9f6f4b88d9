"""A bulkhead's numbers can change while calls run and wait; a line too slow for its budget is not joined."""

from __future__ import annotations

from typing import Any

import pytest

from seawall import Bulkhead, BulkheadFullError, ConfigError
from seawall.policies.slots import BulkheadSettings
from tests.clock import ManualClock
from tests.lines import Caller, assert_at_rest


# -- the estimate at the door
def hand_over(running: Caller, waiter: Caller) -> Caller:
    running.leave()
    waiter.claim()
    return waiter


def test_a_line_too_slow_for_the_budget_is_refused_at_the_door(manual_clock: ManualClock) -> None:
    limit = Bulkhead(1, max_queue=None, clock=manual_clock, name="CORE")
    running = Caller(limit)
    line = [Caller(limit) for _ in range(4)]  # nothing is known yet: let in
    assert Caller(limit, 0.001).in_line
    for waiter in line[:2]:
        manual_clock.advance(2.0)
        running = hand_over(running, waiter)
    assert limit.waiting == 3
    with pytest.raises(BulkheadFullError) as refusal:
        Caller(limit, 7.9)
    assert str(refusal.value) == "CORE has 3 waiting: about 8 s, and 7.9 s are left; try again in 8 s"
    assert refusal.value.retry_after == 8.0
    assert (limit.rejected, limit.waiting) == (1, 3)
    assert Caller(limit, 8.0).in_line
    assert Caller(limit).in_line  # without a budget there is nothing to compare with


def test_the_estimate_is_smoothed_and_a_time_without_a_line_does_not_count(manual_clock: ManualClock) -> None:
    limit = Bulkhead(1, max_queue=None, clock=manual_clock)
    running = Caller(limit)
    manual_clock.advance(100.0)
    first = Caller(limit)
    manual_clock.advance(1.0)
    running = hand_over(running, first)  # 1 s from its joining
    manual_clock.advance(100.0)
    second = Caller(limit)
    manual_clock.advance(9.0)
    running = hand_over(running, second)  # 9 s: 1 + (9 - 1) / 8 = 2
    Caller(limit)
    with pytest.raises(BulkheadFullError, match="about 4 s"):
        Caller(limit, 3.9)
    assert Caller(limit, 4.1).in_line


def test_an_old_estimate_never_keeps_the_line_empty(manual_clock: ManualClock) -> None:
    """Were the first in line refused, nobody would ever find out that the target is quick again."""
    limit = Bulkhead(1, max_queue=None, clock=manual_clock)
    running, waiter = Caller(limit), Caller(limit)
    manual_clock.advance(1000.0)
    running = hand_over(running, waiter)
    for _ in range(60):
        waiter = Caller(limit, 1.0)
        assert waiter.in_line
        manual_clock.advance(0.01)
        running = hand_over(running, waiter)
    assert Caller(limit, 1.0).in_line
    assert Caller(limit, 1.0).in_line  # and the estimate has come down by what they found out


def test_a_full_bulkhead_without_a_line_reads_no_clock() -> None:
    def clock() -> float:
        raise AssertionError("nobody waits: there is nothing to measure")

    limit = Bulkhead(1, clock=clock)
    limit.acquire()
    with pytest.raises(BulkheadFullError, match=r"^the target is full: 1 call running$"):
        limit.acquire()
    limit.release()


# -- other numbers
def test_a_raised_limit_lets_those_in_line_go_at_once() -> None:
    limit = Bulkhead(1, max_queue=None)
    running = Caller(limit)
    line = [Caller(limit) for _ in range(3)]
    limit.configure(BulkheadSettings(3, None, 10.0))
    assert [caller.woken for caller in line] == [1, 1, 0]
    assert (limit.max_concurrent, limit.in_flight, limit.peak_active) == (3, 3, 3)
    for caller in line[:2]:
        caller.claim()
        caller.leave()
    line[2].claim()
    line[2].leave()
    running.leave()
    assert_at_rest(limit)


def test_a_lowered_limit_lets_running_calls_finish_and_nobody_new_in_until_they_have() -> None:
    limit = Bulkhead(4, max_queue=None)
    running = [Caller(limit) for _ in range(4)]
    limit.configure(BulkheadSettings(2, None, 10.0))
    assert limit.in_flight == 4
    waiter = Caller(limit)
    for expected, caller in zip([0, 0, 1], running, strict=False):
        caller.leave()
        assert waiter.woken == expected
    waiter.claim()
    assert limit.in_flight == 2
    waiter.leave()
    running[3].leave()
    assert_at_rest(limit)


def test_what_is_owed_is_forgiven_when_the_limit_rises_again() -> None:
    limit = Bulkhead(5)
    running = [Caller(limit) for _ in range(5)]
    for number in (1, 3, 2, 6, 4):
        limit.configure(BulkheadSettings(number, 0, 10.0))
        assert limit.in_flight == 5
    running.pop().leave()
    with pytest.raises(BulkheadFullError, match="is full: 4 calls running"):
        Caller(limit)
    running.pop().leave()
    running.append(Caller(limit))
    for caller in running:
        caller.leave()
    assert_at_rest(limit)


@pytest.mark.parametrize("numbers", [(10, 3), (3, 10), (10, 3, 5), (2, 9, 1, 4)])
def test_the_peak_stays_exact_over_changes_of_the_limit(numbers: tuple[int, ...]) -> None:
    limit = Bulkhead(numbers[0])
    peak = 0
    for number in numbers:
        limit.configure(BulkheadSettings(number, 0, 10.0))
        for so_many in (1, min(2, number)):
            running = [Caller(limit) for _ in range(so_many)]
            peak = max(peak, so_many)
            assert limit.peak_active == peak
            for caller in running:
                caller.leave()
            assert limit.peak_active == peak
        assert_at_rest(limit)  # fills it to the brim
        peak = max(peak, number)
        assert limit.peak_active == peak


def test_the_peak_of_a_wide_time_is_remembered_in_a_narrow_one() -> None:
    limit = Bulkhead(6)
    running = [Caller(limit) for _ in range(5)]
    limit.configure(BulkheadSettings(1, 0, 10.0))
    assert limit.peak_active == 5
    for caller in running:
        caller.leave()
    limit.configure(BulkheadSettings(6, 0, 10.0))
    assert limit.peak_active == 5


def test_guards_already_made_follow_a_change() -> None:
    limit = Bulkhead(1)

    @limit
    def depth(more: int) -> int:
        return 1 + depth(more - 1) if more else 1

    with pytest.raises(BulkheadFullError):
        depth(1)
    limit.configure(BulkheadSettings(3, 0, 10.0))
    assert depth(2) == 3
    with pytest.raises(BulkheadFullError):
        depth(3)
    assert_at_rest(limit)


# -- what cannot work
@pytest.mark.parametrize(("settings", "words"), [
    ({"max_concurrent": 0}, r"max_concurrent is the number of calls at once, 1 or more, not 0"),
    ({"max_concurrent": 2.0}, r"max_concurrent .* not 2.0"),
    ({"max_concurrent": True}, r"max_concurrent .* not True"),
    ({"max_queue": -1}, r"max_queue is 0 \(refuse at once\) or more, or None \(no bound\), not -1"),
    ({"max_queue": "5"}, r"max_queue .* not '5'"),
    ({"max_wait": -0.1}, r"max_wait is in seconds, 0 or more, or None \(no bound\), not -0.1"),
    ({"max_wait": float("nan")}, r"max_wait .* not nan"),
    ({"max_wait": float("inf")}, r"max_wait .* not inf"),
    ({"max_concurrent": -1, "max_queue": -1, "max_wait": -1}, r"max_concurrent .*; max_queue .*; max_wait "),
])
def test_a_setting_that_cannot_work_is_named_with_what_to_write(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Bulkhead(**settings)
    limit = Bulkhead(2)
    whole: dict[str, Any] = {"max_concurrent": 2, "max_queue": 0, "max_wait": 1.0} | settings
    with pytest.raises(ConfigError, match=words):
        limit.configure(BulkheadSettings(**whole))
    assert_at_rest(limit)


def test_a_bulkhead_put_around_a_function_without_numbers_says_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"limit = Bulkhead\(10\)  and then  @limit"):
        Bulkhead(print)  # type: ignore[arg-type]  # that is the point
