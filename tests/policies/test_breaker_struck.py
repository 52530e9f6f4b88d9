"""A KeyboardInterrupt at any single point of a call or a change loses no trial, holds no lock, leaves no half change.

Blocks are not among the calls: between the end of a block and the first line of ``__exit__`` nobody can catch it. A trial
lost there costs its lease.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator, Iterator

import pytest

from seawall import CircuitBreaker, CircuitOpenError
from seawall.outcome import FAILURE, SUCCESS, Outcome, Rules, on_result
from seawall.policies.states import Token, Trial
from tests.clock import ManualClock
from tests.points import at_each_point, untouched

Act = Callable[[CircuitBreaker], object]


class IgnoredError(Exception):
    """Counts for nothing."""


def interrupt() -> None:
    raise KeyboardInterrupt


def trial_due() -> CircuitBreaker:
    clock = ManualClock()
    breaker = CircuitBreaker(1, 10.0, clock, ignores=IgnoredError, name="CORE")
    breaker.record_failure()
    clock.set(10)
    return breaker


def closed() -> CircuitBreaker:
    return CircuitBreaker(1, 10.0, ManualClock(), name="CORE")


def lease_over() -> CircuitBreaker:
    breaker = trial_due()
    assert breaker.allow()
    assert isinstance(breaker.clock, ManualClock)
    breaker.clock.set(85)
    return breaker


def raises(error: type[Exception]) -> Callable[[], None]:
    def call() -> None:
        raise error

    return call


def one_item(breaker: CircuitBreaker) -> None:
    def items() -> Iterator[int]:
        yield 1

    with contextlib.closing(breaker(items)()) as stream:  # type: ignore[type-var]  # typed as an iterator, and is a generator
        next(stream)


SCENES: dict[str, tuple[Callable[[], CircuitBreaker], Act]] = {
    "a trial that works": (trial_due, lambda breaker: breaker.call(lambda: None)),
    "a trial that fails": (trial_due, lambda breaker: breaker.call(raises(ConnectionError))),
    "a trial that is ignored": (trial_due, lambda breaker: breaker.call(raises(IgnoredError))),
    "a generator that is a trial": (trial_due, one_item),
    "a token": (trial_due, lambda breaker: breaker.settle(breaker.admit(), FAILURE)),
    "a call that trips": (closed, lambda breaker: breaker.call(raises(ConnectionError))),
    "a refusal": (trial_due, lambda breaker: breaker.check(0.0)),
    "a trial given up": (lease_over, lambda breaker: breaker.call(lambda: None)),
    "a reset": (trial_due, lambda breaker: breaker.reset()),
    "a mode": (trial_due, lambda breaker: breaker.set_mode("FORCED_CLOSED")),
    "another mode": (closed, lambda breaker: breaker.set_mode("DISABLED")),
}


def assert_unlocked(breaker: CircuitBreaker) -> None:
    """Another thread gets the lock, and gives it back."""
    got: list[int] = []
    thread = threading.Thread(target=lambda: got.append(breaker.failures), daemon=True)
    thread.start()
    thread.join(20)
    assert got


def assert_sound(breaker: CircuitBreaker) -> None:
    """No trial is out, nobody holds the lock, and the machine runs through all its states as ever."""
    if (breaker.state, breaker.mode) == ("CLOSED", "ENFORCE"):
        breaker.call(lambda: None)
        assert breaker.fast is not None  # the next call takes the short cut again, if not this one
    breaker.set_mode("ENFORCE")
    assert breaker.snapshot().trials == 0
    assert_unlocked(breaker)
    clock = breaker.clock
    assert isinstance(clock, ManualClock)
    clock.set(max(clock(), breaker.retry_at))
    breaker.call(lambda: None)
    assert breaker.state == "CLOSED"
    breaker.record_failure()
    assert breaker.state == "OPEN"


@pytest.mark.fault("F48", "F04")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # struck while a generator is dropped
@pytest.mark.parametrize("scene", SCENES)
def test_interrupted_anywhere(scene: str) -> None:
    make, act = SCENES[scene]

    def once(struck: Callable[[Callable[[], object]], None]) -> None:
        breaker = make()
        with contextlib.suppress(KeyboardInterrupt, ConnectionError, IgnoredError):
            struck(lambda: act(breaker))
        assert_sound(breaker)

    assert at_each_point(once, interrupt) > 5


def test_a_success_at_any_point_of_the_last_failure_comes_before_it_or_after_it() -> None:
    """Before it, one failure stands; after it, the circuit is open. A failure that is forgotten half-way is neither."""
    ends: set[tuple[str, int]] = set()
    breaker = closed()

    def once(struck: Callable[[Callable[[], object]], None]) -> None:
        nonlocal breaker
        breaker = CircuitBreaker(3, 10.0, ManualClock())
        breaker.record_failure()
        breaker.record_failure()
        struck(breaker.record_failure)
        ends.add((str(breaker.state), breaker.failures))

    def strike() -> None:
        with untouched():
            breaker.record_success()

    assert at_each_point(once, strike) > 5
    assert ends == {("CLOSED", 1), ("OPEN", 3)}


@pytest.mark.parametrize("ends_well", [True, False])
@pytest.mark.parametrize("outcome", [SUCCESS, FAILURE])
def test_a_trial_that_another_one_makes_void_while_it_is_made_is_not_out(ends_well: bool, outcome: Outcome) -> None:
    """The other is an abandoned generator, which the collector may close at any point: and that settles its trial."""
    taken: list[Token] = []
    streams: list[Generator[int, None, None]] = []

    def once(struck: Callable[[Callable[[], object]], None]) -> None:
        clock = ManualClock()
        breaker = CircuitBreaker(2, 10.0, clock, half_open_max_calls=2, trial_lease=30.0)
        breaker.record_failure()
        breaker.record_failure()
        clock.set(10)
        streams[:] = [breaker(items)()]
        next(streams[0])
        with contextlib.suppress(CircuitOpenError):
            struck(lambda: taken.append(breaker.admit()))
        before = breaker.snapshot()
        if before.state != "HALF_OPEN":
            assert before.trials == 0
        if before.state == "CLOSED":
            clock.set(45)
            breaker.configure(breaker.settings)  # looks at what time alone has brought
            assert (breaker.state, breaker.failures) == ("CLOSED", 0)
            if taken and type(taken[-1]) is Trial:
                breaker.settle(taken[-1], outcome)
            assert (breaker.state, breaker.failures) == ("CLOSED", 0)
        taken.clear()

    def items() -> Generator[int, None, None]:
        yield 1

    def strike() -> None:
        with untouched(), contextlib.suppress(ConnectionError):
            if ends_well:
                streams[0].close()
            else:
                streams[0].throw(ConnectionError)

    assert at_each_point(once, strike) > 5


def test_a_result_rule_that_comes_at_any_point_of_a_success_is_kept() -> None:
    """The success lowers the question whether there is anything to judge; the new rule raises it, and must win."""
    breaker = closed()

    def same(result: int) -> int:
        return result

    rules = Rules([on_result(lambda result: result == 500)], ())

    def once(struck: Callable[[Callable[[], object]], None]) -> None:
        nonlocal breaker
        breaker = CircuitBreaker(2, 10.0, ManualClock())
        guarded = breaker(same)
        breaker.record_failure()
        struck(lambda: guarded(200))
        if breaker.rules is not rules:  # not struck: it was the last round
            strike()
        guarded(500)
        guarded(500)
        assert breaker.state == "OPEN"

    def strike() -> None:
        with untouched():
            breaker.configure(breaker.settings, rules)

    assert at_each_point(once, strike) > 5
