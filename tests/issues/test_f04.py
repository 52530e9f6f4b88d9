"""F04: a trial cancelled, ignored or interrupted gives its place back and counts for nothing; the next call may try."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from seawall import CircuitBreaker, DeadlineExceededError
from tests.aio import run_async
from tests.clock import ManualClock
from tests.policies.play import opened

pytestmark = pytest.mark.fault("F04")


class BusinessError(Exception):
    """On the ignore list."""


def half_open(clock: ManualClock) -> CircuitBreaker:
    breaker = opened(clock, failure_threshold=1, ignores=BusinessError)
    clock.set(10.0)
    return breaker


def assert_as_before(breaker: CircuitBreaker) -> None:
    shot = breaker.snapshot()
    assert (shot.state, shot.trials, shot.failures) == ("HALF_OPEN", 0, 1)
    breaker.call(lambda: None)
    assert (breaker.state, breaker.failures) == ("CLOSED", 0)


@pytest.mark.parametrize("error", [
    BusinessError, KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError, DeadlineExceededError,
])
def test_an_error_that_is_no_answer(error: type[BaseException], manual_clock: ManualClock) -> None:
    breaker = half_open(manual_clock)

    def call() -> None:
        raise error

    with pytest.raises(error):
        breaker.call(call)
    assert_as_before(breaker)


@pytest.mark.parametrize("form", ["decorator", "async with", "async for"])
def test_a_task_that_is_cancelled(form: str, manual_clock: ManualClock) -> None:
    breaker = half_open(manual_clock)

    async def main() -> None:
        inside = asyncio.Event()

        async def hang() -> None:
            inside.set()
            await asyncio.Event().wait()

        async def block() -> None:
            async with breaker:
                await hang()

        async def items() -> AsyncIterator[None]:
            await hang()
            yield

        async def loop() -> None:
            async for _ in breaker(items)():
                pass

        task = asyncio.ensure_future({"decorator": breaker(hang), "async with": block, "async for": loop}[form]())
        await inside.wait()
        assert breaker.allow() is False
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_async(main())
    assert_as_before(breaker)


def test_a_task_whose_time_is_up_is_no_failure_either(manual_clock: ManualClock) -> None:
    """``asyncio.timeout`` around the guard is the caller's impatience; it reaches the guard as a cancellation."""
    breaker = half_open(manual_clock)

    async def main() -> None:
        async with asyncio.timeout(0.01):
            await breaker.acall(asyncio.Event().wait)

    with pytest.raises(TimeoutError):
        run_async(main())
    assert_as_before(breaker)


def test_a_trial_whose_token_is_discarded(manual_clock: ManualClock) -> None:
    breaker = half_open(manual_clock)
    breaker.discard(breaker.admit())
    assert_as_before(breaker)
