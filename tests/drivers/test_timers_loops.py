"""Limits follow their loops: asyncio's and uvloop's, closed, thrown away, in several threads at once."""

from __future__ import annotations

import asyncio
import gc
import random
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from seawall import Timeout, TimeoutExceededError
from seawall.drivers import timers
from seawall.drivers.timers import Fifo, arm
from tests.aio import run_async
from tests.drivers.virtual import VirtualLoop, run_virtual, the_loop

LOOPS = ["asyncio", "uvloop"]


def factory(kind: str) -> Callable[[], asyncio.AbstractEventLoop]:
    if kind == "asyncio":
        return asyncio.new_event_loop
    make: Callable[[], asyncio.AbstractEventLoop] = pytest.importorskip("uvloop").new_event_loop
    return make


def fifo_of(limit: Timeout) -> Fifo:
    """Where calls of this limit stand on the running loop."""
    return timers.fifo_of(asyncio.get_running_loop(), limit)


@pytest.mark.parametrize("kind", LOOPS)
def test_on_a_real_loop_no_limit_ends_early(kind: str) -> None:
    """Though uvloop counts whole milliseconds, and some of these are less than one apart."""
    limit, chance = Timeout(0.0204), random.Random(3)

    async def call() -> float:
        end = time.monotonic() + chance.uniform(0.0, 0.0006)
        while time.monotonic() < end:
            pass
        began = time.monotonic()
        with pytest.raises(TimeoutExceededError):
            async with limit:
                await asyncio.get_running_loop().create_future()
        return time.monotonic() - began

    async def main() -> list[float]:
        async with asyncio.timeout(30):
            return [took for _ in range(10) for took in await asyncio.gather(*(call() for _ in range(20)))]

    with asyncio.Runner(loop_factory=factory(kind)) as runner:
        took = runner.run(main())
    assert len(took) == 200
    assert min(took) >= limit.seconds


def test_on_uvloop_one_timer_is_enough_for_one_limit() -> None:
    """One that came early would have to be set again."""
    uvloop: Any = pytest.importorskip("uvloop")
    delays: list[float] = []

    class Counting(uvloop.Loop):  # type: ignore[misc]  # it is Any
        def call_later(self, delay: float, *args: Any, **more: Any) -> asyncio.TimerHandle:
            delays.append(delay)
            handle: asyncio.TimerHandle = super().call_later(delay, *args, **more)
            return handle

    async def main() -> None:
        for step in range(20):
            with pytest.raises(TimeoutExceededError):
                async with Timeout(0.0022 + 0.0003 * step):
                    await asyncio.get_running_loop().create_future()

    with asyncio.Runner(loop_factory=Counting) as runner:
        runner.run(main())
    assert len(delays) == 20


@pytest.mark.parametrize("kind", LOOPS)
def test_a_real_loop_ends_what_is_overdue_and_nothing_else(kind: str) -> None:
    async def main() -> list[object]:
        async with asyncio.timeout(30):
            quick, slow = Timeout(0.03, name="quick"), Timeout(20.0)
            return await asyncio.gather(
                *(quick.acall(asyncio.sleep, 20.0) for _ in range(50)),
                *(slow.acall(asyncio.sleep, 0.05, number) for number in range(50)),
                return_exceptions=True,
            )

    with asyncio.Runner(loop_factory=factory(kind)) as runner:
        ends = runner.run(main())
    assert [str(end) for end in ends[:50]] == ["quick: no answer within 0.03 s"] * 50
    assert ends[50:] == list(range(50))


# -- loops come and go
@pytest.mark.parametrize("kind", LOOPS)
def test_a_closed_loop_leaves_nothing_behind_while_the_limit_lives_on(kind: str) -> None:
    limit = Timeout(60.0)

    @limit
    async def call() -> None:
        await asyncio.sleep(0)

    def run() -> weakref.ref[asyncio.AbstractEventLoop]:
        with asyncio.Runner(loop_factory=factory(kind)) as runner:
            runner.run(call())
            return weakref.ref(runner.get_loop())

    gc.collect()
    before = len(timers._tables)
    loops = [run() for _ in range(3)]
    gc.collect()
    assert [loop() for loop in loops] == [None] * 3
    assert limit._fifo() is None
    assert len(timers._tables) == before


def test_a_loop_that_is_thrown_away_with_calls_under_way_leaves_nothing_behind() -> None:
    """The calls are closed by the collector, outside their task and any loop; that is no fault of theirs."""
    limit, ended = Timeout(60.0), list[str]()

    @limit
    async def call() -> None:
        try:
            async with limit:
                await asyncio.get_running_loop().create_future()
        finally:
            ended.append("closed")

    def run() -> weakref.ref[asyncio.AbstractEventLoop]:
        loop = VirtualLoop()
        tasks = [loop.create_task(call()) for _ in range(3)]
        loop.run_until_complete(asyncio.sleep(1.0))
        for task in tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # that nobody awaited them is the point
        loop.close()
        return weakref.ref(loop)

    loop = run()
    gc.collect()
    assert ended == ["closed"] * 3
    assert loop() is None
    assert limit._fifo() is None


