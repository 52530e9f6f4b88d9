"""One loop timer serves all limits of one duration: each ends in order and on time, and nothing is left behind."""

from __future__ import annotations

import asyncio
import gc
import random
import weakref
from contextvars import ContextVar
from typing import Any

import pytest

from seawall import Timeout, TimeoutExceededError
from seawall.drivers import timers
from seawall.drivers.timers import SPARE, Fifo
from tests.drivers.virtual import run_virtual, the_loop

TICK = 1e-9  # s; as finely as asyncio's own loop compares times

def fifo_of(limit: Timeout) -> Fifo:
    """Where calls of this limit stand on the running loop."""
    return timers.fifo_of(asyncio.get_running_loop(), limit)


def fifos() -> int:
    """Durations known on the running loop."""
    gc.collect()
    table = timers._tables.get(asyncio.get_running_loop())
    return 0 if table is None else len(table.fifos)


async def nap(seconds: float) -> None:
    await asyncio.sleep(seconds)


# -- in order and on time
async def overdue(limit: Timeout, work: float, log: list[tuple[float, float]]) -> None:
    """Work under the limit; note when it should have ended, and when it did."""
    due = the_loop().time() + min(limit.seconds, work)
    try:
        await limit.acall(asyncio.sleep, work)
        assert work <= limit.seconds
    except TimeoutExceededError:
        assert work > limit.seconds
    log.append((due, the_loop().time()))


def test_hundreds_of_tasks_with_mixed_durations_end_in_order_and_on_time() -> None:
    chance = random.Random(1)
    limits = [Timeout(seconds) for seconds in (0.05, 0.3, 1.0, 1.0, 7.0)]
    log: list[tuple[float, float]] = []

    async def caller() -> None:
        await asyncio.sleep(chance.uniform(0.0, 5.0))
        for _ in range(chance.randint(1, 4)):
            limit = chance.choice(limits)
            await overdue(limit, chance.uniform(0.0, 2.0) * limit.seconds, log)

    async def main() -> int:
        await asyncio.gather(*(caller() for _ in range(400)))
        await asyncio.sleep(10.0)
        return fifos()

    assert run_virtual(main()) == 0
    assert len(log) > 800
    assert [ended for _, ended in log] == sorted(ended for _, ended in log)
    assert [(due, ended) for due, ended in log if not due <= ended + 1e-12 <= due + TICK] == []


def test_equal_durations_end_in_the_order_in_which_they_began() -> None:
    limit, ended = Timeout(1.0), list[int]()

    async def call(number: int) -> None:
        with pytest.raises(TimeoutExceededError):
            await limit.acall(asyncio.sleep, 9.0)
        ended.append(number)

    async def main() -> int:
        await asyncio.gather(*(call(number) for number in range(300)))
        return the_loop().timers - 300  # less those of the sleeps

    timers_set = run_virtual(main())
    assert ended == list(range(300))
    assert timers_set == 1


def test_a_limit_behind_an_ended_one_is_on_time() -> None:
    """The timer fires for a head that has gone, and is set again for the one behind it."""
    limit, log = Timeout(1.0), list[tuple[float, float]]()

    async def main() -> tuple[int, int]:
        fifo = fifo_of(limit)
        async with asyncio.TaskGroup() as group:
            group.create_task(overdue(limit, 0.9, log))
            await asyncio.sleep(0.25)
            group.create_task(overdue(limit, 5.0, log))
            await asyncio.sleep(0.25)
            group.create_task(overdue(limit, 0.1, log))
        return len(fifo.entries), fifo.dead

    assert run_virtual(main()) == (0, 0)
    assert [round(ended, 6) for _, ended in log] == [1000.6, 1000.9, 1001.25]


def test_no_limit_ends_early_where_the_loop_rounds_its_times() -> None:
    """A timer that fires a little before its time is set again."""

    async def main() -> float:
        the_loop().share = 0.75
        began, forever = the_loop().time(), the_loop().create_future()
        with pytest.raises(TimeoutExceededError):
            async with Timeout(1.0):
                await forever
        return the_loop().time() - began

    assert 1.0 <= run_virtual(main()) <= 1.0 + TICK


def test_a_task_whose_cancellation_fails_does_not_keep_the_others_from_ending() -> None:
    class Stubborn(asyncio.Future[None]):
        def cancel(self, msg: Any = None) -> bool:
            raise ZeroDivisionError

    limit, log = Timeout(1.0), list[tuple[float, float]]()

    async def main() -> list[str]:
        stubborn = Stubborn()

        async def call() -> None:
            async with limit:
                await stubborn

        first = asyncio.create_task(call())
        await asyncio.sleep(0)
        await asyncio.gather(overdue(limit, 5.0, log), overdue(limit, 5.0, log))
        stubborn.set_result(None)
        await first
        faults = [type(fault["exception"]).__name__ for fault in the_loop().faults]
        the_loop().faults.clear()
        return faults

    assert run_virtual(main()) == ["ZeroDivisionError"]
    assert [(due, ended) for due, ended in log if not due <= ended + 1e-12 <= due + TICK] == []
    assert len(log) == 2


