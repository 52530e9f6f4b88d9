"""A call that has not ended in time is cancelled and raises; one that has ended is what it was without the limit."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import math
import pickle
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from seawall import CircuitBreaker, ConfigError, DeadlineExceededError, SeawallError, Timeout, TimeoutExceededError
from seawall.guard.blocks import blocks
from tests.drivers.virtual import run_virtual, the_loop
from tests.policies.limits import Form, end_of, ours, requests, wait


# -- in time, and not
@ours
def test_a_call_that_ends_in_time_is_what_it_was_without_the_limit(form: Form) -> None:
    marks: ContextVar[str] = ContextVar("marks", default="outside")

    async def call() -> str:
        inside = marks.get()
        marks.set("inside")
        await asyncio.sleep(0.5)
        return inside

    async def main() -> tuple[object, str, int]:
        marks.set("caller")
        result = await form(1.0, call)
        await asyncio.sleep(5.0)
        return result, marks.get(), requests()

    assert run_virtual(main()) == ("caller", "inside", 0)


@ours
@pytest.mark.parametrize("error", [TimeoutError("their own"), ZeroDivisionError(), TimeoutExceededError("other", 9.0)])
def test_the_errors_of_a_call_pass_unchanged(form: Form, error: Exception) -> None:
    async def call() -> None:
        await asyncio.sleep(0.5)
        raise error

    async def main() -> None:
        with pytest.raises(type(error)) as caught:
            await form(1.0, call)
        assert caught.value is error
        assert error.__cause__ is None

    run_virtual(main())


@ours
@pytest.mark.req("LIB-5")
def test_a_call_that_does_not_is_cancelled_and_its_task_goes_on(form: Form) -> None:
    ends: list[object] = []

    async def call() -> None:
        try:
            await wait()
        except asyncio.CancelledError:
            ends.append(the_loop().time())
            raise

    async def main() -> int:
        with pytest.raises(TimeoutExceededError) as caught:
            await form(1.5, call)
        assert isinstance(caught.value.__cause__, asyncio.CancelledError)
        assert (caught.value.target, caught.value.limit) == ("", 1.5)
        await asyncio.sleep(1.0)
        return requests()

    assert run_virtual(main()) == 0
    assert ends == [1001.5]


def test_arguments_reach_the_call() -> None:
    limit = Timeout(1.0)

    @limit
    async def call(*args: int, **kwargs: int) -> tuple[object, object]:
        return args, kwargs

    async def main() -> None:
        assert await call() == ((), {})
        assert await call(1, 2) == ((1, 2), {})
        assert await call(1, two=2) == ((1,), {"two": 2})
        assert await limit.acall(call, 1, two=2) == ((1,), {"two": 2})
        with pytest.raises(TypeError, match="result"):
            await Timeout(1.0)(wait)(resultt=1)  # type: ignore[call-arg]

    run_virtual(main())


# -- one limit, many users
def test_one_limit_serves_many_tasks_and_nests_in_itself() -> None:
    limit = Timeout(1.0)

    @limit
    async def call(work: float) -> float:
        async with limit:
            async with limit:
                await asyncio.sleep(work / 2)
            async with limit:
                await limit.acall(asyncio.sleep, work / 2)
        return work

    async def main() -> list[object]:
        return await asyncio.gather(*(end_of(call(work)) for work in (0.5, 1.5, 0.9, 3.0)))

    assert run_virtual(main()) == [0.5, "timeout", 0.9, "timeout"]


def test_a_task_begun_inside_a_block_has_its_own_time() -> None:
    """It inherits the context of its parent, and nothing of the limit."""
    limit = Timeout(1.0)

    async def child() -> str:
        await asyncio.sleep(0.9)
        async with limit:
            await asyncio.sleep(0.9)
        return "child"

    async def main() -> tuple[object, object]:
        async with limit as entered:
            assert entered is limit
            task = asyncio.create_task(child())
            await asyncio.sleep(0.5)
        async with limit:
            await asyncio.sleep(0.9)
        return await end_of(task), await end_of(limit.acall(wait))

    assert run_virtual(main()) == ("child", "timeout")


def test_blocks_one_after_another_leave_nothing_in_the_context() -> None:
    limit = Timeout(1.0)

    async def main() -> int:
        for _ in range(100):
            async with limit, limit:
                await asyncio.sleep(0)
        depth, found = 0, blocks.get()
        while found[2] is not None:
            depth, found = depth + 1, found[2]
        return depth

    assert run_virtual(main()) <= 2


def test_a_block_is_left_in_the_task_that_entered_it() -> None:
    limit = Timeout(1.0)

    async def main() -> None:
        await asyncio.create_task(limit.__aenter__())
        with pytest.raises(RuntimeError, match="left in another thread or task"):
            await limit.__aexit__(None, None, None)

    run_virtual(main())


# -- around what
def test_the_decorator_keeps_name_docstring_and_signature() -> None:
    async def call(one: int, /, two: str = "2", *, three: float) -> None:
        """What it does."""

    call.mark = 7  # type: ignore[attr-defined]
    limited: Any = Timeout(1.0)(call)
    assert (limited.__name__, limited.__doc__, limited.__module__) == ("call", "What it does.", __name__)
    assert inspect.signature(limited) == inspect.signature(call)
    assert (limited.__wrapped__, limited.mark) == (call, 7)
    assert inspect.iscoroutinefunction(limited)
    assert asyncio.iscoroutinefunction(limited)


def test_methods_partials_and_callable_objects_are_coroutine_functions_too() -> None:
    limit = Timeout(1.0)

    class Client:
        def __init__(self) -> None:
            self.seen = "seen"

        @limit
        async def get(self, work: float) -> str:
            await asyncio.sleep(work)
            return self.seen

        @staticmethod
        @limit
        async def static(work: float) -> str:
            await asyncio.sleep(work)
            return "static"

        @classmethod
        @limit
        async def of_class(cls, work: float) -> str:
            await asyncio.sleep(work)
            return cls.__name__

        async def __call__(self, work: float) -> str:
            return await self.get(work)

    client = Client()
    calls: list[tuple[Callable[[float], Awaitable[str]], str]] = [
        (client.get, "seen"), (Client.static, "static"), (client.of_class, "Client"), (limit(client), "seen"),
        (limit(client.get), "seen"), (limit(functools.partial(Client.get, client)), "seen"),
    ]  # fmt: skip

    async def main() -> None:
        for call, result in calls:
            assert await call(0.5) == result
            assert await end_of(call(1.5)) == "timeout"

    run_virtual(main())
    assert not hasattr(limit(client), "seen")


@pytest.mark.parametrize(("thing", "message"), [
    (CircuitBreaker, "class CircuitBreaker"),
    (staticmethod(wait), "staticmethod"),
    (7, "not callable"),
    (None, "not callable"),
])
def test_what_cannot_be_limited_is_refused_at_decoration(thing: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Timeout(1.0)(thing)


def test_generators_are_refused_at_decoration() -> None:
    def values() -> Iterator[int]:
        yield 1

    async def avalues() -> AsyncIterator[int]:
        yield 1

    for thing, kind in [(values, "the generator"), (avalues, "the async generator")]:
        with pytest.raises(TypeError, match=f"{kind} .* its consumer decides how long it takes"):
            Timeout(1.0)(thing)


# -- settings, errors
@pytest.mark.parametrize("seconds", [0, 0.0, -1, -math.inf, math.inf, math.nan, 10**400, "2", None, [1.0]])
def test_a_limit_is_a_number_of_seconds_more_than_none(seconds: Any) -> None:
    with pytest.raises(ConfigError, match="more than 0 and finite, not"):
        Timeout(seconds)


def test_a_limit_without_its_seconds_says_how_to_write_it() -> None:
    with pytest.raises(TypeError, match=r"write  limit = Timeout\(2.0\)  and then  @limit"):
        Timeout(wait)  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [1e-9, 1, 2.5, 10**9, sys.float_info.max])
def test_any_other_number_is_a_limit(seconds: float) -> None:
    limit = Timeout(seconds, name="CORE")
    assert (limit.seconds, limit.name, type(limit.seconds)) == (seconds, "CORE", float)

    async def main() -> object:
        return await end_of(limit.acall(wait, 0.1, "done"))

    assert run_virtual(main()) == ("timeout" if seconds < 0.1 else "done")


def test_how_it_shows_itself() -> None:
    assert repr(Timeout(2)) == "<Timeout 2 s>"
    assert repr(Timeout(0.25, name="CORE")) == "<Timeout 0.25 s for CORE>"


@pytest.mark.parametrize(("error", "message"), [
    (TimeoutExceededError("CORE", 2.0), "CORE: no answer within 2 s"),
    (TimeoutExceededError("", 0.25), "no answer within 0.25 s"),
])
def test_the_error_says_target_and_limit_and_survives_pickling(error: TimeoutExceededError, message: str) -> None:
    error.add_note("attempt 1")
    for again in (error, pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (str(again), again.target, again.limit) == (message, error.target, error.limit)
        assert (again.errno, again.strerror, again.__notes__) == (None, None, ["attempt 1"])
    assert isinstance(error, SeawallError)
    assert isinstance(error, TimeoutError)
    assert not isinstance(error, DeadlineExceededError)


@ours
def test_each_error_is_made_afresh(form: Form) -> None:
    async def main() -> tuple[object, object]:
        return await asyncio.gather(form(1.0, wait), form(1.0, wait), return_exceptions=True)

    one, other = run_virtual(main())
    assert type(one) is type(other) is TimeoutExceededError
    assert one is not other


# -- under a breaker
@pytest.mark.req("LIB-5")
def test_an_exceeded_limit_is_a_failure_of_the_target() -> None:
    breaker = CircuitBreaker(2, name="CORE")

    @breaker
    @Timeout(1.0, name="CORE")
    async def call() -> object:
        return await wait()

    async def main() -> None:
        for failures in (1, 2):
            with pytest.raises(TimeoutExceededError, match="CORE: no answer within 1 s"):
                await call()
            assert breaker.failures == failures
        assert breaker.state == "OPEN"
        assert breaker.snapshot().reason == "2 failures in a row, last TimeoutExceededError"

    run_virtual(main())


def test_a_caller_that_leaves_before_the_limit_does_not_count_against_the_target() -> None:
    breaker = CircuitBreaker(1)

    @breaker
    @Timeout(1.0)
    async def call() -> object:
        return await wait()

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await call()
        assert (breaker.state, breaker.failures) == ("CLOSED", 0)

    run_virtual(main())


def test_a_program_without_limits_does_not_pay_for_asyncio() -> None:
    """Even one that makes a limit: asyncio is imported when it is put around something."""
    program = "import sys, seawall; seawall.Timeout(2.0); print('asyncio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True,
                          env={"PYTHONPATH": "src"})
    assert done.stdout == "False\n"
