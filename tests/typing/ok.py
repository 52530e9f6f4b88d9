"""Calls that must check: what is guarded keeps its type, whatever it is. Never run; read by mypy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from functools import partial
from typing import Any, assert_type

from seawall import (
    Bulkhead,
    CircuitBreaker,
    CircuitOpenError,
    ModeChanged,
    State,
    StateChanged,
    Target,
    Timeout,
    TimeoutExceededError,
    Wall,
    on_result,
)

breaker = CircuitBreaker(5, 10.0)
breaker = CircuitBreaker(5, 10, lambda: 0.0, name="CORE", half_open_max_calls=2, success_threshold=3)
breaker = CircuitBreaker(counts_as_failure=ConnectionError)
breaker = CircuitBreaker(counts_as_failure=[ConnectionError, lambda error: error.args == (1,)], ignores=(KeyError, OSError))
breaker = CircuitBreaker(counts_as_failure=on_result(lambda answer: answer.status >= 500))
limit = Bulkhead(10)
two_seconds = Timeout(2, name="CORE")
core: Target = Wall().target("CORE")


@breaker
def transfer(amount: int, /, to: str, *, fast: bool = False) -> float:
    return amount / (1 + fast) if to else 0.0


@core
async def atransfer(amount: int) -> str:
    return str(amount)


@breaker
@two_seconds
async def limited(amount: int, *, to: str = "") -> str:
    return str(amount)


@two_seconds
def limited_too(amount: int, /, to: str = "") -> float:
    return amount / 2 if to else 0.0


@limit
def items(count: int) -> Iterator[int]:
    yield from range(count)


@core
async def aitems(count: int) -> AsyncIterator[int]:
    yield count


class Client:
    @breaker
    def get(self, path: str) -> bytes:
        return path.encode()

    @staticmethod
    @breaker
    def parse(data: bytes) -> str:
        return data.decode()

    @two_seconds
    def read(self, size: int) -> bytes:
        return bytes(size)

    @classmethod
    @breaker
    def make(cls) -> Client:
        return cls()

    @property
    @breaker
    def size(self) -> int:
        return 0


assert_type(transfer(3, to="x", fast=True), float)
assert_type(Client.make().get("/"), bytes)
assert_type(Client.parse(b""), str)
assert_type(Client().size, int)
assert_type(list(items(3)), list[int])
assert_type(breaker.call(transfer, 3, "x", fast=True), float)
assert_type(breaker.call(Client().get, "/"), bytes)
assert_type(breaker.call(lambda: 7), int)
assert_type(breaker(partial(transfer, 3))(to="x"), float)
assert_type(limited_too(1, to="x"), float)
assert_type(two_seconds.call(limited_too, 1, to="x"), float)
assert_type(two_seconds.call(lambda: 7), int)
assert_type(two_seconds(partial(transfer, 3))(to="x"), float)
assert_type(Client.make().read(3), bytes)
assert_type(Timeout(0.5, max_abandoned=8).abandoned, int)
double: Callable[[int], int] = breaker(lambda value: value * 2)


def reports() -> None:
    if breaker.allow():
        breaker.record_failure("E901")
    assert_type(breaker.state, State)
    assert_type(breaker.failures, int)
    assert_type(breaker.retry_at, float)
    with core as entered:
        assert_type(entered, Target)
    try:
        transfer(1, "x")
    except CircuitOpenError as error:
        assert_type(error.retry_after, float | None)
        assert_type(error.target, str)


async def tasks() -> None:
    assert_type(await atransfer(1), str)
    assert_type(await core.acall(atransfer, amount=1), str)
    coroutine: Coroutine[Any, Any, str] = core.call(atransfer, 1)
    awaitable: Awaitable[str] = coroutine
    assert_type(await awaitable, str)
    async with breaker as entered:
        assert_type(entered, CircuitBreaker)
    assert_type([item async for item in aitems(3)], list[int])


async def limits() -> None:
    assert_type(await limited(1, to="x"), str)
    assert_type(await two_seconds.acall(atransfer, amount=1), str)
    assert_type(await two_seconds.call(atransfer, amount=1), str)
    async with two_seconds as entered:
        assert_type(entered, Timeout)
    try:
        await limited(1)
    except TimeoutExceededError as error:
        assert_type(error.limit, float)
        assert_type(error.target, str)


def listener(event: StateChanged | ModeChanged) -> None:
    assert_type(event.at, float)


stop: Callable[[], None] = breaker.listen(listener)
breaker.listen(print)
