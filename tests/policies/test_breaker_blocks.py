"""Blocks that are only counted are never taken for one another: not across epochs, not across threads, nested or not.

What a second thread does is done here in a context of its own, at a point that the test chooses. That is the same to the
breaker, but for the lock: so nothing is done in between while the lock is held.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest

from seawall import CircuitBreaker, CircuitOpenError
from seawall.guard.blocks import blocks
from tests.clock import ManualClock
from tests.points import at_each_point, untouched

pytestmark = pytest.mark.req("LIB-1")


class Thread:
    """Another thread, as the breaker sees it: it enters a block and leaves it when told."""

    def __init__(self, breaker: CircuitBreaker) -> None:
        self.breaker = breaker
        self._context = contextvars.Context()

    def enter(self) -> None:
        self._context.run(self.breaker.__enter__)

    def leave(self, error: BaseException | None = None) -> None:
        self._context.run(self.breaker.__exit__, type(error) if error else None, error, None)

    @property
    def keeps(self) -> bool:
        """Its innermost block is one that is kept, not counted."""
        return self._context.run(lambda: blocks.get()[0] is self.breaker)


@pytest.fixture
def breaker(manual_clock: ManualClock) -> CircuitBreaker:
    """Closed; the blocks of its present epoch are counted."""
    breaker = CircuitBreaker(3, 10.0, manual_clock)
    with breaker:
        pass
    return breaker


def trip(breaker: CircuitBreaker) -> None:
    for _ in range(3):
        breaker.record_failure()
    assert breaker.state == "OPEN"


def heal(breaker: CircuitBreaker) -> None:
    assert isinstance(breaker.clock, ManualClock)
    breaker.clock.set(breaker.retry_at)
    breaker.call(lambda: None)
    assert breaker.state == "CLOSED"


def assert_counts(breaker: CircuitBreaker) -> None:
    """All is left: blocks are entered and judged as ever, and those of the present epoch are counted again."""
    for _ in range(2):  # the first may find another epoch counted
        with breaker:
            pass
    thread = Thread(breaker)
    thread.enter()
    assert not thread.keeps
    before = breaker.failures
    thread.leave(ConnectionError())
    assert breaker.failures == before + 1
    assert not breaker._inside
    assert not breaker._kept


def test_while_an_old_block_is_open_the_old_is_void_and_the_new_counts(breaker: CircuitBreaker) -> None:
    old, new = Thread(breaker), Thread(breaker)
    old.enter()
    trip(breaker)
    heal(breaker)
    new.enter()
    assert (old.keeps, new.keeps) == (False, True)
    old.leave(ConnectionError())
    assert breaker.failures == 0
    new.leave(ConnectionError())
    assert breaker.failures == 1
    assert_counts(breaker)


def test_in_whichever_order_they_are_left(breaker: CircuitBreaker) -> None:
    old, new = Thread(breaker), Thread(breaker)
    old.enter()
    trip(breaker)
    heal(breaker)
    new.enter()
    new.leave(ConnectionError())
    assert breaker.failures == 1
    old.leave(None)  # a success of then forgets nothing of now
    assert breaker.failures == 1
    assert_counts(breaker)


def test_who_stands_in_a_kept_block_keeps_the_next_one_too(breaker: CircuitBreaker) -> None:
    """Else, left in whichever order, the one would be taken for the other: a trial for a call of the new epoch."""
    trip(breaker)
    assert isinstance(breaker.clock, ManualClock)
    breaker.clock.set(breaker.retry_at)
    trial, other = Thread(breaker), Thread(breaker)
    trial.enter()
    breaker.reset()
    other.enter()  # from here on the new epoch is counted
    other.leave()
    trial.enter()
    assert not breaker._inside
    trial.leave(ConnectionError())
    assert breaker.failures == 1
    trial.leave(ConnectionError())
    assert breaker.failures == 1
    assert_counts(breaker)


def lock_is_free(breaker: CircuitBreaker) -> bool:
    got: list[bool] = []

    def try_it() -> None:
        got.append(breaker._lock.acquire(blocking=False))
        if got[0]:
            breaker._lock.release()

    thread = threading.Thread(target=try_it)
    thread.start()
    thread.join(20)
    return got == [True]


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("kept", [False, True])
def test_whenever_the_epoch_changes_while_a_block_is_entered_or_left(kept: bool, fails: bool) -> None:
    """The block is of the old epoch or of the new one; the others, of both epochs, are what they are."""
    seen: set[int] = set()
    scene: list[Thread] = []

    def once(struck: Callable[[Callable[[], object]], None]) -> None:
        breaker = CircuitBreaker(3, 10.0, ManualClock())
        if not kept:
            with breaker:
                pass
        old, new, one = (Thread(breaker) for _ in range(3))
        scene[:] = [old, new]
        old.enter()

        def act() -> None:
            one.enter()
            one.leave(ConnectionError() if fails else None)

        struck(act)
        before = breaker.failures
        old.leave(ConnectionError())
        if changed:
            seen.add(before)
            assert breaker.failures == before  # it is stale
            new.leave(ConnectionError())
            assert breaker.failures == before + 1
        assert_counts(breaker)
        changed.clear()

    def strike() -> None:
        old, new = scene
        with untouched():
            if lock_is_free(old.breaker):
                trip(old.breaker)
                heal(old.breaker)
                new.enter()
                changed.append(True)

    changed: list[bool] = []
    assert at_each_point(once, strike) > 3
    assert seen == ({0, 1} if fails else {0})


def test_who_was_admitted_before_a_trip_never_counts_after_the_healing() -> None:
    """Either it enters before, and is void; or it comes too late, and is refused like anybody."""
    ends: set[str] = set()
    trials: list[Thread] = []

    def once(struck: Callable[[Callable[[], object]], None]) -> None:
        breaker = CircuitBreaker(3, 10.0, ManualClock())
        first, one, other, trial = (Thread(breaker) for _ in range(4))
        first.enter()  # kept: so who enters looks whether it stands in a kept one, which is a point to be struck at
        assert first.keeps
        trials[:] = [trial]
        end = "refused"
        with suppress(CircuitOpenError):
            struck(one.enter)
            end = "old"
        if not trials:
            trial.leave()
            assert breaker.state == "CLOSED"
            other.enter()
            other.leave()
            if end == "old":
                one.leave(ConnectionError())
            assert breaker.failures == 0
            ends.add(end)
        else:  # not struck, it was the last round
            one.leave()
        first.leave()
        assert_counts(breaker)

    def strike() -> None:
        [trial] = trials
        with untouched():
            if lock_is_free(trial.breaker):
                trip(trial.breaker)
                assert isinstance(trial.breaker.clock, ManualClock)
                trial.breaker.clock.set(trial.breaker.retry_at)
                trial.enter()
                trials.clear()

    assert at_each_point(once, strike) > 1
    assert ends == {"refused", "old"}


def test_who_enters_looks_again_once_its_element_lies_there() -> None:
    """Nobody was seen inside, and so another epoch is counted by then: the block is kept, and is of the new one."""
    ends: list[tuple[str, int]] = []
    breaker = CircuitBreaker()

    def once(struck: Callable[[Callable[[], object]], None]) -> None:
        nonlocal breaker
        breaker = CircuitBreaker(3, 10.0, ManualClock())
        first, one = Thread(breaker), Thread(breaker)
        first.enter()  # kept: so who enters looks whether it stands in a kept one, which is a point to be struck at
        struck(one.enter)
        how = "kept" if one.keeps else "counted"
        one.leave(ConnectionError())
        ends.append((how, breaker.failures))
        first.leave()
        assert_counts(breaker)

    def strike() -> None:
        other = Thread(breaker)
        with untouched():
            if lock_is_free(breaker):
                trip(breaker)
                heal(breaker)
                other.enter()
                other.leave()

    assert at_each_point(once, strike) > 1
    assert ends[0] == ("counted", 1)  # the change came before it looked at all
    assert ends[-1] == ("counted", 1)  # and here none came
    assert set(ends) == {("counted", 1), ("kept", 1), ("counted", 0)}  # after it has looked again, it is of the old one
