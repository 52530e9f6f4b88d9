"""F49: a child forked while threads hold slots, trials and every lock starts clean: nothing hangs, all slots are free."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress

import pytest

from seawall import Bulkhead, BulkheadFullError, CircuitBreaker, CircuitOpenError, StateChanged, Target, Wall
from seawall.events import Event, Outbox
from seawall.outcome import FAILURE, SUCCESS, Outcome
from tests.clock import ManualClock
from tests.forks import in_forked_child
from tests.guard.both import Form, every_form
from tests.lines import Caller, assert_at_rest
from tests.points import at_each_point, untouched

pytestmark = [
    pytest.mark.fault("F49"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    # 3.12 and newer warn of just what is tested here.
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]


@contextmanager
def in_another_thread(*held: AbstractContextManager[object]) -> Iterator[None]:
    """A thread of the parent stands inside these, as it might at the moment of any fork."""
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with ExitStack() as stack:
            for one in held:
                stack.enter_context(one)
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert inside.wait(30)
    try:
        yield
    finally:
        leave.set()
        thread.join(30)


def test_a_child_finds_all_slots_free_and_an_empty_line() -> None:
    limit = Bulkhead(3, max_queue=2)
    running = [Caller(limit) for _ in range(3)]
    waiting = [Caller(limit), Caller(limit)]
    with pytest.raises(BulkheadFullError):
        Caller(limit)
    limit.rejected = 7

    def child() -> None:
        assert (limit.in_flight, limit.waiting, limit.alert) == (0, 0, [])
        assert (limit.peak_active, limit.rejected, limit.admitted_waiters) == (3, 7, 2)
        assert_at_rest(limit)
        for caller in running:
            caller.leave()  # a call of the parent that ends in the child makes no new room
        assert_at_rest(limit)

    with in_another_thread(limit._lock):
        in_forked_child(child)
    assert (limit.in_flight, limit.waiting) == (3, 2)
    running[0].leave()
    assert waiting[0].woken == 1


def test_calls_of_the_parent_never_complete_in_the_child() -> None:
    limit = Bulkhead(3)
    target = Target("CORE", bulkhead=limit)
    target.call(int)

    def child() -> None:
        assert (limit.started, limit.completed) == (3, 1)
        target.call(int)
        assert (limit.started, limit.completed, limit.in_flight) == (4, 2, 0)

    with in_another_thread(target), target:
        in_forked_child(child)
    assert (limit.started, limit.completed) == (3, 3)


@every_form
def test_a_guarded_call_that_forks_ends_in_both(form: Form) -> None:
    """In the child its slot goes back to a list that is nobody's any more: it makes no new room there."""
    limit = Bulkhead(1)
    target = Target("CORE", breaker=CircuitBreaker(), bulkhead=limit)
    parent = os.getpid()

    def forks() -> int:
        in_forked_child(lambda: assert_at_rest(limit))
        assert limit.in_flight == 1
        return os.fork()

    pid = form(target, forks)()
    if os.getpid() != parent:
        try:
            assert_at_rest(limit)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert_at_rest(limit)


@every_form
def test_a_generator_under_way_ends_in_both(form: Form) -> None:
    limit = Bulkhead(1)

    def items() -> Iterator[int]:
        yield 1
        yield 2

    stream = form(limit, items)()
    assert next(stream) == 1

    def child() -> None:
        assert_at_rest(limit)
        assert list(stream) == [2]
        assert_at_rest(limit)

    in_forked_child(child)
    assert limit.in_flight == 1
    assert list(stream) == [2]
    assert_at_rest(limit)


def test_a_debt_of_slots_is_paid_by_the_fork() -> None:
    limit = Bulkhead(4)
    running = [Caller(limit) for _ in range(4)]
    limit.configure(limit.settings._replace(max_concurrent=2))

    def child() -> None:
        assert_at_rest(limit)
        assert limit.max_concurrent == 2

    in_forked_child(child)
    assert len(running) == 4


def test_a_place_taken_by_hand_in_the_parent_is_not_the_childs_to_release() -> None:
    limit = Bulkhead(1)
    limit.acquire()

    def child() -> None:
        with pytest.raises(ValueError, match="more often"):
            limit.release()
        assert_at_rest(limit)

    in_forked_child(child)
    limit.release()


