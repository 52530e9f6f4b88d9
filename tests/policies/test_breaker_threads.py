"""However many threads or tasks ask at once, exactly the permitted trials run, and no report or transition is lost."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from seawall import CircuitBreaker, CircuitOpenError
from seawall.outcome import FAILURE, SUCCESS
from seawall.policies.states import Token
from tests.aio import run_async
from tests.clock import ManualClock
from tests.policies.crowd import FORMS, Hesitant, NoLock, Rush, in_step
from tests.policies.play import opened

CROWD, ROUNDS = 16, 250

pytestmark = pytest.mark.usefixtures("fast_switching")


def half_open_soon(permits: int = 1) -> CircuitBreaker:
    """A breaker whose open time is just over: the next to ask gets a trial."""
    clock = ManualClock()
    breaker = opened(clock, failure_threshold=1, half_open_max_calls=permits, success_threshold=permits)
    clock.set(10.0)
    return breaker


def rounds_of(
    form: Callable[[Rush, CircuitBreaker], None], permits: int, rounds: int, prepare: Callable[[CircuitBreaker], None]
) -> list[int]:
    """How many ran, in each of ``rounds`` rushes of ``CROWD`` threads at a breaker that is about to be half-open."""

    def fresh() -> tuple[Rush, CircuitBreaker]:
        breaker = half_open_soon(permits)
        prepare(breaker)
        return Rush(CROWD, threading.Event), breaker

    rushes = [fresh() for _ in range(rounds)]

    def act(number: int, who: int) -> None:
        rush, breaker = rushes[number]
        rush.enter(lambda breaker: form(rush, breaker), breaker)

    in_step(CROWD, rounds, act, lambda number: None)
    for rush, breaker in rushes:
        assert len(rush.ran) + len(rush.refused) == CROWD
        assert breaker.started == len(rush.ran) + 1
        assert breaker.rejected == len(rush.refused)
    return [len(rush.ran) for rush, _ in rushes]


def hesitate(breaker: CircuitBreaker) -> None:
    """Let others run between the granting of a trial and its being counted; no such moment exists under the lock."""
    hesitant = Hesitant(*breaker.settings)
    hesitant.pause = lambda: time.sleep(0)
    breaker.settings = hesitant


@pytest.mark.req("HUB-2", "HUB-9", "LIB-3")
@pytest.mark.fault("F03")
@FORMS
def test_exactly_one_trial_runs(form: Callable[[Rush, CircuitBreaker], None]) -> None:
    assert rounds_of(form, 1, ROUNDS, lambda breaker: None) == [1] * ROUNDS


@pytest.mark.req("TRACE-3", "LIB-3")
@FORMS
def test_exactly_the_permitted_trials_run_even_if_the_grant_takes_its_time(
    form: Callable[[Rush, CircuitBreaker], None],
) -> None:
    assert rounds_of(form, 3, 40, hesitate) == [3] * 40


@FORMS
def test_without_the_lock_too_many_run(form: Callable[[Rush, CircuitBreaker], None]) -> None:
    """The proof that the tests above can fail."""

    def unlock(breaker: CircuitBreaker) -> None:
        breaker._made_lock = NoLock()  # type: ignore[assignment]  # that is the point
        hesitate(breaker)

    assert max(rounds_of(form, 1, 10, unlock)) > 1


@pytest.mark.req("HUB-2")
@pytest.mark.fault("F03")
@pytest.mark.parametrize("permits", [1, 3])
@pytest.mark.parametrize("form", ["acall", "decorator", "block"])
def test_exactly_the_permitted_trials_run_among_tasks(form: str, permits: int) -> None:
    async def enter(rush: Rush, breaker: CircuitBreaker) -> None:
        try:
            if form == "acall":
                await breaker.acall(rush.atrial)
            elif form == "decorator":
                await breaker(rush.atrial)()
            else:
                async with breaker:
                    await rush.atrial()
        except CircuitOpenError:
            rush.know(rush.refused)

    async def main() -> None:
        for _ in range(100):
            rush, breaker = Rush(CROWD, asyncio.Event), half_open_soon(permits)
            await asyncio.gather(*(enter(rush, breaker) for _ in range(CROWD)))
            assert (len(rush.ran), len(rush.refused), str(breaker.state)) == (permits, CROWD - permits, "CLOSED")

    run_async(main())


def test_threads_that_fail_together_open_once_and_lose_no_count() -> None:
    breakers = [CircuitBreaker(8 * 50, 10.0, ManualClock()) for _ in range(20)]

    def act(number: int, who: int) -> None:
        for _ in range(50):
            breakers[number].record_failure()

    in_step(8, len(breakers), act, lambda number: None)
    for breaker in breakers:
        shot = breaker.snapshot()
        assert (str(shot.state), shot.opened, shot.failed, shot.failures) == ("OPEN", 1, 400, 400)


def test_a_success_among_failing_threads_never_leaves_the_threshold_unnoticed() -> None:
    """After the last success each failure counts: eight threads that fail once more than the threshold needs must open."""
    breakers = [CircuitBreaker(16, 10.0, ManualClock()) for _ in range(100)]

    def act(number: int, who: int) -> None:
        breaker = breakers[number]
        if who == 0:
            breaker.record_success()
        for _ in range(2):
            breaker.record_failure()

    def after(number: int) -> None:
        """In the order that came about, at most all 16 stood after the success; whatever was left then still counts."""
        breaker = breakers[number]
        for _ in range(16 - breaker.failures if breaker.state == "CLOSED" else 0):
            assert breaker.state == "CLOSED"
            breaker.record_failure()
        assert breaker.state == "OPEN"

    in_step(8, 100, act, after)


def test_two_reports_at_once_for_one_trial_taken_by_hand_are_one_report() -> None:
    """The second finds no trial, or a closed circuit; it is never an error in the caller's face."""
    breakers = [half_open_soon() for _ in range(400)]
    for breaker in breakers:
        assert breaker.allow()
    in_step(4, len(breakers), lambda number, who: breakers[number].record_success(), lambda number: None)
    assert {str(breaker.state) for breaker in breakers} == {"CLOSED"}


