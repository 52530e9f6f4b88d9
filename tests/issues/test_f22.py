"""F22: a waiter that is cancelled, and a running call that is cancelled, give back what they had, every time."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall import Bulkhead
from tests.aio import run_async
from tests.lines import assert_at_rest

pytestmark = pytest.mark.fault("F22")


async def cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("form", ["decorated", "async with", "aacquire"])
def test_a_cancelled_waiter_and_a_cancelled_call_leave_no_trace(form: str) -> None:
    limit = Bulkhead(1, max_queue=5)

    @limit
    async def decorated() -> None:
        await asyncio.sleep(60)

    async def block() -> None:
        async with limit:
            await asyncio.sleep(60)

    async def by_hand() -> None:
        await limit.aacquire()
        try:
            await asyncio.sleep(60)
        finally:
            limit.release()

    job = {"decorated": decorated, "async with": block, "aacquire": by_hand}[form]

    async def main() -> None:
        for _ in range(3):
            running, waiting = asyncio.create_task(job()), asyncio.create_task(job())
            while not limit.waiting:
                await asyncio.sleep(0)
            await cancelled(waiting)
            assert (limit.in_flight, limit.waiting) == (1, 0)
            await cancelled(running)
            assert_at_rest(limit)

    run_async(main())


STEPS = st.lists(st.tuples(st.sampled_from(["start", "cancel", "finish", "turn"]), st.integers(0, 9)), max_size=40)


@given(number=st.integers(1, 3), room=st.none() | st.integers(0, 4), steps=STEPS)
def test_after_any_mix_of_starts_ends_and_cancellations_all_slots_are_free(
    number: int, room: int | None, steps: list[tuple[str, int]]
) -> None:
    limit = Bulkhead(number, max_queue=room)
    inside = most = 0

    @limit
    async def job(finish: asyncio.Event) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        try:
            await finish.wait()
        finally:
            inside -= 1

    async def main() -> None:
        tasks: list[asyncio.Task[None]] = []
        ends: list[asyncio.Event] = []
        for what, which in steps:
            if what == "start":
                ends.append(asyncio.Event())
                tasks.append(asyncio.create_task(job(ends[-1])))
            elif what == "turn":
                await asyncio.sleep(0)
            elif tasks:
                if what == "cancel":
                    tasks[which % len(tasks)].cancel()
                else:
                    ends[which % len(ends)].set()
        for end in ends:
            end.set()
        await asyncio.gather(*tasks, return_exceptions=True)

    run_async(main())
    assert most <= number
    assert_at_rest(limit)
