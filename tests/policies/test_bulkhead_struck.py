"""A KeyboardInterrupt, or the garbage collector, at any single point of a call loses no slot and leaves nobody in line."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
from collections.abc import Callable, Iterator

import pytest

from seawall import Bulkhead, BulkheadFullError, CircuitBreaker, Target
from seawall.drivers import threads
from seawall.policies.slots import BulkheadSettings
from tests.aio import run_async
from tests.lines import Caller, assert_at_rest
from tests.points import at_each_point, untouched

Struck = Callable[[Callable[[], object]], None]


# -- interrupts
def interrupt() -> None:
    raise KeyboardInterrupt


def interrupted_at_each_point(once: Callable[[Struck], None]) -> int:
    """Run ``once`` with an interrupt at each point; the call that it hands on may end by it or not."""

    def safely(struck: Struck) -> None:
        def strike(act: Callable[[], object]) -> None:
            with contextlib.suppress(KeyboardInterrupt):
                struck(act)

        once(strike)

    return at_each_point(safely, interrupt)


def target(limit: Bulkhead) -> Target:
    return Target("CORE", breaker=CircuitBreaker(1000), bulkhead=limit)


def assert_unlocked(limit: Bulkhead) -> None:
    """No lock is held: another thread gets it at once."""
    got: list[bool] = []
    thread = threading.Thread(target=lambda: got.append(limit._lock.acquire(timeout=10)))
    thread.start()
    thread.join(20)
    assert got == [True]


@pytest.mark.fault("F48")
@pytest.mark.parametrize("fails", [False, True])
def test_a_call_with_room_interrupted_anywhere(fails: bool) -> None:
    def user() -> None:
        if fails:
            raise OSError

    def once(struck: Struck) -> None:
        limit = Bulkhead(2)
        guarded = target(limit)(user)
        with contextlib.suppress(OSError):
            struck(guarded)
        assert_at_rest(limit)
        assert_unlocked(limit)

    assert interrupted_at_each_point(once) > 5


@pytest.mark.fault("F48")
@pytest.mark.filterwarnings("ignore:.*was never awaited:RuntimeWarning")  # interrupted between a coroutine and its await
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_coroutine_with_room_interrupted_anywhere() -> None:
    async def user() -> None:
        pass

    def once(struck: Struck) -> None:
        limit = Bulkhead(2)
        with contextlib.suppress(StopIteration):
            struck(lambda: target(limit)(user)().send(None))
        assert_at_rest(limit)

    assert interrupted_at_each_point(once) > 15


@pytest.mark.fault("F48")
def test_a_call_refused_at_the_door_interrupted_anywhere() -> None:
    def once(struck: Struck) -> None:
        limit = Bulkhead(1)
        running = Caller(limit)
        with contextlib.suppress(BulkheadFullError):
            struck(target(limit)(interrupt))
        running.leave()
        assert_at_rest(limit)

    assert interrupted_at_each_point(once) > 15


@pytest.mark.fault("F48")
def test_a_call_that_leaves_while_others_wait_interrupted_anywhere() -> None:
    """Whoever comes next hands on what the interrupted one gave back, in the order of the line."""

    def once(struck: Struck) -> None:
        limit = Bulkhead(1, max_queue=None)
        line: list[Caller] = []

        def user() -> None:
            with untouched():
                line.extend([Caller(limit), Caller(limit)])

        struck(target(limit)(user))
        newcomer = Caller(limit)
        for caller in [*line, newcomer]:
            if caller.ticket is not None:
                assert caller.ticket.granted
                caller.claim()
            caller.leave()
        assert_at_rest(limit)
        assert_unlocked(limit)

    assert interrupted_at_each_point(once) > 15


@pytest.mark.fault("F48")
def test_a_call_that_waits_in_vain_interrupted_anywhere() -> None:
    def once(struck: Struck) -> None:
        limit = Bulkhead(1, max_queue=2, max_wait=0.0001)
        running = Caller(limit)
        with contextlib.suppress(BulkheadFullError):
            struck(target(limit)(interrupt))
        assert limit.waiting == 0
        running.leave()
        assert_at_rest(limit)

    assert interrupted_at_each_point(once) > 15


@pytest.mark.fault("F48")
@pytest.mark.parametrize("others", [0, 1])
def test_a_call_that_waits_and_gets_its_place_interrupted_anywhere(
    others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The place is given back by the running call just when the waiter blocks; a second one may stand behind it."""

    def once(struck: Struck) -> None:
        limit = Bulkhead(1, max_queue=2)
        running = Caller(limit)
        behind: list[Caller] = []

        class Latch:
            def acquire(self, timeout: float | None = None) -> bool:
                if timeout is not None:
                    with untouched():
                        behind.extend(Caller(limit) for _ in range(others))
                        running.leave()
                return True

            def release(self) -> None:
                pass

        monkeypatch.setattr(threads, "Lock", Latch)
        struck(target(limit)(lambda: None))
        if running.held is not None:  # interrupted before it blocked
            running.leave()
        limit.pump()
        for caller in behind:
            caller.claim()
            caller.leave()
        assert_at_rest(limit)

    assert interrupted_at_each_point(once) > 15


