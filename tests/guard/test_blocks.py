"""A ``with`` block is one call: admitted, refused and judged like any other; in threads, in tasks, nested, interleaved."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncGenerator, Iterator

import pytest

from seawall import Bulkhead, BulkheadFullError, CircuitBreaker, CircuitOpenError, Target
from seawall.guard.blocks import blocks
from seawall.outcome import SUCCESS
from tests.aio import run_async
from tests.clock import ManualClock

pytestmark = pytest.mark.req("LIB-1")


@pytest.fixture
def breaker(manual_clock: ManualClock) -> CircuitBreaker:
    return CircuitBreaker(2, 10.0, manual_clock, name="CORE")


@pytest.fixture
def target(breaker: CircuitBreaker) -> Target:
    return Target("CORE", breaker=breaker, bulkhead=Bulkhead(2))


def free(target: Target) -> int:
    assert target.bulkhead is not None
    return target.bulkhead.max_concurrent - target.bulkhead.in_flight


def test_a_block_counts_like_a_call(target: Target, breaker: CircuitBreaker) -> None:
    with target as entered:
        assert entered is target
        assert free(target) == 1
    for failures in (1, 2):
        with pytest.raises(ConnectionError), target:
            raise ConnectionError
        assert breaker.failures == failures
    with pytest.raises(CircuitOpenError), target:
        pytest.fail("the block must not run")
    assert (free(target), breaker.started, breaker.rejected) == (2, 3, 1)


def test_an_async_block_counts_like_a_call(target: Target, breaker: CircuitBreaker) -> None:
    async def main() -> None:
        async with target as entered:
            assert entered is target
        for _ in range(2):
            with pytest.raises(ConnectionError):
                async with target:
                    raise ConnectionError
        with pytest.raises(CircuitOpenError):
            async with target:
                pytest.fail("the block must not run")

    run_async(main())
    assert (breaker.state, free(target), breaker.started) == ("OPEN", 2, 3)


def test_blocks_of_one_guard_nest(target: Target, breaker: CircuitBreaker) -> None:
    with target:
        with target:
            assert (free(target), breaker.started) == (0, 2)
            with pytest.raises(BulkheadFullError), target:
                pytest.fail("no place is free")
        assert free(target) == 1
    assert (free(target), breaker.failures) == (2, 0)


def test_blocks_of_several_guards_need_not_be_left_in_order(manual_clock: ManualClock) -> None:
    first, second = CircuitBreaker(1, clock=manual_clock), CircuitBreaker(1, clock=manual_clock)
    first.__enter__()
    second.__enter__()
    first.__exit__(ConnectionError, ConnectionError(), None)
    second.__exit__(None, None, None)
    assert (first.state, second.state) == ("OPEN", "CLOSED")


def test_blocks_in_generators_that_take_turns_end_one_call_each(target: Target, breaker: CircuitBreaker) -> None:
    def items() -> Iterator[int]:
        with target:
            yield 1
            yield 2

    first, second = items(), items()
    assert [next(first), next(second), next(first)] == [1, 1, 2]
    assert free(target) == 0
    assert list(first) == []
    assert list(second) == [2]
    assert (free(target), breaker.started, breaker.failures) == (2, 2, 0)


def test_each_task_has_its_own_block_and_a_child_leaves_its_parents_alone(target: Target) -> None:
    async def child() -> None:
        async with target:
            await asyncio.sleep(0)

    async def main() -> None:
        async with target:
            await asyncio.create_task(child())
            assert free(target) == 1
        await asyncio.gather(child(), child())

    run_async(main())
    assert free(target) == 2


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError])
def test_a_block_that_is_left_early_counts_for_nothing_and_gives_all_back(
    error: type[BaseException], target: Target, breaker: CircuitBreaker, manual_clock: ManualClock
) -> None:
    for _ in range(2):
        breaker.record_failure()
    manual_clock.set(10)
    with pytest.raises(error), target:
        raise error
    assert (breaker.state, breaker.snapshot().trials, free(target)) == ("HALF_OPEN", 0, 2)
    with target:
        pass
    assert breaker.state == "CLOSED"


def test_a_block_left_elsewhere_than_it_was_entered_says_so(target: Target) -> None:
    contextvars.copy_context().run(target.__enter__)
    with pytest.raises(RuntimeError, match="left in another thread or task than it was entered in"):
        target.__exit__(None, None, None)


def test_so_does_an_async_block_and_nobody_else_pays_for_it(breaker: CircuitBreaker) -> None:
    """The first block of an epoch is kept, those after it are counted: the wrong one must not take an element of theirs."""

    async def main() -> None:
        async with breaker:
            pass
        await asyncio.create_task(breaker.__aenter__())
        with pytest.raises(ConnectionError), breaker:  # noqa: PT012
            with pytest.raises(RuntimeError, match="left in another thread or task than it was entered in"):
                await breaker.__aexit__(None, None, None)
            raise ConnectionError
        assert breaker.failures == 1

    run_async(main())


@pytest.mark.parametrize("counted", [True, False])
def test_an_async_block_that_the_loop_closes_in_another_task_costs_nobody_anything(
    counted: bool, breaker: CircuitBreaker
) -> None:
    """Its generator was dropped unfinished. The loop is told, and who stands in a block of his own is judged by that."""
    told: list[BaseException] = []
    dropped: list[AsyncGenerator[int, None]] = []

    async def items() -> AsyncGenerator[int, None]:
        async with breaker:
            yield 1

    async def reader() -> None:
        dropped.append(items())
        await anext(dropped[0])

    async def innocent(inside: asyncio.Event, go: asyncio.Event) -> None:
        with pytest.raises(ConnectionError):  # noqa: PT012
            if counted:
                with breaker:
                    inside.set()
                    await go.wait()
                    raise ConnectionError
            async with breaker:
                inside.set()
                await go.wait()
                raise ConnectionError

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context["exception"]))
        await asyncio.create_task(reader())
        inside, go = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(innocent(inside, go))
        await inside.wait()
        dropped.clear()
        for _ in range(20):
            await asyncio.sleep(0)
        go.set()
        await task

    run_async(main())
    assert "left in another thread or task than it was entered in" in str(told[0])
    assert (breaker.failures, breaker.started) == (1, 2)
    with breaker:
        pass
    assert breaker.failures == 0


def test_a_block_of_a_generator_closed_in_another_context_costs_nobody_anything(breaker: CircuitBreaker) -> None:
    """The first block of an epoch is kept, and is not found; so it takes the element of the counted one."""

    def items() -> Iterator[int]:
        with breaker:
            yield 1

    stream = items()
    contextvars.copy_context().run(next, stream)
    with pytest.raises(ConnectionError), breaker:  # noqa: PT012
        contextvars.copy_context().run(stream.close)  # type: ignore[attr-defined]  # typed as an iterator, and is a generator
        raise ConnectionError
    assert (breaker.failures, breaker.started) == (1, 2)
    with breaker:
        pass
    assert breaker.failures == 0


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("guard", ["breaker", "target"])
def test_tasks_that_each_start_the_next_in_their_block_leave_no_chain_of_blocks(
    guard: str, steps: int, request: pytest.FixtureRequest
) -> None:
    """A task starts with the blocks of who started it. Left ones must not pile up, however long their tasks overlap."""
    entered: CircuitBreaker | Target = request.getfixturevalue(guard)
    if isinstance(entered, Target):
        entered = Target("CORE", bulkhead=Bulkhead(10))
    lengths: list[int] = []

    async def tick(left: int) -> None:
        async with entered:
            following = asyncio.create_task(tick(left - 1)) if left else None
            if following is None:
                lengths.append(chain())
            for _ in range(steps):
                await asyncio.sleep(0)
        if following is not None:
            await following

    def chain() -> int:
        block, length = blocks.get(), 0
        while block is not None:
            block, length = block[2], length + 1
        return length

    async def main() -> None:
        await tick(5)
        await tick(100)

    run_async(main())
    assert lengths[1] <= lengths[0] <= 10


def test_a_block_may_be_entered_in_any_thread(target: Target) -> None:
    inside: list[int] = []

    def run() -> None:
        with target:
            inside.append(free(target))

    with target:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join(30)
    assert (inside, free(target)) == ([0], 2)


def test_an_interrupt_while_a_block_is_entered_costs_neither_place_nor_trial(manual_clock: ManualClock) -> None:
    """It comes out of the clock here, the last piece of the user's code on the way in."""
    struck: list[bool] = []

    def clock() -> float:
        if struck:
            raise SystemExit
        return manual_clock()

    breaker = CircuitBreaker(1, 10.0, clock)
    target = Target("CORE", breaker=breaker, bulkhead=Bulkhead(2, clock=manual_clock))
    breaker.record_failure()
    manual_clock.set(10)
    struck.append(True)
    for _ in range(5):
        with pytest.raises(SystemExit), target:
            pytest.fail("the block must not run")
    struck.clear()
    assert (free(target), breaker.snapshot().trials) == (2, 0)
    breaker.settle(breaker.admit(), SUCCESS)
    assert breaker.state == "CLOSED"


def test_an_interrupt_out_of_a_listener_costs_neither_place_nor_trial(target: Target, breaker: CircuitBreaker,
                                                                      manual_clock: ManualClock) -> None:
    """The trial has been granted by then, and nobody has its token yet."""
    for _ in range(2):
        breaker.record_failure()
    manual_clock.set(10)

    def interrupt(event: object) -> None:
        raise SystemExit

    stop = breaker.listen(interrupt)
    with pytest.raises(SystemExit), target:
        pytest.fail("the block must not run")
    stop()
    assert (breaker.state, breaker.snapshot().trials, free(target)) == ("HALF_OPEN", 0, 2)
    with target:
        pass
    assert breaker.state == "CLOSED"
