"""F25: a sync caller and two event loops on one bulkhead share one limit; it is not one limit each."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

import pytest

from seawall import Bulkhead, BulkheadFullError
from tests.aio import run_async
from tests.lines import assert_at_rest, until

pytestmark = pytest.mark.fault("F25")


def holds(limit: Bulkhead, inside: int, waiting: int) -> bool:
    return (limit.in_flight, limit.waiting) == (inside, waiting)


def test_what_two_loops_and_a_thread_hold_counts_together() -> None:
    limit = Bulkhead(5, max_queue=3)
    leave = threading.Event()

    @limit
    def call() -> None:
        leave.wait(60)

    @limit
    async def acall() -> None:
        await asyncio.to_thread(leave.wait, 60)

    async def two_at_once() -> None:
        await asyncio.gather(acall(), acall())

    works = [threading.Thread(target=call)]
    works += [threading.Thread(target=lambda: run_async(two_at_once(), 90)) for _ in range(2)]
    works += [threading.Thread(target=call), threading.Thread(target=lambda: run_async(two_at_once(), 90))]
    try:
        for work, inside, waiting in zip(works, (1, 3, 5, 5, 5), (0, 0, 0, 1, 3), strict=True):
            work.start()
            until(partial(holds, limit, inside, waiting))
        with pytest.raises(BulkheadFullError, match=r"^the target is full: 5 calls running and 3 waiting$"):
            limit.call(int)
        with pytest.raises(BulkheadFullError):
            run_async(acall())
        assert (limit.in_flight, limit.waiting) == (5, 3)
    finally:
        leave.set()
        for work in works:
            work.join(60)
    assert (limit.started, limit.completed, limit.rejected, limit.peak_active) == (8, 8, 2, 5)
    assert_at_rest(limit)


@pytest.mark.usefixtures("fast_switching")
def test_a_place_goes_from_loop_to_thread_to_loop() -> None:
    limit = Bulkhead(1, max_queue=None, max_wait=60.0)
    turns = 200
    inside: list[str] = []

    @limit
    def call(name: str) -> None:
        inside.append(name)
        assert len(inside) == 1
        inside.clear()

    @limit
    async def acall(name: str) -> None:
        inside.append(name)
        await asyncio.sleep(0)
        assert inside == [name]
        inside.clear()

    async def many(name: str) -> None:
        for _ in range(turns):
            await acall(name)

    errors: list[BaseException] = []

    def work(name: str) -> None:
        try:
            if name == "thread":
                for _ in range(turns):
                    call(name)
            else:
                run_async(many(name), 90)
        except BaseException as error:
            errors.append(error)

    works = [threading.Thread(target=work, args=(name,)) for name in ("thread", "loop 1", "loop 2")]
    for thread in works:
        thread.start()
    for thread in works:
        thread.join(100)
    assert errors == []
    assert limit.started == 3 * turns
    assert_at_rest(limit)