@pytest.mark.fault("F48")
@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_a_change_of_the_limit_interrupted_anywhere_is_made_or_not_made(number: int) -> None:
    def once(struck: Struck) -> None:
        limit = Bulkhead(3, max_queue=None)
        running = [Caller(limit), Caller(limit)]
        struck(lambda: limit.configure(BulkheadSettings(number, None, 1.0)))
        assert limit.in_flight == 2
        running.append(Caller(limit))
        assert (limit.in_flight, limit.waiting) == ((2, 1) if limit.max_concurrent < 3 else (3, 0))
        for caller in running:
            if caller.ticket is not None:
                assert caller.ticket.granted
                caller.claim()
            caller.leave()
        assert_at_rest(limit)

    assert interrupted_at_each_point(once) > 15


@pytest.mark.fault("F48")
@pytest.mark.parametrize("waits", [False, True])
def test_a_release_interrupted_anywhere_has_given_the_place_back_or_can_be_repeated(waits: bool) -> None:
    def once(struck: Struck) -> None:
        limit = Bulkhead(1, max_queue=1)
        limit.acquire()
        line = [Caller(limit)] if waits else []
        struck(limit.release)
        with contextlib.suppress(ValueError):
            limit.release()
        limit.pump()
        for caller in line:
            caller.claim()
            caller.leave()
        assert_at_rest(limit)

    assert interrupted_at_each_point(once) > 1


# -- another caller, who gives back in between
def test_a_slot_given_back_at_any_point_of_a_joining_reaches_the_joiner() -> None:
    """The giver looks at the line after its push, the joiner at the slots after its joining: one sees the other."""

    def once(struck: Struck) -> None:
        limit = Bulkhead(1, max_queue=1)
        running.append(Caller(limit))
        joined: list[Caller] = []
        struck(lambda: joined.append(Caller(limit)))
        if running[-1].held is not None:
            running.pop().leave()
        [joiner] = joined
        if joiner.ticket is not None:
            assert joiner.ticket.granted
            joiner.claim()
        joiner.leave()
        assert_at_rest(limit)

    running: list[Caller] = []
    assert at_each_point(once, lambda: running[-1].leave()) > 10


@pytest.mark.parametrize("tries", [False, True])
def test_a_slot_given_back_while_a_newcomer_asks_goes_to_who_was_there_before(tries: bool) -> None:
    def once(struck: Struck) -> None:
        limit = Bulkhead(1, max_queue=2)
        running.append(Caller(limit))
        first = Caller(limit)
        joined: list[Caller] = []
        got: list[bool] = []
        struck(lambda: got.append(limit.try_acquire()) if tries else joined.append(Caller(limit)))
        assert got == [False] * tries
        if running[-1].held is not None:
            silently()
        limit.pump()
        for caller in (first, *joined):
            assert caller.ticket is not None
            assert caller.ticket.granted
            caller.claim()
            caller.leave()
        assert_at_rest(limit)

    def silently() -> None:
        held, running[-1].held = running[-1].held, None
        assert held is not None
        held.append(True)

    running: list[Caller] = []
    assert at_each_point(once, silently) > 5


