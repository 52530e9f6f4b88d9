"""A budget is one total for all that is done inside it: it shrinks, it is obeyed, and it ends what is awaited."""

from __future__ import annotations

import asyncio
import functools
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import seawall
from seawall import (
    Bulkhead,
    BulkheadFullError,
    CircuitBreaker,
    DeadlineExceededError,
    NoBudgetError,
    Retry,
    Target,
    Timeout,
    budget,
    current_deadline,
    remaining,
)
from tests.aio import run_async
from tests.clock import ManualClock
from tests.guard.both import Form, every_form


def test_an_inner_budget_can_only_shorten_and_the_outer_one_comes_back() -> None:
    clock = ManualClock()
    with budget(2.0, clock=clock) as outer:
        with budget(5.0, clock=clock):
            assert remaining() == 2.0
        with budget(0.5, clock=clock) as inner:
            assert current_deadline() is inner
            assert remaining() == 0.5
            clock.advance(0.75)
            assert (remaining(), inner.expired, outer.expired) == (0.0, True, False)
        assert remaining() == 1.25
    assert remaining() is None
    assert current_deadline() is None


def test_budgets_on_different_clocks_compare_by_what_is_left() -> None:
    mine, yours = ManualClock(), ManualClock()
    yours.advance(1000.0)
    with budget(1.0, clock=mine), budget(5.0, clock=yours):
        assert remaining() == 1.0


def test_remaining_is_what_a_client_may_take() -> None:
    clock = ManualClock()
    assert remaining(3.0) == 3.0
    with budget(2.0, clock=clock):
        assert (remaining(3.0), remaining(1.0)) == (2.0, 1.0)


def test_check_raises_once_nothing_is_left_and_says_how_much_there_was() -> None:
    clock = ManualClock()
    seawall.check()
    with budget(0.25, clock=clock):
        seawall.check()
        clock.advance(0.25)
        with pytest.raises(DeadlineExceededError, match="the budget of 250 ms is spent"):
            seawall.check()


def test_what_is_detached_has_no_budget() -> None:
    async def look() -> float | None:
        return remaining()

    async def test() -> tuple[float | None, float | None]:
        async with budget(9.0):
            with seawall.detach():
                free = asyncio.ensure_future(look())
            bound = asyncio.ensure_future(look())
            return await free, await bound

    free, bound = run_async(test())
    assert free is None
    assert bound is not None


def test_a_carried_function_takes_the_budget_into_other_threads() -> None:
    with ThreadPoolExecutor(4) as pool, budget(9.0):
        carried = seawall.carry(remaining)
        assert all(left is not None for left in pool.map(lambda _: carried(), range(16)))
        assert pool.submit(remaining).result() is None
    assert carried.__name__ == "remaining"


def test_as_a_decorator_each_call_has_its_own() -> None:
    @budget(3.0)
    def fn(again: bool = True) -> float | None:
        """Says so."""
        left = remaining()
        return min(fn(False) or 0.0, left or 0.0) if again else left

    @budget(3.0)
    async def afn() -> float | None:
        return remaining()

    assert 2.0 < (fn() or 0.0) <= 3.0
    assert 2.0 < (run_async(afn()) or 0.0) <= 3.0
    assert (fn.__doc__, remaining()) == ("Says so.", None)


def test_as_a_decorator_it_ends_what_any_kind_of_coroutine_function_awaits() -> None:
    class Client:
        async def __call__(self) -> None:
            await asyncio.sleep(30)

        async def get(self) -> None:
            await asyncio.sleep(30)

    client = Client()
    for fn in (client, client.get, functools.partial(client.get)):
        with pytest.raises(DeadlineExceededError):
            run_async(budget(0.01)(fn)())


def test_a_coroutine_function_is_not_carried_but_what_runs_it_is() -> None:
    async def left() -> float | None:
        return remaining()

    with budget(9.0), ThreadPoolExecutor(1) as pool:
        with pytest.raises(TypeError, match=r"carry\(asyncio.run\)"):
            seawall.carry(left)
        assert pool.submit(seawall.carry(asyncio.run), left()).result() is not None


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), 10**400, "1", None, True])
def test_a_length_that_cannot_be_is_refused(seconds: Any) -> None:
    with pytest.raises(seawall.ConfigError, match="in seconds, 0 or more and finite"):
        budget(seconds)


def test_misuse_is_refused_with_what_to_write() -> None:
    def generator() -> Any:
        yield 1

    with pytest.raises(TypeError, match="@budget"):
        budget(generator)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="open it where"):
        budget(1.0)(generator)
    block = budget(1.0)
    with block, pytest.raises(RuntimeError, match="anew for each"):
        block.__enter__()


def test_an_async_block_ends_at_its_deadline_and_others_cancellations_stay_theirs() -> None:
    async def test() -> None:
        with pytest.raises(DeadlineExceededError):
            async with budget(0.01):
                await asyncio.sleep(30)
        with pytest.raises(TimeoutError) as outer:
            async with asyncio.timeout(0.01), budget(30.0):
                await asyncio.sleep(30)
        assert not isinstance(outer.value, DeadlineExceededError)

        async def waits() -> None:
            async with budget(30.0):
                await asyncio.sleep(30)

        task = asyncio.ensure_future(waits())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(DeadlineExceededError):
            async with budget(0.01), budget(30.0):  # both end at the same moment
                await asyncio.sleep(30)
        me = asyncio.current_task()
        assert me is not None
        assert me.cancelling() == 0

    run_async(test())


