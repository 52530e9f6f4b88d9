"""The plain form: star arguments, and the policies' methods called one by one. It is the specification.

``run_...`` makes a whole call, ``attempt_...`` one attempt of it, ``resume_...`` what is left of one whose first attempt
was made by the generated form and has failed. How a slot is given back is told in :mod:`seawall.guard.passage`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from functools import partial
from typing import Any

from ..deadline import ambient
from ..drivers import aio, threads
from ..drivers.pool import run
from ..plan import Ended, retrying
from .kinds import ASYNC_GENERATOR, COROUTINE, FUNCTION, GENERATOR, Kind
from .nesting import loops_around, repeats
from .passage import Passage

__all__ = [
    "PLAIN",
    "Passage",
    "attempt_coroutine",
    "attempt_function",
    "resume_coroutine",
    "resume_function",
    "run_coroutine",
    "run_function",
    "run_generator",
]


def run_function(stack: Any, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call ``fn`` behind ``stack``: once, or as often as its retry decides."""
    if stack.retry is None:
        return attempt_function(stack, fn, args, kwargs)
    plan = retrying(stack.retry, ambient(), around=loops_around, counted=stack.breaker is not None)
    return threads.perform(plan, partial(attempt_function, stack, fn, args, kwargs))


def resume_function(stack: Any, fn: Callable[..., Any], error: BaseException, /, *args: Any, **kwargs: Any) -> Any:
    """:func:`run_function`, from where its first attempt has ended with ``error``."""
    plan = retrying(stack.retry, ambient(), Ended(None, error), around=loops_around)
    try:
        return threads.perform(plan, partial(attempt_function, stack, fn, args, kwargs))
    finally:
        del error, plan  # the error's traceback holds this frame: no cycle


def attempt_function(
    stack: Any, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], number: int = 1
) -> Any:
    """Call ``fn`` once, behind ``stack``: the ``number``-th time."""
    passage = Passage(stack, number)
    try:
        try:
            passage.enter()
            if stack.timeout is None:
                result = fn(*args, **kwargs)
            else:
                result = run(stack.timeout, fn, args, kwargs, passage.deadline, passage)
        finally:
            if (free := passage.held) is not None:
                passage.held = None
                free += (True,)
    except BaseException as error:
        passage.failed(error, fn)
        raise
    passage.succeeded(result)
    return result


async def run_coroutine(stack: Any, fn: Callable[..., Awaitable[Any]], /, *args: Any, **kwargs: Any) -> Any:
    """Await ``fn(...)`` behind ``stack``: once, or as often as its retry decides."""
    if stack.retry is None:
        return await attempt_coroutine(stack, fn, args, kwargs)
    plan = retrying(stack.retry, ambient(), around=loops_around, counted=stack.breaker is not None)
    return await aio.perform(plan, partial(attempt_coroutine, stack, fn, args, kwargs))


async def resume_coroutine(
    stack: Any, fn: Callable[..., Awaitable[Any]], error: BaseException, /, *args: Any, **kwargs: Any
) -> Any:
    """:func:`run_coroutine`, from where its first attempt has ended with ``error``."""
    plan = retrying(stack.retry, ambient(), Ended(None, error), around=loops_around)
    try:
        return await aio.perform(plan, partial(attempt_coroutine, stack, fn, args, kwargs))
    finally:
        del error, plan  # the error's traceback holds this frame: no cycle


async def attempt_coroutine(
    stack: Any, fn: Callable[..., Awaitable[Any]], args: tuple[Any, ...], kwargs: dict[str, Any], number: int = 1
) -> Any:
    """Await ``fn(...)`` once, behind ``stack``: the ``number``-th time."""
    passage = Passage(stack, number)
    try:
        try:
            await passage.aenter()
            call = fn(*args, **kwargs)  # here, so that wrong arguments are known by their traceback
            if stack.timeout is not None:
                from ..drivers.timers import limited  # not at the top: it imports asyncio

                call = limited(stack.timeout, call)
            if passage.deadline is not None:
                from ..drivers.ends import until

                call = until(passage.deadline, call)
            result = await call
        finally:
            if (free := passage.held) is not None:
                passage.held = None
                free += (True,)
    except BaseException as error:
        passage.failed(error, fn)
        raise
    passage.succeeded(result)
    return result


