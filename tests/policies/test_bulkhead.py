"""A bulkhead lets so many calls run at once, so many wait in order, refuses the rest at once, and counts them exactly."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import Callable

import pytest

import seawall
from seawall import Bulkhead, BulkheadFullError
from seawall.policies.slots import BulkheadSettings
from tests.aio import run_async
from tests.lines import Caller, assert_at_rest, until


def at_once(limit: Bulkhead, requests: int = 8) -> tuple[int, int, int, int]:
    """So many tasks arrive together at a short job: completed, rejected, peak_active, admitted_waiters."""

    @limit
    async def job() -> None:
        await asyncio.sleep(0.01)

    async def main() -> None:
        done = await asyncio.gather(*(job() for _ in range(requests)), return_exceptions=True)
        assert all(error is None or isinstance(error, BulkheadFullError) for error in done)

    run_async(main())
    counts = limit.completed, limit.rejected, limit.peak_active, limit.admitted_waiters
    assert_at_rest(limit)
    return counts


@pytest.mark.req("TRACE-2", "TRACE-3")
@pytest.mark.parametrize(("limit", "line", "counts"), [
    (8, None, (8, 0, 8, 0)),
    (2, None, (8, 0, 2, 6)),
    (2, 3, (5, 3, 2, 3)),
    (2, 0, (2, 6, 2, 0)),
    (1, 7, (8, 0, 1, 7)),
    (1, 6, (7, 1, 1, 6)),
])
def test_the_limit_and_the_line_are_two_settings(limit: int, line: int | None, counts: tuple[int, ...]) -> None:
    assert at_once(Bulkhead(limit, max_queue=line)) == counts


def test_the_defaults_are_ten_at_once_and_no_line() -> None:
    assert Bulkhead().settings == (10, 0, 10.0)


# -- counters
def test_the_counters_say_what_happened_at_each_step() -> None:
    limit = Bulkhead(2, max_queue=1, name="CORE")
    fields = ("started", "in_flight", "waiting", "completed", "rejected", "peak_active", "admitted_waiters")

    def numbers() -> tuple[int, ...]:
        snapshot = limit.snapshot()
        read = tuple(getattr(snapshot, field) for field in fields)
        assert read == tuple(getattr(limit, field) for field in fields)  # two ways to read, and reading changes nothing
        return read

    assert numbers() == (0, 0, 0, 0, 0, 0, 0)
    assert limit.try_acquire()
    assert numbers() == (1, 1, 0, 0, 0, 1, 0)
    limit.release()
    assert numbers() == (1, 0, 0, 1, 0, 1, 0)
    limit.acquire()
    limit.acquire()
    assert numbers() == (3, 2, 0, 1, 0, 2, 0)
    assert not limit.try_acquire()
    assert numbers() == (3, 2, 0, 1, 1, 2, 0)
    waiter = Caller(limit)
    assert numbers() == (3, 2, 1, 1, 1, 2, 1)
    with pytest.raises(BulkheadFullError):
        Caller(limit)
    assert numbers() == (3, 2, 1, 1, 2, 2, 1)
    limit.release()  # the slot goes from hand to hand: never free, the peak stays
    waiter.claim()
    next(limit.started_ticks)
    assert numbers() == (4, 2, 0, 2, 2, 2, 1)
    waiter.leave()
    limit.release()
    assert numbers() == (4, 0, 0, 4, 2, 2, 1)


def test_a_refused_or_vanished_waiter_has_neither_started_nor_completed() -> None:
    limit = Bulkhead(1, max_queue=2)
    limit.acquire()
    late, gone = Caller(limit), Caller(limit)
    with pytest.raises(BulkheadFullError, match="no place free within 1 s"):
        late.claim()
    gone.withdraw()
    assert (limit.started, limit.completed, limit.rejected, limit.admitted_waiters) == (1, 0, 1, 2)
    limit.release()
    assert_at_rest(limit)


def test_a_failed_call_has_completed_all_the_same() -> None:
    limit = Bulkhead(1)
    with pytest.raises(ZeroDivisionError):
        limit.call(divmod, 1, 0)
    assert (limit.started, limit.completed) == (1, 1)
    assert_at_rest(limit)


def test_completed_never_steps_back_while_a_slot_is_taken_but_its_call_not_yet_counted() -> None:
    limit = Bulkhead(2)
    limit.acquire()
    limit.release()
    assert limit.completed == 1
    between = Caller(limit)
    assert limit.completed == 1
    between.leave()


# -- by hand
@pytest.mark.parametrize("name", ["", "CORE"])
def test_one_release_too_many_is_an_error_and_makes_no_room(name: str) -> None:
    limit = Bulkhead(1, name=name)
    limit.acquire()
    limit.release()
    with pytest.raises(ValueError, match=f"^{name or 'bulkhead'}: released more often than acquired$"):
        limit.release()
    assert_at_rest(limit)


def test_a_guarded_call_cannot_be_released_by_hand() -> None:
    limit = Bulkhead(1)
    with limit, pytest.raises(ValueError, match="more often"):
        limit.release()
    assert_at_rest(limit)


def test_try_acquire_never_waits_and_never_overtakes_the_line() -> None:
    limit = Bulkhead(1, max_queue=5)
    assert limit.try_acquire()
    assert not limit.try_acquire()
    first = Caller(limit)
    limit.release()
    assert not limit.try_acquire()
    first.claim()
    first.leave()
    assert limit.try_acquire()


@pytest.mark.parametrize("timeout", [0, 0.0, -1.0])
def test_no_time_to_wait_means_refused_at_once_without_standing_in_line(timeout: float) -> None:
    limit = Bulkhead(1, max_queue=5)
    limit.acquire(timeout)  # room is free: no time is needed
    with pytest.raises(BulkheadFullError, match="no time is left"):
        limit.acquire(timeout)
    with pytest.raises(BulkheadFullError, match="no time is left"):
        run_async(limit.aacquire(timeout))
    assert (limit.admitted_waiters, limit.rejected) == (0, 2)
    limit.release()
    assert_at_rest(limit)


@pytest.mark.parametrize(("max_wait", "timeout", "words"), [
    (0.02, None, "within 0.02 s"), (30.0, 0.02, "within 0.02 s"), (0.02, 30.0, "within 0.02 s"),
    (None, 0.02, "within 0.02 s"), (0.0, None, "within 0 s"),
])
def test_the_wait_ends_at_the_smaller_of_both_limits(max_wait: float | None, timeout: float | None, words: str) -> None:
    limit = Bulkhead(1, max_queue=5, max_wait=max_wait, name="CORE")
    limit.acquire()
    with pytest.raises(BulkheadFullError, match=f"^CORE had no place free {words}$"):
        limit.acquire(timeout)
    with pytest.raises(BulkheadFullError, match=f"^CORE had no place free {words}$"):
        run_async(limit.aacquire(timeout))
    assert (limit.waiting, limit.rejected) == (0, 2)
    limit.release()
    assert_at_rest(limit)


def test_a_blocked_thread_gets_the_place_that_another_gives_back() -> None:
    limit = Bulkhead(1, max_queue=1, max_wait=30.0)
    limit.acquire()
    got = threading.Event()

    def wait() -> None:
        limit.acquire()
        got.set()

    thread = threading.Thread(target=wait)
    thread.start()
    until(lambda: limit.waiting)
    assert not got.is_set()
    limit.release()
    thread.join(30)
    assert got.is_set()
    limit.release()
    assert_at_rest(limit)


@pytest.mark.parametrize("seconds", [10.0, None])
def test_a_waiter_whose_wake_up_was_lost_finds_its_place_by_itself(
    monkeypatch: pytest.MonkeyPatch, seconds: float | None
) -> None:
    """As after a KeyboardInterrupt between a slot's way back and the wake-up: nobody comes by to make it good."""
    for driver in ("threads", "aio"):
        monkeypatch.setattr(f"seawall.drivers.{driver}.FIRST_LOOK", 0.01)
    limit = Bulkhead(1, max_queue=2, max_wait=seconds)
    silent = Caller(limit)

    def give_back_in_silence() -> None:
        until(lambda: limit.waiting)
        assert silent.held is not None
        silent.held.append(True)

    thread = threading.Thread(target=give_back_in_silence)
    thread.start()
    limit.acquire()
    thread.join(30)
    silent.held = limit.free
    limit._hands.clear()

    async def in_a_loop() -> None:
        asyncio.get_running_loop().call_later(0.005, limit.free.append, True)
        await limit.aacquire()

    run_async(in_a_loop())
    limit.release()
    assert_at_rest(limit)


