"""A guarded generator is one call, from its first item to its end; a consumer that stops early is content, not failing."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

import pytest

from seawall import Bulkhead, CircuitBreaker, CircuitOpenError, Target
from tests.aio import run_async
from tests.clock import ManualClock
from tests.guard.both import FORMS, without_a_loop
from tests.lines import assert_at_rest
from tests.points import at_each_point

pytestmark = pytest.mark.req("LIB-1")


@pytest.fixture
def breaker(manual_clock: ManualClock) -> CircuitBreaker:
    return CircuitBreaker(1, 10.0, manual_clock, name="CORE")


@pytest.fixture
def target(breaker: CircuitBreaker) -> Target:
    return Target("CORE", breaker=breaker, bulkhead=Bulkhead(1))


def in_flight(target: Target) -> int:
    assert target.bulkhead is not None
    return target.bulkhead.in_flight


def pieces(log: list[object]) -> Generator[int, str, str]:
    """Says what is sent and thrown in, and that it was closed."""
    try:
        log.append((yield 1))
        log.append((yield 2))
    except ValueError as error:
        log.append(error)
        yield 99
    finally:
        log.append("closed")
    return "end"


async def apieces(log: list[object]) -> AsyncGenerator[int, str]:
    try:
        log.append((yield 1))
        log.append((yield 2))
    except ValueError as error:
        log.append(error)
        yield 99
    finally:
        log.append("closed")


def test_it_is_admitted_at_its_first_item_and_holds_its_place_to_the_end(target: Target, breaker: CircuitBreaker) -> None:
    log: list[object] = []
    stream = target(pieces)(log)
    assert (breaker.started, in_flight(target)) == (0, 0)
    assert next(stream) == 1
    assert (breaker.started, in_flight(target)) == (1, 1)
    assert stream.send("a") == 2
    with pytest.raises(StopIteration) as end:
        stream.send("b")
    assert (end.value.value, log, in_flight(target), breaker.state) == ("end", ["a", "b", "closed"], 0, "CLOSED")


def test_the_value_it_returns_reaches_yield_from(target: Target) -> None:
    def outer() -> Generator[int, str, None]:
        assert (yield from target(pieces)([])) == "end"

    assert list(outer()) == [1, 2]


def test_what_is_thrown_in_reaches_it(target: Target, breaker: CircuitBreaker) -> None:
    log: list[object] = []
    stream, error = target(pieces)(log), ValueError()
    next(stream)
    assert stream.throw(error) == 99
    assert list(stream) == []
    assert (log, in_flight(target), breaker.state) == ([error, "closed"], 0, "CLOSED")


def test_an_error_out_of_it_is_a_failure(target: Target, breaker: CircuitBreaker) -> None:
    stream = target(pieces)([])
    next(stream)
    with pytest.raises(ConnectionError):
        stream.throw(ConnectionError())
    assert (breaker.state, in_flight(target)) == ("OPEN", 0)
    refused = target(pieces)([])
    with pytest.raises(CircuitOpenError):
        next(refused)


def test_an_error_while_it_is_closed_is_a_failure_and_gives_all_back(target: Target, breaker: CircuitBreaker) -> None:
    def breaks() -> Generator[int, None, None]:
        try:
            yield 1
        finally:
            raise ConnectionError

    stream = target(breaks)()
    next(stream)
    with pytest.raises(ConnectionError):
        stream.close()
    assert (breaker.state, in_flight(target)) == ("OPEN", 0)


def test_one_that_is_dropped_unfinished_gives_its_place_back(target: Target, breaker: CircuitBreaker) -> None:
    next(target(pieces)([]))
    assert (in_flight(target), breaker.state) == (0, "CLOSED")


def test_one_that_is_never_begun_takes_nothing(target: Target, breaker: CircuitBreaker) -> None:
    target(pieces)([]).close()
    assert (breaker.started, in_flight(target)) == (0, 0)


def test_an_async_one_is_admitted_at_its_first_item_and_holds_its_place_to_the_end(
    target: Target, breaker: CircuitBreaker
) -> None:
    log: list[object] = []

    async def main() -> None:
        stream = target(apieces)(log)
        assert breaker.started == 0
        assert await anext(stream) == 1
        assert (breaker.started, in_flight(target)) == (1, 1)
        assert await stream.asend("a") == 2
        with pytest.raises(StopAsyncIteration):
            await stream.asend("b")

    run_async(main())
    assert (log, in_flight(target), breaker.state) == (["a", "b", "closed"], 0, "CLOSED")


def test_what_is_thrown_into_an_async_one_reaches_it(target: Target, breaker: CircuitBreaker) -> None:
    log: list[object] = []
    error = ValueError()

    async def main() -> None:
        stream = target(apieces)(log)
        await anext(stream)
        assert await stream.athrow(error) == 99
        assert [item async for item in stream] == []
        failing = target(apieces)(log)
        await anext(failing)
        with pytest.raises(ConnectionError):
            await failing.athrow(ConnectionError())

    run_async(main())
    assert (log, in_flight(target), breaker.state) == ([error, "closed", "closed"], 0, "OPEN")


def test_an_error_while_an_async_one_is_closed_is_a_failure_and_gives_all_back(
    target: Target, breaker: CircuitBreaker
) -> None:
    async def breaks() -> AsyncGenerator[int, None]:
        try:
            yield 1
        finally:
            raise ConnectionError

    async def main() -> None:
        stream = target(breaks)()
        await anext(stream)
        with pytest.raises(ConnectionError):
            await stream.aclose()

    run_async(main())
    assert (breaker.state, in_flight(target)) == ("OPEN", 0)


@pytest.mark.fault("F08")
def test_closing_an_async_one_closes_the_one_inside_before_its_place_is_given_back(target: Target) -> None:
    seen: list[Any] = []

    async def items() -> AsyncGenerator[int, None]:
        try:
            yield 1
        finally:
            seen.append(in_flight(target))

    async def main() -> None:
        stream = target(items)()
        await anext(stream)
        await stream.aclose()
        seen.append(in_flight(target))

    run_async(main())
    assert seen == [1, 0]


def interrupt() -> None:
    raise KeyboardInterrupt


def to_its_end(stream: Any) -> None:
    for _ in stream:
        pass


def closed(stream: Any) -> None:
    next(stream)
    stream.close()


def thrown(stream: Any) -> None:
    next(stream)
    stream.throw(ConnectionError)


async def ato_its_end(stream: Any) -> None:
    async for _ in stream:
        pass


async def aclosed(stream: Any) -> None:
    await anext(stream)
    await stream.aclose()


async def athrown(stream: Any) -> None:
    await anext(stream)
    await stream.athrow(ConnectionError)


SYNC = (to_its_end, closed, thrown)


def by_call(stack: Any, fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda: stack.call(fn)


@pytest.mark.fault("F48")
@pytest.mark.filterwarnings("ignore:.*was never awaited:RuntimeWarning")  # interrupted between a coroutine and its await
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("use", [to_its_end, closed, thrown, ato_its_end, aclosed, athrown])
@pytest.mark.parametrize("form", [*FORMS.values(), by_call], ids=[*FORMS, "call"])
@pytest.mark.parametrize("scene", ["a bulkhead", "a target", "a trial"])
def test_interrupted_anywhere_they_lose_no_slot(scene: str, form: Any, use: Any) -> None:
    """Whoever keeps the error keeps their frames: no collector may be needed to give the slot back."""

    def items() -> Generator[int, None, None]:
        yield 1

    async def aitems() -> AsyncGenerator[int, None]:
        yield 1

    def once(struck: Callable[[Callable[[], object]], None]) -> None:
        clock, limit = ManualClock(), Bulkhead(1)
        breaker = CircuitBreaker(1, 10.0, clock)
        stack = limit if scene == "a bulkhead" else Target("CORE", breaker=breaker, bulkhead=limit)
        if scene == "a trial":
            breaker.record_failure()
            clock.set(10)
        kept: list[BaseException] = []
        stream: Any = form(stack, items if use in SYNC else aitems)()
        try:
            struck(lambda: use(stream) if use in SYNC else without_a_loop(use(stream)))
        except (KeyboardInterrupt, ConnectionError) as error:
            kept.append(error)
        assert_at_rest(limit)

    assert at_each_point(once, interrupt) > 1