def test_a_block_left_in_another_task_says_so_and_never_cancels_the_one_that_entered_it() -> None:
    async def test() -> None:
        block = budget(0.02)

        async def enters() -> str:
            await block.__aenter__()
            await left.wait()
            await asyncio.sleep(0.06)
            return "not cancelled"

        left = asyncio.Event()
        entering = asyncio.ensure_future(enters())
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="another thread or task"):
            await block.__aexit__(None, None, None)
        left.set()
        assert await entering == "not cancelled"

    run_async(test())


def test_an_async_block_can_be_detached_and_comes_back() -> None:
    async def test() -> None:
        async with budget(9.0):
            async with seawall.detach():
                assert remaining() is None
            assert remaining() is not None

    run_async(test())


def test_a_coroutine_stands_in_line_for_no_longer_than_its_budget() -> None:
    async def test() -> None:
        limit = Bulkhead(1, max_queue=5, max_wait=60.0, name="CORE")
        await limit.aacquire()
        with budget(0.02), pytest.raises(BulkheadFullError):
            await limit.aacquire()
        with budget(0.02), pytest.raises(NoBudgetError, match="spent in line"):
            await limit.acall(asyncio.sleep, 0)
        limit.release()
        assert (limit.waiting, limit.in_flight) == (0, 0)

    run_async(test())


# -- guards
def target(**policies: Any) -> Target:
    return Target("CORE", **policies)


@every_form
@pytest.mark.parametrize("policies", [
    {"breaker": CircuitBreaker()}, {"bulkhead": Bulkhead()}, {"retry": Retry()},
    {"breaker": CircuitBreaker(), "bulkhead": Bulkhead(), "retry": Retry()}, {"timeout": Timeout(1.0)},
], ids=lambda policies: "+".join(policies))  # fmt: skip
def test_with_nothing_left_no_call_is_made(form: Form, policies: dict[str, Any]) -> None:
    clock, calls = ManualClock(), []
    stack = target(**policies)
    call: Any = form(stack, lambda: calls.append(1))

    async def coroutine() -> None:
        calls.append(1)

    acall = form(stack, coroutine)
    with budget(0.1, clock=clock):
        clock.advance(0.1)
        with pytest.raises(NoBudgetError, match="CORE was not called: 0 ms of the budget are left"):
            call()
        with pytest.raises(NoBudgetError):
            run_async(acall())
    assert calls == []


@every_form
def test_with_less_left_than_is_worth_it_no_call_is_made(form: Form) -> None:
    clock = ManualClock()
    call: Any = form(target(retry=Retry(min_ms=50)), lambda: "made")
    with budget(0.1, clock=clock):
        assert call() == "made"
        clock.advance(0.0625)
        with pytest.raises(NoBudgetError, match="38 ms of the budget are left, fewer than 50"):
            call()


def test_blocks_are_calls_too() -> None:
    clock = ManualClock()
    with budget(0.1, clock=clock):
        clock.advance(1.0)
        for guard in (CircuitBreaker(name="CORE"), Bulkhead(name="CORE"), target(breaker=CircuitBreaker())):
            with pytest.raises(NoBudgetError), guard:
                raise AssertionError("entered")


@every_form
def test_a_coroutine_is_cut_at_the_deadline_and_its_target_not_blamed(form: Form) -> None:
    breaker = CircuitBreaker(1, 60.0)

    async def hang() -> None:
        await asyncio.sleep(30)

    guarded = form(target(breaker=breaker, bulkhead=Bulkhead(1)), hang)

    async def test() -> None:
        with budget(0.02), pytest.raises(DeadlineExceededError):
            await guarded()

    run_async(test())
    assert (breaker.state, breaker.failures) == ("CLOSED", 0)


@every_form
def test_a_clients_own_time_out_is_a_failure_before_the_end_of_the_budget_and_a_cut_after_it(form: Form) -> None:
    clock, breaker = ManualClock(), CircuitBreaker(5, 60.0)

    def call(seconds: float) -> None:
        clock.advance(seconds)
        raise TimeoutError("the client's own")

    guarded = form(target(breaker=breaker), call)
    for seconds, failures in ((0.5, 1), (1.5, 1)):
        with budget(1.0, clock=clock), pytest.raises(TimeoutError):
            guarded(seconds)
        assert breaker.failures == failures


def test_nobody_stands_in_line_for_longer_than_his_budget() -> None:
    limit = Bulkhead(1, max_queue=5, max_wait=60.0, name="CORE")
    limit.acquire()
    began = time.monotonic()
    with budget(0.02):
        with pytest.raises(NoBudgetError, match="spent in line"):
            limit.call(print)
        with pytest.raises(BulkheadFullError):
            limit.acquire()
    assert time.monotonic() - began < 30.0
    limit.release()
    assert (limit.waiting, limit.in_flight) == (0, 0)


def test_a_limit_under_a_shorter_budget_tells_which_of_them_ended_it() -> None:
    limit = Timeout(30.0)

    @limit
    async def hang() -> None:
        await asyncio.sleep(30)

    async def test() -> None:
        for call in (hang, lambda: limit.acall(hang)):
            with budget(0.01), pytest.raises(DeadlineExceededError):
                await call()
        with budget(30.0), pytest.raises(seawall.TimeoutExceededError):
            await Timeout(0.01).acall(hang)

    run_async(test())
    with budget(0.01), pytest.raises(DeadlineExceededError):
        limit.call(time.sleep, 0.05)


def test_a_function_that_only_makes_a_coroutine_is_refused() -> None:
    """It would run outside the block: what an undressed decorator of somebody else's makes of an ``async def``."""

    async def later() -> None:
        raise AssertionError("it runs")

    @budget(1.0)
    def make() -> Any:
        return later()

    with pytest.raises(TypeError, match="make it  async def"):
        make()
