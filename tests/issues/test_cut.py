"""A call that is cut after its first attempt is told of: by what, after how many attempts, and which waits were whole."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from seawall import Retry, RetryEnded
from seawall.drivers.threads import perform
from seawall.plan import retrying
from tests.aio import run_async

KINDS = [KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit]


def told_of(retry: Retry) -> list[tuple[Any, ...]]:
    """Reason, attempts and waits of each end, as they come."""
    ends: list[tuple[Any, ...]] = []
    retry.listen(lambda event: ends.append(event[1:4]) if isinstance(event, RetryEnded) else None)
    return ends


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("where", "end"), [("attempt", ("cut", 3, 0.75)), ("wait", ("cut", 2, 0.25))])
def test_the_waits_of_a_call_that_is_cut_are_those_that_were_waited_out(
    where: str, end: tuple[Any, ...], kind: type[BaseException]
) -> None:
    retry = Retry(5, base_delay=0.25, jitter=None)
    ends, waits = told_of(retry), list[float]()

    def attempt(number: int) -> None:
        raise kind if where == "attempt" and number == 3 else ConnectionError

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if where == "wait" and len(waits) == 2:
            raise kind

    with pytest.raises(kind):
        perform(retrying(retry), attempt, sleep)
    assert (ends, retry.snapshot().stopped) == ([end], {"cut": 1})


def test_a_task_that_is_cancelled_in_its_wait_is_told_of() -> None:
    retry = Retry(3, base_delay=60.0, max_delay=60.0, jitter=None)
    ends = told_of(retry)

    @retry
    async def fail() -> None:
        raise ConnectionError

    async def main() -> None:
        task = asyncio.create_task(fail())
        while not retry.retries:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_async(main())
    assert ends == [("cut", 1, 0.0)]