# -- the collector
@pytest.fixture
def only_by_hand() -> Iterator[None]:
    """Garbage is collected when the test says so, and at no other time."""
    gc.collect()
    gc.disable()
    gc.freeze()  # what is there already need not be looked at each time
    yield
    gc.unfreeze()
    gc.enable()


def abandon(limit: Bulkhead) -> None:
    """A coroutine that waits in line. Dropped, it is garbage in a cycle: it waits on, until the collector comes."""
    parked = limit.aacquire()
    parked.send(None)
    cycle: list[object] = [parked]
    cycle.append(cycle)


def leave(limit: Bulkhead, running: Caller, waiter: Caller) -> None:
    if running.held is not None:
        running.leave()
    else:
        limit.pump()


def withdraw(limit: Bulkhead, running: Caller, waiter: Caller) -> None:
    waiter.withdraw()


def claim(limit: Bulkhead, running: Caller, waiter: Caller) -> None:
    with contextlib.suppress(BulkheadFullError):
        waiter.claim()


def join(limit: Bulkhead, running: Caller, waiter: Caller) -> None:
    with contextlib.suppress(BulkheadFullError):
        Caller(limit, 5.0).withdraw()


def more(limit: Bulkhead, running: Caller, waiter: Caller) -> None:
    limit.configure(BulkheadSettings(2, None, None))
    limit.configure(BulkheadSettings(1, None, None))


def look(limit: Bulkhead, running: Caller, waiter: Caller) -> None:
    assert not limit.try_acquire()
    assert limit.snapshot().in_flight == 1


@pytest.mark.fault("F22")
@pytest.mark.usefixtures("only_by_hand")
@pytest.mark.parametrize("act", [leave, withdraw, claim, join, more, look])
@pytest.mark.parametrize("line", ["GW", "WG", "GGW", "GWG", "granted"])
def test_an_abandoned_coroutine_collected_inside_any_line_of_ours(
    line: str, act: Callable[[Bulkhead, Caller, Caller], None]
) -> None:
    """G: garbage that waits, W: a live waiter; "granted": garbage that has a place and will never use it."""

    def once(struck: Struck) -> None:
        limit = Bulkhead(1, max_queue=None, max_wait=None)
        running = Caller(limit)
        garbage = line.replace("granted", "G").partition("W")
        for _ in garbage[0]:
            abandon(limit)
        if line == "granted":
            running.leave()
        waiter = Caller(limit)
        for _ in garbage[2]:
            abandon(limit)
        struck(lambda: act(limit, running, waiter))
        gc.collect()
        finish(limit, running, waiter)

    async def main() -> None:
        assert at_each_point(once, gc.collect) > 5

    run_async(main())


def finish(limit: Bulkhead, *callers: Caller) -> None:
    """Everybody in turn gets a place, and gives it back: nothing is lost, and no place is given twice."""
    for caller in callers:
        if caller.ticket is not None and not caller.ticket.left:
            assert caller.ticket.granted
            assert caller.woken == 1
            caller.claim()
        if caller.held is not None:
            caller.leave()
    assert_at_rest(limit)


@pytest.mark.fault("F22")
def test_a_parked_coroutine_that_is_dropped_leaves_the_line() -> None:
    async def main() -> None:
        limit = Bulkhead(1, max_queue=2)
        running = Caller(limit)
        parked = limit.aacquire()
        parked.send(None)
        behind = Caller(limit)
        assert limit.waiting == 2
        del parked
        assert limit.waiting == 1
        running.leave()
        behind.claim()
        behind.leave()
        granted = limit.aacquire()
        running = Caller(limit)
        granted.send(None)
        running.leave()
        assert limit.in_flight == 1
        granted.close()  # it has a place, and never ran
        await asyncio.sleep(0)
        assert_at_rest(limit)

    run_async(main())