@pytest.mark.fault("F06")
def test_reports_from_before_the_trip_never_move_an_open_circuit() -> None:
    """Eight slow calls, admitted while closed, end in every way while others open and try the circuit."""
    breakers = [CircuitBreaker(1, 10.0, ManualClock()) for _ in range(100)]
    stale: list[list[Token]] = [[breaker.admit() for _ in range(8)] for breaker in breakers]
    for breaker in breakers:
        breaker.record_failure()

    def act(number: int, who: int) -> None:
        breakers[number].settle(stale[number][who], SUCCESS if who % 2 else FAILURE)

    in_step(8, 100, act, lambda number: None)
    assert {(str(breaker.state), breaker.retry_at, breaker.failures) for breaker in breakers} == {("OPEN", 10.0, 1)}


def test_counters_are_exact_under_any_number_of_threads() -> None:
    breaker = CircuitBreaker(10, 10.0, ManualClock())

    def act(number: int, who: int) -> None:
        for _ in range(200):
            breaker.call(lambda: None)
            breaker.snapshot()

    in_step(8, 3, act, lambda number: None)
    assert (breaker.started, breaker.snapshot().started) == (4800, 4800)


def test_a_listener_sees_each_change_once_and_in_order_whoever_makes_it() -> None:
    """Threads that trip, try and reset: the one who tells is another one each time, the order is the state's."""
    breaker = CircuitBreaker(1, 0.0, ManualClock())
    told: list[Any] = []
    breaker.listen(told.append)
    in_step(8, 60, lambda number, who: drive(breaker, who), lambda number: None)
    assert told[0].old == "CLOSED"
    assert [event.old for event in told[1:]] == [event.new for event in told[:-1]]
    assert told[-1].new == breaker.state
    assert len(told) > 100


def drive(breaker: CircuitBreaker, who: int) -> None:
    for turn in range(4):
        if breaker.allow():
            breaker.record_failure() if (who + turn) % 3 else breaker.record_success()
        if who == 0 and turn == 3:
            breaker.reset()
