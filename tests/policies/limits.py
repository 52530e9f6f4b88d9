"""The forms in which a limit is used, and asyncio's own, which they behave like."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

import pytest

from seawall import Timeout

Call: TypeAlias = "Callable[[], Awaitable[object]]"
Form: TypeAlias = "Callable[[float, Call], Coroutine[Any, Any, object]]"


async def decorated(seconds: float, call: Call) -> object:
    @Timeout(seconds)
    async def limited() -> object:
        return await call()

    return await limited()


async def called(seconds: float, call: Call) -> object:
    return await Timeout(seconds).acall(call)


async def block(seconds: float, call: Call) -> object:
    async with Timeout(seconds):
        return await call()


async def asyncios(seconds: float, call: Call) -> object:
    async with asyncio.timeout(seconds):
        return await call()


OURS: list[Form] = [decorated, called, block]
ours = pytest.mark.parametrize("form", OURS)
alike = pytest.mark.parametrize("form", [*OURS, asyncios])


async def wait(seconds: float = 60.0, result: object = None) -> object:
    await asyncio.sleep(seconds)
    return result


async def end_of(awaitable: Awaitable[object]) -> object:
    """How it ends, in a task of its own: the result, ``"timeout"``, or the name of the error."""
    task = asyncio.ensure_future(awaitable)
    try:
        return await task
    except TimeoutError:
        return "timeout"
    except (Exception, asyncio.CancelledError) as error:
        return type(error).__name__


def requests() -> int:
    """Requests to cancel the running task that nobody has answered."""
    task = asyncio.current_task()
    assert task is not None
    return task.cancelling()