def test_one_loop_run_twice_keeps_its_limits() -> None:
    limit, loop = Timeout(1.0), VirtualLoop()

    async def call() -> None:
        async with limit:
            await asyncio.sleep(5.0)

    task = loop.create_task(call())
    loop.run_until_complete(asyncio.sleep(0.5))
    loop.now += 100.0
    with pytest.raises(TimeoutExceededError):
        loop.run_until_complete(task)
    loop.close()


@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.usefixtures("fast_switching")
def test_two_loops_in_two_threads_share_a_limit_and_nothing_else(kind: str) -> None:
    """Both look for the FIFO of the same limit at the same moment, and each finds its own."""
    limit, make = Timeout(0.05), factory(kind)
    both, ends = threading.Barrier(2, timeout=30), list[list[Any]]()

    @limit
    async def call(work: float) -> float:
        await asyncio.sleep(work)
        assert fifo_of(limit).loop is asyncio.get_running_loop()
        return work

    async def main() -> list[Any]:
        both.wait()
        for _ in range(200):
            await call(0.0)
        return await asyncio.gather(*(call(work) for work in (0.0, 20.0, 0.0, 20.0)), return_exceptions=True)

    def thread() -> None:
        with asyncio.Runner(loop_factory=make) as runner:
            ends.append(runner.run(main()))

    threads = [threading.Thread(target=thread) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    assert [[type(end) for end in one] for one in ends] == [[float, TimeoutExceededError] * 2] * 2


def test_a_limit_follows_from_loop_to_loop() -> None:
    """The FIFO it was last used with is alive, and another loop's, which does not run."""
    limit, loops = Timeout(1.0), [VirtualLoop(), VirtualLoop()]

    @limit
    async def call(work: float) -> str:
        await asyncio.sleep(work)
        return "done"

    for make in (call, lambda work: limit.acall(asyncio.sleep, work, "done")):
        assert [loop.run_until_complete(make(0.5)) for loop in loops * 2] == ["done"] * 4
        for loop in loops * 2:
            with pytest.raises(TimeoutExceededError):
                loop.run_until_complete(make(5.0))
            assert loop.run_until_complete(make(0.5)) == "done"
    for loop in loops:
        loop.close()


# -- which task
def test_a_limit_needs_a_task() -> None:
    limit = Timeout(1.0)

    @limit
    async def call() -> None:
        await asyncio.sleep(0)

    for make in (call, lambda: limit.acall(call), limit.__aenter__):
        coroutine: Any = make()
        with pytest.raises(RuntimeError, match="no running event loop"):
            coroutine.send(None)

    async def main() -> None:
        def step() -> None:
            for make in (call, lambda: limit.acall(call), limit.__aenter__):
                coroutine: Any = make()
                with pytest.raises(RuntimeError, match="does not run in a task"):
                    coroutine.send(None)
            done.set_result(None)

        done = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(step)
        await done
        assert len(fifo_of(limit).entries) == 0

    run_virtual(main())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks are new in 3.12")
def test_an_eager_task_is_the_one_that_is_cancelled() -> None:
    async def main() -> None:
        the_loop().set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined]  # 3.12
        task = asyncio.create_task(Timeout(1.0).acall(asyncio.sleep, 5.0))
        with pytest.raises(TimeoutExceededError):
            await task

    run_virtual(main())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks are new in 3.12")
def test_a_limit_that_is_set_while_others_end_sets_no_second_timer() -> None:
    """Only an eager task, begun by somebody's own ``cancel()``, can come between."""
    limit = Timeout(1.0)

    class Restless(asyncio.Future[None]):
        def cancel(self, msg: Any = None) -> bool:
            if not others:
                others.append(asyncio.create_task(limit.acall(asyncio.sleep, 0.5)))
            return super().cancel(msg)

    others: list[asyncio.Task[None]] = []

    async def main() -> int:
        the_loop().set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined]  # 3.12
        with pytest.raises(TimeoutExceededError):
            async with limit:
                await Restless()
        before = the_loop().pending
        await others[0]
        return before

    assert run_virtual(main()) == 2  # the limit's, and that of sleep


def test_the_entry_is_ended_at_once_by_hand() -> None:
    """The driver by itself: armed and ended without a call in between."""

    async def main() -> tuple[bool, int]:
        limit = Timeout(1.0)
        entry = arm(limit)
        return entry.end(), len(fifo_of(limit).entries)

    assert run_async(main()) == (False, 0)