@pytest.mark.parametrize("how", ["acquire", "with", "decorated", "call"])
def test_a_sync_wait_on_a_thread_whose_loop_runs_is_an_error_and_not_a_deadlock(how: str) -> None:
    limit = Bulkhead(1, max_queue=1, name="CORE")

    def block() -> None:
        with limit:
            pass

    ways: dict[str, Callable[[], object]] = {
        "acquire": limit.acquire, "with": block, "decorated": limit(lambda: None), "call": lambda: limit.call(int),
    }

    async def main() -> None:
        ways[how]()  # room is free: nothing to wait for
        if how == "acquire":
            limit.release()
        async with limit:
            with pytest.raises(RuntimeError, match=r"^CORE is full, .*would block the event loop.*async form"):
                ways[how]()
            assert limit.waiting == 0

    run_async(main())
    assert_at_rest(limit)


# -- the line
def test_first_come_first_served() -> None:
    limit = Bulkhead(1, max_queue=None)
    running = Caller(limit)
    line = [Caller(limit) for _ in range(4)]
    for i, head in enumerate(line):
        running.leave()
        assert [caller.woken for caller in line] == [1] * (i + 1) + [0] * (3 - i)
        head.claim()
        running = head
    running.leave()
    assert_at_rest(limit)


def test_a_newcomer_joins_the_line_it_sees_even_when_a_slot_is_free() -> None:
    limit = Bulkhead(2, max_queue=5)
    running = [Caller(limit), Caller(limit)]
    first = Caller(limit)
    held, running[0].held = running[0].held, None
    assert held is not None
    held.append(True)  # given back, and its giver has not looked at the line yet
    newcomer = Caller(limit)
    assert first.ticket is not None
    assert first.ticket.granted
    assert newcomer.in_line
    first.claim()
    first.leave()
    newcomer.claim()
    newcomer.leave()
    running[1].leave()
    assert_at_rest(limit)


