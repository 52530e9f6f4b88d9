"""Who cancelled a call under a limit is told apart as asyncio.timeout does it; each test is run on that, too."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator

import pytest

from seawall import Timeout, TimeoutExceededError
from tests.drivers.virtual import run_virtual, the_loop
from tests.policies.limits import OURS, Form, alike, asyncios, end_of, ours, requests, wait


def at(seconds: float, do: Callable[[], object]) -> None:
    """Have the loop ``do`` it so many seconds after the start of its time."""
    the_loop().call_at(1000.0 + seconds, do)


@alike
@pytest.mark.parametrize(("cancels", "end"), [
    ([], "timeout"),
    ([0.4], "CancelledError"),              # long before
    ([1.0], "CancelledError"),              # in the same turn of the loop
    ([1.0, 1.0], "CancelledError"),
    ([1.2], "CancelledError"),              # while the call cleans up
    ([1.9], "timeout"),                     # after the end
])
def test_a_cancellation_from_outside_wins(form: Form, cancels: list[float], end: str) -> None:
    async def call() -> None:
        try:
            await wait()
        finally:
            await asyncio.sleep(0.5)

    async def main() -> tuple[object, int]:
        task = asyncio.create_task(form(1.0, call))
        for seconds in cancels:
            at(seconds, task.cancel)
        return await end_of(task), task.cancelling()

    assert run_virtual(main()) == (end, len(cancels) if end == "CancelledError" else 0)


@alike
@pytest.mark.parametrize("first", ["cancel", "limit"])
def test_a_cancellation_in_the_same_turn_wins_whichever_is_first(form: Form, first: str) -> None:
    async def main() -> object:
        task = asyncio.create_task(form(1.0, wait))
        if first == "cancel":
            at(1.0, task.cancel)
        await asyncio.sleep(0)  # now the limit is armed
        if first == "limit":
            at(1.0, task.cancel)
        return await end_of(task)

    assert run_virtual(main()) == "CancelledError"


@alike
def test_a_limit_on_the_clean_up_of_a_cancelled_task_is_a_limit_all_the_same(form: Form) -> None:
    """The request to cancel was there before, so it is not held against the limit."""

    async def cancelled() -> object:
        try:
            await wait()
        finally:
            left = await end_in_place(form(1.0, wait))
            ends.append((left, requests(), the_loop().time()))
        return None

    async def end_in_place(awaitable: Awaitable[object]) -> object:
        try:
            return await awaitable
        except TimeoutError:
            return "timeout"

    ends: list[object] = []

    async def main() -> object:
        task = asyncio.create_task(cancelled())
        at(2.0, task.cancel)
        return await end_of(task)

    assert run_virtual(main()) == "CancelledError"
    assert ends == [("timeout", 1, 1003.0)]


@alike
@pytest.mark.parametrize(("outer", "inner", "end"), [
    (2.0, 1.0, "inner"),
    (1.0, 2.0, "outer"),
    (1.0, 1.0, "outer"),                    # together: the outer one, whose end covers the inner one's
])
def test_of_nested_limits_the_right_one_is_blamed(form: Form, outer: float, inner: float, end: str) -> None:
    async def inside() -> object:
        try:
            return await form(inner, wait)
        except TimeoutError:
            return "inner"

    async def main() -> tuple[object, int, float]:
        try:
            ended = await form(outer, inside)
        except TimeoutError:
            ended = "outer"
        return ended, requests(), the_loop().time()

    assert run_virtual(main()) == (end, 0, 1001.0)


@pytest.mark.parametrize(("outer", "inner"), [(form, asyncios) for form in OURS] + [(asyncios, form) for form in OURS])
@pytest.mark.parametrize("first", ["outer", "inner"])
def test_it_nests_with_asyncios_own(outer: Form, inner: Form, first: str) -> None:
    async def main() -> int:
        outer_s, inner_s, kind = (1.0, 2.0, outer) if first == "outer" else (2.0, 1.0, inner)
        with pytest.raises(TimeoutError) as caught:
            await outer(outer_s, lambda: inner(inner_s, wait))
        assert type(caught.value) is (TimeoutError if kind is asyncios else TimeoutExceededError)
        return requests()

    assert run_virtual(main()) == 0


@alike
def test_an_inner_limit_that_is_caught_leaves_the_outer_one_in_force(form: Form) -> None:
    async def inside() -> None:
        while True:
            with pytest.raises(TimeoutError):
                await form(0.4, wait)

    async def main() -> tuple[object, float]:
        return await end_of(form(1.0, inside)), the_loop().time()

    assert run_virtual(main()) == ("timeout", 1001.0)


@alike
@pytest.mark.parametrize("in_spite", ["result", "error"])
def test_a_call_that_suppresses_its_cancellation_ends_as_it_ends(form: Form, in_spite: str) -> None:
    async def call() -> str:
        try:
            await wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0.5)
            if in_spite == "error":
                raise ZeroDivisionError from None
        return in_spite

    async def main() -> tuple[object, float, int]:
        try:
            ended = await form(1.0, call)
        except ZeroDivisionError:
            ended = "error"
        return ended, the_loop().time(), requests()

    assert run_virtual(main()) == (in_spite, 1001.5, 0)


@alike
def test_the_tasks_of_a_group_are_cancelled_with_it(form: Form) -> None:
    cancelled: list[int] = []

    async def member(number: int) -> None:
        try:
            await wait()
        except asyncio.CancelledError:
            cancelled.append(number)
            raise

    async def call() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(3):
                group.create_task(member(number))

    async def main() -> tuple[object, int]:
        return await end_of(form(1.0, call)), requests()

    assert run_virtual(main()) == ("timeout", 0)
    assert sorted(cancelled) == [0, 1, 2]


# -- closed
@ours
def test_a_call_that_is_closed_by_hand_takes_its_limit_along(form: Form) -> None:
    """As an async generator is by ``aclose``: what is closed must not cancel the task later."""

    async def values() -> AsyncGenerator[int, None]:
        yield 1
        await form(1.0, gate)

    async def gate() -> None:
        await _Once()

    async def main() -> int:
        generator = values()
        await anext(generator)
        step = generator.asend(None)
        assert step.send(None) is None      # the limit is armed and waits
        with pytest.raises(GeneratorExit):
            step.throw(GeneratorExit())
        await asyncio.sleep(5.0)
        return requests()

    assert run_virtual(main()) == 0


class _Once:
    """Suspends once, without a future."""

    def __await__(self) -> Generator[None, None, None]:
        yield None


def test_an_abandoned_block_says_nothing_when_it_is_collected() -> None:
    """Outside its own task, as the collector may find it."""
    limit = Timeout(1.0)

    async def call() -> None:
        async with limit:
            await _Once()

    async def main() -> None:
        coroutine = call()
        steps = [coroutine.send]

        async def drive() -> None:
            steps.pop()(None)

        await asyncio.create_task(drive())
        coroutine.close()

    run_virtual(main())
    gc.collect()