def test_a_child_keeps_what_is_known_of_the_target_and_no_trial(manual_clock: ManualClock) -> None:
    breaker = CircuitBreaker(2, 10.0, manual_clock)
    breaker.record_failure()
    breaker.record_failure()
    manual_clock.advance(10.0)
    trial = breaker.admit()

    def child() -> None:
        snapshot = breaker.snapshot()
        assert (snapshot.state, snapshot.failures, snapshot.trials) == ("HALF_OPEN", 2, 0)
        with breaker:  # the parent's trial is out, and takes no place from the child's
            pass
        assert breaker.state == "CLOSED"

    with in_another_thread(breaker._lock):
        in_forked_child(child)
    with pytest.raises(CircuitOpenError):
        breaker.admit()
    assert trial


@pytest.mark.parametrize("outcome", [SUCCESS, FAILURE])
def test_a_trial_of_the_parent_is_not_the_childs_to_settle(outcome: Outcome, manual_clock: ManualClock) -> None:
    breaker = CircuitBreaker(1, 10.0, manual_clock)
    breaker.record_failure()
    manual_clock.advance(10.0)
    trial = breaker.admit()

    def child() -> None:
        breaker.settle(trial, outcome)
        assert (breaker.state, breaker.failures, breaker.snapshot().trials) == ("HALF_OPEN", 1, 0)
        own = breaker.admit()
        assert breaker.snapshot().trials == 1
        breaker.settle(own, SUCCESS)
        assert breaker.state == "CLOSED"

    in_forked_child(child)
    breaker.settle(trial, outcome)
    assert breaker.state == ("CLOSED" if outcome is SUCCESS else "OPEN")


@every_form
def test_nor_does_a_guarded_trial_under_way_end_as_one_there(form: Form, manual_clock: ManualClock) -> None:
    breaker = CircuitBreaker(1, 10.0, manual_clock)
    breaker.record_failure()
    manual_clock.advance(10.0)

    def items() -> Iterator[int]:
        yield 1

    def child() -> None:
        assert list(stream) == []
        assert (breaker.state, breaker.snapshot().trials) == ("HALF_OPEN", 0)

    stream = form(breaker, items)()
    assert next(stream) == 1
    in_forked_child(child)
    assert list(stream) == []
    assert breaker.state == "CLOSED"


def test_nor_does_a_block(manual_clock: ManualClock) -> None:
    breaker = CircuitBreaker(1, 10.0, manual_clock)
    breaker.record_failure()
    manual_clock.advance(10.0)

    def child() -> None:
        breaker.__exit__(None, None, None)
        assert (breaker.state, breaker.snapshot().trials) == ("HALF_OPEN", 0)

    with breaker:
        in_forked_child(child)
    assert breaker.state == "CLOSED"


def test_a_fork_at_any_point_of_the_first_trouble_leaves_the_counters_to_the_child_alone() -> None:
    """A breaker that has seen no trouble counts in a counter that stands in for all: nobody may ever raise that one."""
    breaker = CircuitBreaker()

    def once(struck: Callable[[Callable[[], object]], None]) -> None:
        nonlocal breaker
        breaker = CircuitBreaker(100)
        struck(breaker.record_failure)

    def child() -> None:
        failed = breaker.snapshot().failed
        for _ in range(2):
            breaker.record_failure()
        breaker.set_mode("FORCED_OPEN")
        assert [breaker.allow() for _ in range(3)] == [False] * 3
        other = CircuitBreaker()
        assert (breaker.snapshot().failed - failed, breaker.rejected) == (2, 3)
        assert (other.snapshot().failed, other.rejected) == (0, 0)

    def strike() -> None:
        with untouched():
            in_forked_child(child)

    assert at_each_point(once, strike) > 10


