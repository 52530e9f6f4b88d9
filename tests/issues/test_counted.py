"""First attempts are counted as what they are, whatever the breaker that counts them has seen, and wherever it stands."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from seawall import Bulkhead, CircuitBreaker, CircuitOpenError, Retry, RetryBudget, Target, budget, on_result
from tests.aio import run_async
from tests.clock import ManualClock
from tests.guard.both import Form, every_form
from tests.hub.attempts import in_turn
from tests.hub.bed import ask, hub_bed, raw_server, response


def used(calls: int) -> CircuitBreaker:
    """A breaker with that many calls in its past."""
    breaker = CircuitBreaker(clock=ManualClock())
    for _ in range(calls):
        assert breaker.allow()
        breaker.record_success()
    return breaker


def test_what_a_breaker_let_through_before_it_had_a_retry_lifts_no_cap() -> None:
    clock = ManualClock()
    budget = RetryBudget(0.2, 0, clock=clock)
    retry = Retry(3, base_delay=0, retry_budget=budget, clock=clock)
    target = Target("CORE", breaker=used(1000), retry=retry)
    calls: list[int] = []

    @target
    def fail() -> None:
        calls.append(1)
        raise ConnectionError

    with pytest.raises(ConnectionError):
        fail()
    assert (len(calls), budget.calls, retry.calls, retry.retries) == (1, 1, 1, 0)


@pytest.mark.parametrize("budget", [None, RetryBudget(clock=ManualClock())], ids=["uncapped", "capped"])
def test_a_retry_counts_from_where_the_breaker_was_given_to_it(budget: Any) -> None:
    retry = Retry(3, base_delay=0, retry_budget=budget, clock=ManualClock())
    target = Target("CORE", breaker=used(7), retry=retry)
    assert retry.calls == 0
    for _ in range(3):
        target.call(int)
    assert retry.calls == 3


def failing(form: Form, target: Target) -> int:
    """One call of what always fails, and how often that was called."""
    made = 0

    def fail() -> None:
        nonlocal made
        made += 1
        raise ConnectionError

    with contextlib.suppress(ConnectionError):
        form(target, fail)()
    return made


@every_form
@pytest.mark.parametrize("cap", [None, 1.0], ids=["uncapped", "capped"])
def test_a_repeat_that_is_refused_was_no_attempt(form: Form, cap: float | None) -> None:
    clock = ManualClock()
    for calls in range(1, 6):
        share = None if cap is None else RetryBudget(cap, 10, clock=clock)
        retry = Retry(3, base_delay=0, retry_budget=share, clock=clock)
        target = Target("CORE", breaker=CircuitBreaker(1, 5.0, clock), retry=retry)
        for _ in range(calls):
            assert failing(form, target) == 1
            clock.advance(5.0)
        assert (retry.calls, retry.retries) == (calls, calls)
        assert retry.snapshot().stopped == {"refused": calls}


@every_form
def test_a_repeat_refused_by_another_target_behind_this_one_was_made(form: Form) -> None:
    retry = Retry(3, base_delay=0, clock=ManualClock())
    target = Target("CORE", breaker=CircuitBreaker(100, clock=ManualClock()), retry=retry)
    ends = [ConnectionError(), CircuitOpenError("OTHER", "is open", "OPEN", 1.0)] * 5

    def fn() -> None:
        raise ends.pop(0)

    for _ in range(5):
        with pytest.raises(ConnectionError):
            form(target, fn)()
    assert (target.snapshot().breaker.started, retry.calls) == (10, 5)  # type: ignore[union-attr]


@every_form
def test_a_repeat_for_which_no_time_was_left_after_the_wait_was_no_attempt(form: Form) -> None:
    clock = ManualClock()

    class Late(RetryBudget):
        def withdraw(self) -> bool:
            clock.advance(60.0)  # the thread was held up
            return super().withdraw()

    retry = Retry(3, base_delay=0, retry_budget=Late(clock=clock), clock=clock)
    target = Target("CORE", breaker=CircuitBreaker(100, clock=clock), retry=retry)

    def fail() -> None:
        raise ConnectionError

    for _ in range(4):
        with pytest.raises(ConnectionError), budget(5.0, clock=clock):
            form(target, fail)()
    assert (retry.calls, retry.retries, retry.snapshot().stopped) == (4, 4, {"budget": 4})


@pytest.mark.parametrize("cut", ["in the wait", "in line", "in the attempt"])
def test_a_repeat_that_is_cancelled_was_made_if_it_was_let_in(cut: str) -> None:
    retry = Retry(3, base_delay=60.0 if cut == "in the wait" else 0, jitter=None, max_delay=60.0)
    place = Bulkhead(1, max_queue=1, max_wait=60.0)
    target = Target("CORE", breaker=CircuitBreaker(100), bulkhead=place, retry=retry)
    numbers: list[int] = []

    @target
    async def fail() -> None:
        numbers.append(1)
        if len(numbers) > 1:
            await asyncio.sleep(60)
        raise ConnectionError

    async def main() -> None:
        task = asyncio.create_task(fail())
        await asyncio.sleep(0)  # up to the wait
        if cut == "in line":
            place.acquire()
        for _ in range(3):
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_async(main())
    assert len(numbers) == (2 if cut == "in the attempt" else 1)
    assert (retry.calls, retry.retries) == (1, 1)


def test_the_share_of_a_budget_is_that_of_the_calls_though_repeats_were_refused() -> None:
    clock = ManualClock()
    share = RetryBudget(0.5, 1, clock=clock)
    retry = Retry(2, base_delay=0, retry_budget=share, clock=clock)
    target = Target("CORE", breaker=CircuitBreaker(1, 0.1, clock), retry=retry)
    for _ in range(10):
        with pytest.raises(ConnectionError):
            target.call(_fail)
        clock.advance(0.1)
    assert (share.calls, share.spent + share.refused) == (10, 10)


def _fail() -> None:
    raise ConnectionError


def test_in_the_hub_too_a_repeat_that_is_refused_was_no_attempt() -> None:
    with raw_server(in_turn(*[response(500, b"{}")] * 4)) as server:
        with hub_bed(f"CORE={server.url},retry=3,retry-base-ms=1,fail-threshold=1,reset-timeout=0.05") as bed:
            for _ in range(3):
                bed.wait_for(lambda hub: hub.backends["CORE"].breaker.retry_after == 0)
                assert ask(bed.port, "GET", "/CORE/x").status == 500
            retry = bed.run(lambda hub: hub.backends["CORE"].retry.snapshot())  # type: ignore[union-attr]
    assert (retry.calls, retry.retries, retry.stopped) == (3, 3, {"refused": 3})


SECONDS = {"a breaker of its own": "b", "a bulkhead only": "h", "nothing more": ""}


@every_form
@pytest.mark.parametrize("second", SECONDS.values(), ids=SECONDS)
@pytest.mark.parametrize("judged", [False, True], ids=["by errors", "by results too"])
def test_one_retry_in_two_places_counts_the_calls_of_both(form: Form, second: str, judged: bool) -> None:
    on: Any = [ConnectionError, on_result(lambda result: result < 0)] if judged else Exception
    retry = Retry(2, base_delay=0, on=on, clock=ManualClock())
    first = Target("CORE", breaker=CircuitBreaker(100), retry=retry)
    breaker, bulkhead = (CircuitBreaker(100) if second == "b" else None), Bulkhead(9)
    other = Target("CLAIM", breaker=breaker, bulkhead=bulkhead, retry=retry) if second else retry
    ends: list[Any] = []

    def fn() -> int:
        end = ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return 1

    for stack, calls in ((first, 3), (other, 2), (first, 1)):
        guarded = form(stack, fn)
        for _ in range(calls):
            ends[:] = [ConnectionError(), 1]
            assert guarded() == 1
            ends[:] = [1]
            assert guarded() == 1
    assert (retry.calls, retry.retries) == (12, 6)
