"""F23: a place granted to a waiter that vanishes in that moment goes to the next; a line of the vanished is no line."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from seawall import Bulkhead, BulkheadFullError
from tests.aio import run_async
from tests.lines import assert_at_rest

pytestmark = pytest.mark.fault("F23")


def test_a_waiter_cancelled_between_its_grant_and_its_waking_lets_the_other_proceed() -> None:
    limit = Bulkhead(1, max_queue=2, max_wait=30.0)
    ran: list[str] = []

    @limit
    async def job(name: str) -> None:
        ran.append(name)

    async def main() -> None:
        limit.acquire()
        first, second = (asyncio.create_task(job(name)) for name in ("first", "second"))
        while limit.waiting < 2:
            await asyncio.sleep(0)
        limit.release()
        assert (limit.in_flight, limit.waiting) == (1, 1)  # granted, and the task has not run since
        first.cancel()
        await second
        with contextlib.suppress(asyncio.CancelledError):
            await first
        assert first.cancelled()

    run_async(main())
    assert ran == ["second"]
    assert_at_rest(limit)


@pytest.mark.parametrize("turns", range(6))
def test_whenever_the_granted_one_is_cancelled_the_other_proceeds(turns: int) -> None:
    limit = Bulkhead(1, max_queue=2, max_wait=30.0)

    @limit
    async def job() -> str:
        await asyncio.sleep(0)
        return "done"

    async def main() -> None:
        limit.acquire()
        first, second = asyncio.create_task(job()), asyncio.create_task(job())
        while limit.waiting < 2:
            await asyncio.sleep(0)
        limit.release()
        for _ in range(turns):
            await asyncio.sleep(0)
        first.cancel()
        assert await second == "done"
        with contextlib.suppress(asyncio.CancelledError):
            await first

    run_async(main())
    assert_at_rest(limit)


def test_ten_waiters_that_have_timed_out_are_no_line_for_a_newcomer() -> None:
    limit = Bulkhead(1, max_queue=10, max_wait=0.01)

    async def main() -> None:
        limit.acquire()
        done = await asyncio.gather(*(limit.aacquire() for _ in range(10)), return_exceptions=True)
        assert [type(error) for error in done] == [BulkheadFullError] * 10
        assert (limit.waiting, limit.alert) == (0, [])
        limit.release()
        assert limit.try_acquire()
        limit.release()

    run_async(main())
    assert (limit.admitted_waiters, limit.rejected) == (10, 10)
    assert_at_rest(limit)
