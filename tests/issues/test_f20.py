"""F20: sync and async users of one name share one circuit and one limit, and changed settings reach both."""

from __future__ import annotations

import asyncio

import pytest

from seawall import Bulkhead, BulkheadFullError, CircuitBreaker, CircuitOpenError, ConfigError, Wall
from tests.aio import run_async
from tests.lines import assert_at_rest

pytestmark = pytest.mark.fault("F20")


def test_a_sync_and_an_async_user_of_one_name_meet_the_same_circuit() -> None:
    wall = Wall()

    @wall.target("CORE")
    def fails() -> None:
        raise OSError

    @wall.target("CORE")
    async def afails() -> None:
        raise OSError

    for _ in range(2):
        with pytest.raises(OSError):  # noqa: PT011  # any
            fails()
    for _ in range(3):
        with pytest.raises(OSError):  # noqa: PT011  # any
            run_async(afails())
    with pytest.raises(CircuitOpenError):
        fails()
    with pytest.raises(CircuitOpenError):
        run_async(afails())
    breaker = wall["CORE"].breaker
    assert breaker is not None
    assert breaker.started == 5


def test_a_sync_and_an_async_user_of_one_name_fill_the_same_room() -> None:
    wall = Wall()
    limit = Bulkhead(2)
    core = wall.target("CORE", bulkhead=limit)

    @core
    async def acall(entered: asyncio.Event, leave: asyncio.Event) -> None:
        entered.set()
        await leave.wait()

    async def main() -> None:
        leave = asyncio.Event()
        tasks, inside = [], [asyncio.Event(), asyncio.Event()]
        for entered in inside:
            tasks.append(asyncio.create_task(acall(entered, leave)))
            await entered.wait()
        with pytest.raises(BulkheadFullError):
            wall.target("CORE").call(int)
        leave.set()
        await asyncio.gather(*tasks)

    run_async(main())
    assert_at_rest(limit)


def test_registering_again_with_other_limits_is_an_error_or_a_change_that_applies() -> None:
    wall = Wall()

    @wall.target("CORE", breaker=CircuitBreaker(5), bulkhead=Bulkhead(5))
    def call(depth: int) -> int:
        return depth and call(depth - 1)

    assert call(4) == 0
    with pytest.raises(ConfigError):
        wall.target("CORE", bulkhead=Bulkhead(2))
    assert call(4) == 0
    wall.target("CORE", bulkhead=Bulkhead(2), replace=True)
    assert call(1) == 0
    with pytest.raises(BulkheadFullError):
        call(2)
    wall.target("CORE", breaker=CircuitBreaker(1), replace=True)
    breaker = wall["CORE"].breaker
    assert breaker is not None
    breaker.record_failure()
    with pytest.raises(CircuitOpenError):
        call(0)
