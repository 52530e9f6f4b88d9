"""F02: the failures of a coroutine function are counted, in each form; the coroutine object is never taken for a result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from seawall import CircuitBreaker, CircuitOpenError
from tests.aio import run_async


async def fails() -> None:
    raise ConnectionError


async def block(breaker: CircuitBreaker) -> None:
    async with breaker:
        await fails()


@pytest.mark.fault("F02")
@pytest.mark.parametrize("make", [
    pytest.param(lambda breaker: breaker(fails), id="decorator"),
    pytest.param(lambda breaker: lambda: breaker.acall(fails), id="acall"),
    pytest.param(lambda breaker: lambda: breaker.call(fails), id="call, then await"),
    pytest.param(lambda breaker: lambda: block(breaker), id="async with"),
])
def test_it_opens_after_the_second_failure(make: Callable[[CircuitBreaker], Callable[[], Awaitable[None]]]) -> None:
    breaker = CircuitBreaker(2)
    call = make(breaker)

    async def once() -> str:
        try:
            await call()
        except (ConnectionError, CircuitOpenError) as error:
            return f"{type(error).__name__} {breaker.state}"
        return "no error"

    ends = [run_async(once()) for _ in range(3)]
    assert ends == ["ConnectionError CLOSED", "ConnectionError OPEN", "CircuitOpenError OPEN"]
    assert breaker.started == 2


@pytest.mark.fault("F02")
def test_a_coroutine_that_is_never_awaited_was_never_a_call() -> None:
    breaker = CircuitBreaker(2)
    breaker(fails)().close()
    assert breaker.started == 0
