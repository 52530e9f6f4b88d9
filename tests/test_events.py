"""Changes are told in order, outside any lock; a listener that raises or calls back in loses nothing and stops nobody."""

from __future__ import annotations

import logging
import threading
from collections import deque

import pytest

from seawall import CircuitBreaker, StateChanged
from seawall.events import Event, Outbox, RetryEvent
from tests.clock import ManualClock

pytestmark = pytest.mark.fault("F18")


def event(number: int) -> StateChanged:
    return StateChanged("CORE", "CLOSED", "OPEN", float(number), 0.0, "")


@pytest.fixture
def breaker(manual_clock: ManualClock) -> CircuitBreaker:
    return CircuitBreaker(1, 10.0, manual_clock, name="CORE")


def test_a_change_says_everything(breaker: CircuitBreaker, manual_clock: ManualClock) -> None:
    told: list[Event] = []
    breaker.listen(told.append)
    manual_clock.set(5)
    breaker.record_failure("E901")
    manual_clock.set(15)
    breaker.allow()
    breaker.record_success()
    assert told == [
        StateChanged("CORE", "CLOSED", "OPEN", 5, 15, "1 failure in a row, last E901"),
        StateChanged("CORE", "OPEN", "HALF_OPEN", 15, 15, "1 failure in a row, last E901"),
        StateChanged("CORE", "HALF_OPEN", "CLOSED", 15, 0, "the trial went well"),
    ]


def test_a_success_a_refusal_and_a_reset_of_a_closed_circuit_are_no_events(breaker: CircuitBreaker) -> None:
    told: list[Event] = []
    breaker.listen(told.append)
    breaker.record_success()
    breaker.reset()
    breaker.record_failure()
    breaker.allow()
    assert len(told) == 1


def test_one_that_raises_is_logged_and_the_others_are_told(
    breaker: CircuitBreaker, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Event] = []

    def broken(event: Event) -> None:
        raise LookupError

    breaker.listen(broken)
    breaker.listen(told.append)
    breaker.record_failure()
    breaker.reset()
    assert [event.new for event in told] == ["OPEN", "CLOSED"]
    assert [(record.name, record.levelno) for record in caplog.records] == [("seawall", logging.ERROR)] * 2


def test_one_that_calls_back_in_is_answered_and_its_own_change_is_told_after_this_one(breaker: CircuitBreaker) -> None:
    told: list[tuple[str, str]] = []

    def reset(event: Event) -> None:
        told.append(("first", event.new))
        if event.new == "OPEN":
            breaker.reset()
            assert (breaker.state, breaker.allow()) == ("CLOSED", True)

    breaker.listen(reset)
    breaker.listen(lambda event: told.append(("second", event.new)))
    breaker.record_failure()
    assert told == [("first", "OPEN"), ("second", "OPEN"), ("first", "CLOSED"), ("second", "CLOSED")]


def test_no_lock_is_held_while_a_listener_runs(breaker: CircuitBreaker) -> None:
    """Another thread goes through the slow path, the readers and the modes, while this one is inside the listener."""
    done: list[bool] = []

    def others_go_on() -> None:
        breaker.snapshot()
        breaker.allow()
        breaker.set_mode("DISABLED")
        done.append(breaker.allow())

    def listener(event: Event) -> None:
        if event.new == "OPEN":
            thread = threading.Thread(target=others_go_on)
            thread.start()
            thread.join(30)
            assert not thread.is_alive()

    breaker.listen(listener)
    breaker.record_failure()
    assert done == [True]


def test_one_removed_is_told_no_more_and_the_others_are(breaker: CircuitBreaker) -> None:
    first: list[Event] = []
    second: list[Event] = []
    remove = breaker.listen(first.append)
    breaker.listen(second.append)
    breaker.record_failure()
    remove()
    remove()
    breaker.reset()
    assert (len(first), len(second)) == (1, 2)


def test_one_interrupted_leaves_what_is_queued_for_the_next(breaker: CircuitBreaker) -> None:
    told: list[str] = []

    def listener(event: Event) -> None:
        told.append(event.new)
        if event.new == "OPEN":
            breaker.reset()
            raise KeyboardInterrupt

    breaker.listen(listener)
    with pytest.raises(KeyboardInterrupt):
        breaker.record_failure()
    assert told == ["OPEN"]
    breaker.set_mode("DISABLED")
    assert told == ["OPEN", "CLOSED", "DISABLED"]


def test_while_one_delivers_the_others_leave_theirs_to_him() -> None:
    outbox = Outbox()
    told: list[str] = []
    inside, go_on = threading.Event(), threading.Event()

    def listener(event: Event) -> None:
        told.append(f"{event.at:.0f} by {threading.current_thread().name}")
        if event.at == 1:
            inside.set()
            go_on.wait(30)

    outbox.add(listener)
    outbox.post(event(1))
    first = threading.Thread(target=outbox.flush, name="first")
    first.start()
    assert inside.wait(30)
    outbox.post(event(2))
    outbox.flush()  # returns at once, and has told nothing
    assert told == ["1 by first"]
    go_on.set()
    first.join(30)
    assert told == ["1 by first", "2 by first"]


def test_without_listeners_nothing_is_kept() -> None:
    outbox = Outbox()
    told: list[str] = []
    outbox.post(event(1))
    outbox.add(lambda event: told.append(event.target))
    outbox.flush()
    assert told == []


def test_one_posted_just_as_the_other_stops_delivering_is_not_left_lying() -> None:
    """He has seen that nothing is queued and still holds the right to deliver: whoever comes now leaves it to him."""
    outbox = Outbox()
    told: list[float] = []

    class Queue(deque[Event | RetryEvent]):
        late = True

        def __len__(self) -> int:
            seen = super().__len__()
            if seen == 0 and self.late and told:
                self.late = False
                outbox.post(event(2))
                outbox.flush()
                assert told == [1]
            return seen

    outbox.waiting = Queue()
    outbox.add(lambda event: told.append(event.at))
    outbox.post(event(1))
    outbox.flush()
    assert told == [1, 2]