def test_a_counted_block_ends_in_the_child_though_a_thread_of_the_parent_was_changing_what_is_counted() -> None:
    """It counts none for a moment, and puts the old back under the lock; in the child it never does."""
    breaker = CircuitBreaker(2)
    with breaker:  # from now on this epoch is counted
        pass

    def child() -> None:
        breaker._counted = None
        breaker.__exit__(ConnectionError, ConnectionError(), None)
        assert breaker.failures == 0
        for _ in range(2):
            with pytest.raises(ConnectionError), breaker:
                raise ConnectionError
        assert breaker.state == "OPEN"

    with breaker, in_another_thread(breaker._lock):
        in_forked_child(child)


def test_a_child_delivers_events_though_a_thread_of_the_parent_was_at_it(manual_clock: ManualClock) -> None:
    breaker = CircuitBreaker(1, 10.0, manual_clock)
    told: list[StateChanged] = []
    delivering, go_on = threading.Event(), threading.Event()

    def listener(event: Event) -> None:
        assert isinstance(event, StateChanged)
        told.append(event)
        if len(told) == 1:
            delivering.set()
            go_on.wait(60)

    breaker.listen(listener)
    thread = threading.Thread(target=breaker.record_failure)
    thread.start()
    assert delivering.wait(30)

    def child() -> None:
        told.clear()
        told.append(StateChanged("", "", "", 0.0, 0.0, ""))
        manual_clock.advance(10.0)
        with breaker:
            pass
        assert [event.new for event in told[1:]] == ["HALF_OPEN", "CLOSED"]

    try:
        with in_another_thread(breaker.outbox._lock):
            in_forked_child(child)
    finally:
        go_on.set()
        thread.join(30)


def test_an_outbox_tells_nothing_of_the_parents_in_the_child() -> None:
    outbox = Outbox()
    told: list[Event] = []
    remove = outbox.add(told.append)
    outbox.post(StateChanged("CORE", "CLOSED", "OPEN", 0.0, 1.0, "posted in the parent, not yet delivered"))

    def child() -> None:
        outbox.after_fork()
        outbox.flush()
        assert told == []
        outbox.post(StateChanged("CORE", "OPEN", "CLOSED", 1.0, 0.0, "the child's own"))
        outbox.flush()
        assert len(told) == 1
        remove()

    with in_another_thread(outbox._lock):
        in_forked_child(child)
    outbox.flush()
    assert len(told) == 1


def test_a_child_registers_and_reads_though_the_wall_was_locked() -> None:
    wall = Wall()
    core = wall.target("CORE")
    core.call(int)

    def child() -> None:
        assert wall.target("CORE") is core
        assert wall.target("CLAIM").call(int) == 0
        row = wall.snapshot()["CORE"].breaker
        assert row is not None
        assert row.started == 1

    with in_another_thread(wall._lock):
        in_forked_child(child)
    assert "CLAIM" not in wall


def test_a_grandchild_starts_as_clean_as_a_child() -> None:
    limit = Bulkhead(2)
    running = [Caller(limit)]

    def child() -> None:
        running.append(Caller(limit))
        running.append(Caller(limit))
        in_forked_child(lambda: assert_at_rest(limit))

    in_forked_child(child)
    assert limit.in_flight == 1


@pytest.mark.usefixtures("fast_switching")
def test_whenever_the_fork_comes_the_child_can_call(manual_clock: ManualClock) -> None:
    """Threads keep calling and failing meanwhile, so each fork finds the locks in another state."""
    limit = Bulkhead(2, max_queue=None)
    breaker = CircuitBreaker(2, 0.0, manual_clock)
    target = Target("CORE", breaker=breaker, bulkhead=limit)
    ended = threading.Event()

    def traffic(fails: Callable[[], bool]) -> None:
        while not ended.is_set():
            with suppress(OSError, CircuitOpenError), target:
                if fails():
                    raise OSError

    threads = [threading.Thread(target=traffic, args=(lambda i=i: bool(i % 2),)) for i in range(3)]
    for thread in threads:
        thread.start()

    def child() -> None:
        for _ in range(3):
            with suppress(CircuitOpenError), target:
                pass
        assert (limit.in_flight, limit.waiting) == (0, 0)
        assert_at_rest(limit)

    try:
        for _ in range(20):
            in_forked_child(child)
    finally:
        ended.set()
        for thread in threads:
            thread.join(30)
    assert_at_rest(limit)