def test_a_full_line_with_a_slot_given_back_in_silence_lets_the_head_go_and_takes_the_newcomer() -> None:
    """Its giver was interrupted before it looked at the line: whoever comes next makes it good."""
    limit = Bulkhead(1, max_queue=1)
    running, waiter = Caller(limit), Caller(limit)
    assert running.held is not None
    running.held.append(True)
    newcomer = Caller(limit)
    assert waiter.woken == 1
    waiter.claim()
    waiter.leave()
    newcomer.claim()
    newcomer.leave()
    assert_at_rest(limit)


def test_a_lowered_queue_keeps_those_who_stand_in_it() -> None:
    limit = Bulkhead(1, max_queue=3)
    running = Caller(limit)
    line = [Caller(limit) for _ in range(3)]
    limit.configure(BulkheadSettings(1, 0, 10.0))
    assert limit.waiting == 3
    with pytest.raises(BulkheadFullError, match="is full: 1 call running and 3 waiting"):
        Caller(limit)
    for caller in line:
        running.leave()
        caller.claim()
        running = caller
    running.leave()
    assert_at_rest(limit)


def test_a_waiter_that_leaves_after_its_grant_hands_the_slot_on() -> None:
    limit = Bulkhead(1, max_queue=2)
    running, first, second = Caller(limit), Caller(limit), Caller(limit)
    running.leave()
    assert first.woken == 1
    first.withdraw()
    assert (second.woken, limit.in_flight, limit.waiting) == (1, 1, 0)
    second.claim()
    second.leave()
    assert_at_rest(limit)


def test_withdrawing_twice_gives_back_once() -> None:
    limit = Bulkhead(1, max_queue=2)
    running, waiter = Caller(limit), Caller(limit)
    ticket = waiter.ticket
    running.leave()
    waiter.withdraw()
    assert ticket is not None
    limit.withdraw(ticket)
    assert_at_rest(limit)


@pytest.mark.req("TRACE-4")
def test_a_refusal_says_the_name_the_number_and_travels_well() -> None:
    limit = Bulkhead(2, max_queue=1, name="CORE")
    running = [Caller(limit), Caller(limit), Caller(limit)]
    with pytest.raises(BulkheadFullError) as first:
        limit.acquire()
    with pytest.raises(seawall.RejectedError) as second:
        limit.acquire()
    error = first.value
    assert str(error) == "CORE is full: 2 calls running and 1 waiting"
    assert (error.target, error.reason, error.state, error.retry_after) == (
        "CORE", "is full: 2 calls running and 1 waiting", "", None)
    assert error is not second.value
    assert pickle.loads(pickle.dumps(error)).args == error.args
    assert len(running) == 3
