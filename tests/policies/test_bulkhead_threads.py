"""Threads and event loops together on one bulkhead: the limit is never passed, no slot is lost, nobody is left waiting."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
import time
from collections.abc import Callable

import pytest

from seawall import Bulkhead, BulkheadFullError
from seawall.drivers import aio
from seawall.policies.slots import BulkheadSettings
from tests.aio import run_async
from tests.lines import assert_at_rest, until

CALLS, TASKS = 1200, 500  # of each thread, of each loop
pytestmark = pytest.mark.usefixtures("fast_switching")


class Room:
    """What the bulkhead guards: it knows itself how many are inside."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.inside = self.most = self.calls = 0

    def __enter__(self) -> None:
        with self._lock:
            self.inside += 1
            self.calls += 1
            self.most = max(self.most, self.inside)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.inside -= 1


def in_threads(*works: Callable[[], object]) -> None:
    """Run all at once; the first error of any is raised."""
    errors: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        try:
            start.wait(30)
            work()
        except BaseException as error:
            errors.append(error)

    start = threading.Barrier(len(works))
    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert not any(thread.is_alive() for thread in threads), "somebody is left waiting"
    for error in errors:
        raise error


class Storm:
    """Sync callers in threads, and tasks in loops of which many are cancelled, all at one bulkhead."""

    def __init__(self, limit: Bulkhead) -> None:
        self.limit, self.room = limit, Room()
        self.refused = self.cancelled = 0
        self._lock = threading.Lock()

        @limit
        def call() -> None:
            with self.room:
                time.sleep(0)

        @limit
        async def acall(turns: int) -> None:
            with self.room:
                for _ in range(turns):
                    await asyncio.sleep(0)

        self.call, self.acall = call, acall

    def thread(self, seed: int, calls: int = CALLS) -> None:
        random_ = random.Random(seed)
        for _ in range(calls):
            try:
                if random_.random() < 0.3:
                    self.limit.acquire(random_.choice([None, 0.0, 0.001]))
                    with self.room:
                        pass
                    self.limit.release()
                else:
                    self.call()
            except BulkheadFullError:
                with self._lock:
                    self.refused += 1

    def loop(self, seed: int, tasks: int = TASKS) -> None:
        random_ = random.Random(seed)

        async def main() -> None:
            running: set[asyncio.Task[None]] = set()
            for _ in range(tasks):
                running.add(asyncio.create_task(self.acall(random_.randrange(4))))
                if random_.random() < 0.5:
                    await asyncio.sleep(0)
                if random_.random() < 0.3:
                    random_.choice(sorted(running, key=id)).cancel()
            for done in await asyncio.gather(*running, return_exceptions=True):
                with self._lock:
                    self.refused += isinstance(done, BulkheadFullError)
                    self.cancelled += isinstance(done, asyncio.CancelledError)
                assert done is None or isinstance(done, (BulkheadFullError, asyncio.CancelledError)), repr(done)

        run_async(main(), 90)


@pytest.mark.fault("F22", "F25")
@pytest.mark.parametrize(("number", "queue", "wait"), [(1, None, None), (3, None, 0.02), (1, 3, 0.005), (3, 0, None)])
def test_a_storm_of_callers_and_cancellations(number: int, queue: int | None, wait: float | None) -> None:
    limit = Bulkhead(number, max_queue=queue, max_wait=wait)
    storm = Storm(limit)
    in_threads(
        *(lambda seed=seed: storm.thread(seed) for seed in range(4)),
        *(lambda seed=seed: storm.loop(seed) for seed in range(2)),
    )
    assert storm.room.most == limit.peak_active == number
    assert limit.admitted_waiters == 0 if queue == 0 else limit.admitted_waiters > 0
    assert storm.room.calls == limit.started == limit.completed
    assert storm.refused == limit.rejected
    assert storm.cancelled > 0
    made = 4 * CALLS + 2 * TASKS - storm.refused
    assert made - storm.cancelled <= storm.room.calls <= made
    assert_at_rest(limit)


