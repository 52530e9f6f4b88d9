"""A wait longer than the system can sleep is a long wait, and no error in the place of the call's own."""

from __future__ import annotations

import asyncio
import signal
from types import FrameType
from typing import Any

import pytest

from seawall import Retry
from seawall.drivers.threads import LONGEST_SLEEP, perform
from seawall.plan import retrying
from tests.aio import run_async


def endless(**more: Any) -> Retry:
    return Retry(2, base_delay=1e300, max_delay=1e300, jitter=None, **more)


def fail(*_: object) -> None:
    raise ConnectionError


class Woken(BaseException):
    """By a signal, out of the wait."""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="a timer that signals")
def test_a_thread_waits_until_something_wakes_it() -> None:
    def wake(number: int, frame: FrameType | None) -> None:
        raise Woken

    before = signal.signal(signal.SIGALRM, wake)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(Woken):
            endless().call(fail)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_long_wait_is_slept_in_pieces_that_add_up() -> None:
    waits: list[float] = []
    retry = Retry(2, base_delay=2.5 * LONGEST_SLEEP, max_delay=1e300, jitter=None)
    with pytest.raises(ConnectionError):
        perform(retrying(retry), fail, waits.append)
    assert waits == [LONGEST_SLEEP, LONGEST_SLEEP, LONGEST_SLEEP / 2]


def test_a_task_waits_until_it_is_cancelled() -> None:
    scheduled: list[Any] = []
    retry = endless()
    retry.listen(scheduled.append)

    @retry
    async def afail() -> None:
        fail()

    async def main() -> None:
        task = asyncio.create_task(afail())
        while not scheduled:
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_async(main())