# -- nothing is left behind
def test_ten_thousand_calls_one_after_another_take_one_timer_and_leave_nothing() -> None:
    limit = Timeout(3.0)

    @limit
    async def call() -> None:
        await asyncio.sleep(0)

    async def main() -> tuple[int, int, int, int]:
        fifo = fifo_of(limit)
        for _ in range(10_000):
            await call()
        after = len(fifo.entries), the_loop().timers, the_loop().pending
        del fifo
        await asyncio.sleep(3.1)
        return *after, fifos()

    assert run_virtual(main()) == (0, 1, 1, 0)


@pytest.mark.parametrize("decorated", [True, False])
def test_ten_thousand_calls_at_once_leave_nothing_whatever_the_order_of_their_ends(decorated: bool) -> None:
    limit, most = Timeout(100.0), list[int]()
    sleep = limit(nap)

    async def call(work: float) -> None:
        await (sleep(work) if decorated else limit.acall(nap, work))
        fifo = fifo_of(limit)
        alive = sum(entry.armed for entry in fifo.entries)
        assert not fifo.entries or fifo.entries[-1].armed
        assert fifo.dead == len(fifo.entries) - alive
        most.append(len(fifo.entries) - max(2 * alive, alive + SPARE))

    async def main() -> tuple[int, int]:
        chance = random.Random(2)
        await asyncio.gather(*(call(chance.uniform(1.0, 50.0)) for _ in range(2_000)))
        longest = asyncio.create_task(call(50.0))  # at the head all the time
        await asyncio.sleep(0.0)
        await asyncio.gather(*(call(1.0 + number * 1e-3) for number in range(8_000)))
        await longest
        return len(fifo_of(limit).entries), fifo_of(limit).dead

    assert run_virtual(main()) == (0, 0)
    assert len(most) == 10_001
    assert max(most) <= 0


@pytest.mark.parametrize("count", [5_000])
def test_durations_that_are_all_different_do_not_pile_up(count: int) -> None:
    """As those of remaining budgets are: each is used once, and would have its timer for half a minute."""

    async def main() -> tuple[int, int]:
        known = pending = 0
        for number in range(count):
            async with Timeout(30.0 + number * 1e-3):
                await asyncio.sleep(0)
            known = max(known, len(timers._tables[the_loop()].fifos))
            pending = max(pending, the_loop().pending)
        return known, pending

    known, pending = run_virtual(main())
    assert known <= SPARE + 1
    assert pending <= SPARE + 1


def test_different_durations_in_use_are_kept_and_end_on_time() -> None:
    log: list[tuple[float, float]] = []

    async def main() -> int:
        await asyncio.gather(*(overdue(Timeout(1.0 + number * 1e-3), 99.0, log) for number in range(1_000)))
        return fifos()

    assert run_virtual(main()) == 0
    assert [(due, ended) for due, ended in log if not due <= ended + 1e-12 <= due + TICK] == []


def test_limits_made_afresh_for_each_call_share_their_timer() -> None:
    async def main() -> tuple[int, int]:
        for _ in range(1_000):
            async with Timeout(2.0):
                await asyncio.sleep(0)
        return the_loop().timers, fifos()

    assert run_virtual(main()) == (1, 1)


def test_a_timer_does_not_keep_what_its_first_caller_had_in_his_context() -> None:
    class Big:
        pass

    variable: ContextVar[Big] = ContextVar("variable")
    limit = Timeout(60.0)

    async def call() -> weakref.ref[Big]:
        variable.set(Big())
        async with limit:
            await asyncio.sleep(0)
        return weakref.ref(variable.get())

    async def main() -> tuple[int, Big | None]:
        big = await asyncio.create_task(call())
        await asyncio.sleep(1.0)  # the loop has forgotten the task as well
        gc.collect()
        return the_loop().pending, big()

    assert run_virtual(main()) == (1, None)


def test_a_call_that_has_ended_is_not_kept_by_those_around_it() -> None:
    limit = Timeout(60.0)

    async def call(work: float) -> None:
        async with limit:
            await asyncio.sleep(work)

    async def main() -> tuple[int, object]:
        outer = asyncio.create_task(call(30.0))
        await asyncio.sleep(0)
        middle = asyncio.create_task(call(1.0))
        await asyncio.sleep(0)
        last = asyncio.create_task(call(30.0))
        await middle
        ended = weakref.ref(middle)
        del middle
        gc.collect()
        await asyncio.sleep(1.0)
        standing = len(fifo_of(limit).entries), ended()
        await asyncio.gather(outer, last)
        return standing

    assert run_virtual(main()) == (3, None)