def test_a_storm_while_the_limit_changes() -> None:
    limit = Bulkhead(4, max_queue=None, max_wait=None)
    storm = Storm(limit)
    ended = threading.Event()

    def change() -> None:
        random_ = random.Random(7)
        while not ended.is_set():
            limit.configure(BulkheadSettings(random_.randint(1, 5), None, None))
            assert limit.in_flight >= 0
            assert limit.peak_active <= 5

    def callers() -> None:
        try:
            in_threads(lambda: storm.thread(1), lambda: storm.thread(2), lambda: storm.loop(3))
        finally:
            ended.set()

    in_threads(change, callers)
    assert storm.room.most <= 5
    limit.configure(BulkheadSettings(2, None, None))
    assert_at_rest(limit)


def test_a_reader_never_sees_more_than_the_limit_and_never_a_counter_step_back() -> None:
    limit = Bulkhead(2, max_queue=None, max_wait=None)
    storm = Storm(limit)
    ended = threading.Event()

    def read() -> None:
        last = (0, 0, 0, 0)
        while not ended.is_set():
            seen = limit.snapshot()
            assert 0 <= seen.in_flight <= 2
            counters = (seen.started, seen.completed, seen.admitted_waiters, seen.peak_active)
            assert all(map(int.__le__, last, counters)), (last, counters)
            assert seen.completed <= storm.room.calls
            last = counters

    def callers() -> None:
        try:
            in_threads(lambda: storm.thread(1), lambda: storm.thread(2), lambda: storm.loop(3))
        finally:
            ended.set()

    in_threads(read, callers)
    assert_at_rest(limit)


def test_a_place_given_back_by_a_thread_wakes_a_loop_that_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aio, "FIRST_LOOK", 3600.0)
    limit = Bulkhead(1, max_queue=1, max_wait=None)
    limit.acquire()

    async def main() -> None:
        asyncio.get_running_loop().set_debug(True)  # says so when a thread reaches into a loop that is not its own
        await limit.aacquire()

    def give_back() -> None:
        until(lambda: limit.waiting)
        limit.release()

    thread = threading.Thread(target=give_back)
    thread.start()
    run_async(main(), 20)
    thread.join(30)
    limit.release()
    assert_at_rest(limit)


# -- loops that are gone
def parked(limit: Bulkhead, number: int) -> list[asyncio.Task[None]]:
    """So many tasks that stand in line, in a loop that is closed."""
    loop = asyncio.new_event_loop()
    tasks = [loop.create_task(limit.aacquire()) for _ in range(number)]
    before = limit.waiting
    while limit.waiting < before + number:
        loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    for task in tasks:
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # it is the point that they are
    return tasks


@pytest.mark.fault("F23")
def test_a_grant_to_a_closed_loop_passes_on_to_a_living_one() -> None:
    limit = Bulkhead(1, max_queue=None, max_wait=30.0)
    limit.acquire()
    dead = parked(limit, 3)
    got: list[str] = []

    def sync() -> None:
        limit.acquire()
        got.append("thread")
        limit.release()

    thread = threading.Thread(target=sync)
    thread.start()
    until(lambda: limit.waiting == 4)
    dead += parked(limit, 2)

    async def main() -> None:
        await limit.aacquire()
        got.append("task")
        limit.release()

    async def all_of_it() -> None:
        task = asyncio.create_task(main())
        await asyncio.sleep(0)
        assert limit.waiting == 7
        limit.release()
        await task

    run_async(all_of_it())
    thread.join(30)
    assert got == ["thread", "task"]
    assert len(dead) == 5
    assert_at_rest(limit)


def test_a_whole_line_of_a_closed_loop_passes_on_however_long_it_is() -> None:
    """One after another, and not one inside the other: five thousand would be too deep."""
    limit = Bulkhead(1, max_queue=None, max_wait=None)
    limit.acquire()
    dead = parked(limit, 5000)
    limit.release()
    assert len(dead) == 5000
    assert_at_rest(limit)


def test_a_loop_closed_between_grant_and_waking_gives_its_place_back_when_it_is_collected() -> None:
    limit = Bulkhead(1, max_queue=None)
    limit.acquire()
    loop = asyncio.new_event_loop()
    task = loop.create_task(limit.aacquire())
    loop.run_until_complete(asyncio.sleep(0))
    limit.release()  # granted, and the wake-up lies in a loop that will never run again
    loop.close()
    assert limit.in_flight == 1
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    del task, loop
    gc.collect()
    assert_at_rest(limit)