def run_generator(
    stack: Any, fn: Callable[..., Generator[Any, Any, Any]], /, *args: Any, **kwargs: Any
) -> Generator[Any, Any, Any]:
    """Run the generator ``fn(...)`` behind ``stack``, from its first ``next`` to its end."""
    passage = Passage(stack)
    try:
        try:
            passage.enter()
            result = yield from fn(*args, **kwargs)
        finally:
            if (free := passage.held) is not None:
                passage.held = None
                free += (True,)
    except GeneratorExit:  # it has yielded, and its consumer wants no more: that is no failure
        passage.ended()
        raise
    except BaseException as error:
        passage.failed(error, fn)
        raise
    passage.ended()
    return result


def plain_function(stack: Any, fn: Callable[..., Any]) -> Callable[..., Any]:
    """A plain function that calls ``fn`` behind ``stack``."""

    def guarded(*args: Any, **kwargs: Any) -> Any:
        return run_function(stack, fn, *args, **kwargs)

    repeats(guarded.__code__, "stack")
    return guarded


def plain_coroutine(stack: Any, fn: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """A coroutine function that awaits ``fn(...)`` behind ``stack``."""

    async def guarded(*args: Any, **kwargs: Any) -> Any:
        return await run_coroutine(stack, fn, *args, **kwargs)

    repeats(guarded.__code__, "stack")
    return guarded


def plain_generator(
    stack: Any, fn: Callable[..., Generator[Any, Any, Any]]
) -> Callable[..., Generator[Any, Any, Any]]:
    """A generator function that runs ``fn(...)`` behind ``stack``."""
    _refuse_to_repeat(stack, fn)

    def guarded(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        return (yield from run_generator(stack, fn, *args, **kwargs))

    return guarded


def plain_async_generator(
    stack: Any, fn: Callable[..., AsyncGenerator[Any, Any]]
) -> Callable[..., AsyncGenerator[Any, Any]]:
    """An async generator function that runs ``fn(...)`` behind ``stack``, from its first item to its end."""
    _refuse_to_repeat(stack, fn)

    async def guarded(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        passage = Passage(stack)
        try:
            try:
                await passage.aenter()
                inner = fn(*args, **kwargs)
                item = await anext(inner)
                while True:  # what `yield from` does, which async generators lack
                    try:
                        sent = yield item
                    except GeneratorExit:
                        await inner.aclose()
                        raise
                    except BaseException as thrown:
                        item = await inner.athrow(thrown)
                    else:
                        item = await inner.asend(sent)
            finally:
                if (free := passage.held) is not None:
                    passage.held = None
                    free += (True,)
        except (StopAsyncIteration, GeneratorExit) as end:  # exhausted, or its consumer wants no more
            passage.ended()
            if isinstance(end, GeneratorExit):
                raise
        except BaseException as error:
            passage.failed(error, fn)
            raise

    return guarded


def _refuse_to_repeat(stack: Any, fn: object) -> None:
    if stack.breaker is None and stack.bulkhead is None and stack.retry is not None:
        raise TypeError(
            f"cannot repeat the generator {fn!r}: it would begin anew, and yield again what it has yielded. Repeat the "
            "calls inside it"
        )


PLAIN: dict[Kind, Callable[[Any, Any], Callable[..., Any]]] = {
    FUNCTION: plain_function,
    COROUTINE: plain_coroutine,
    GENERATOR: plain_generator,
    ASYNC_GENERATOR: plain_async_generator,
}
