"""A target puts its policies in one fixed order, whoever calls and however: the breaker refuses first, is entered last."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from seawall import (
    Bulkhead,
    BulkheadFullError,
    CircuitBreaker,
    CircuitOpenError,
    RejectedError,
    StateChanged,
    Target,
)
from tests.aio import run_async
from tests.clock import ManualClock
from tests.lines import Caller, assert_at_rest, until


def made(clock: ManualClock, *, threshold: int = 1, limit: int = 1, line: int | None = 0) -> Target:
    breaker = CircuitBreaker(threshold, 10.0, clock)
    return Target("CORE", breaker=breaker, bulkhead=Bulkhead(limit, max_queue=line))


def fail() -> None:
    raise ConnectionError("no answer")


async def afail() -> None:
    fail()


def parts(target: Target) -> tuple[CircuitBreaker, Bulkhead]:
    assert target.breaker is not None
    assert target.bulkhead is not None
    return target.breaker, target.bulkhead


@contextmanager
def one_inside(limit: Bulkhead) -> Iterator[None]:
    caller = Caller(limit)
    yield
    caller.leave()


@pytest.mark.req("LIB-1")
@pytest.mark.parametrize("how", ["decorated", "call", "with", "adecorated", "acall", "async with"])
def test_each_way_to_call_goes_through_both_policies(how: str, manual_clock: ManualClock) -> None:
    target = made(manual_clock)
    breaker, limit = parts(target)

    def block() -> None:
        with target:
            fail()

    async def ablock() -> None:
        async with target:
            fail()

    ways: dict[str, Callable[[], object]] = {
        "decorated": target(fail),
        "call": lambda: target.call(fail),
        "with": block,
        "adecorated": lambda: run_async(target(afail)()),
        "acall": lambda: run_async(target.acall(afail)),
        "async with": lambda: run_async(ablock()),
    }
    with one_inside(limit), pytest.raises(BulkheadFullError, match=r"^CORE is full: 1 call running$"):
        ways[how]()
    assert (breaker.state, breaker.started, limit.started) == ("CLOSED", 0, 0)
    with pytest.raises(ConnectionError, match="no answer"):
        ways[how]()
    assert (breaker.state, breaker.started, limit.started, limit.completed) == ("OPEN", 1, 1, 1)
    with pytest.raises(CircuitOpenError, match=r"^CORE is open: .*last ConnectionError; next trial in 10 s$"):
        ways[how]()
    assert (breaker.started, limit.started, limit.rejected) == (1, 1, 1)
    assert_at_rest(limit)


def test_an_open_circuit_refuses_before_the_bulkhead_is_asked(manual_clock: ManualClock) -> None:
    target = made(manual_clock)
    _, limit = parts(target)
    with pytest.raises(ConnectionError):
        target.call(fail)
    with one_inside(limit), pytest.raises(CircuitOpenError):
        target.call(fail)
    assert limit.rejected == 0


@pytest.mark.parametrize("kind", ["thread", "task"])
def test_who_stood_in_line_while_the_circuit_opened_is_refused_and_gives_the_place_on(
    kind: str, manual_clock: ManualClock
) -> None:
    """Nobody who waits is let loose on a target that has been found dead meanwhile."""
    target = made(manual_clock, line=5)
    breaker, limit = parts(target)
    ran: list[str] = []
    refused: list[RejectedError] = []

    def call() -> None:
        try:
            target.call(ran.append, "sync")
        except RejectedError as error:
            refused.append(error)

    async def acall() -> None:
        async def body() -> None:
            ran.append("async")

        try:
            await target.acall(body)
        except RejectedError as error:
            refused.append(error)

    running = Caller(limit)
    if kind == "thread":
        threads = [threading.Thread(target=call) for _ in range(3)]
        for thread in threads:
            thread.start()
        until(lambda: limit.waiting == 3)
        breaker.record_failure("E901")
        running.leave()
        for thread in threads:
            thread.join(30)
    else:
        async def main() -> None:
            tasks = [asyncio.create_task(acall()) for _ in range(3)]
            while limit.waiting < 3:
                await asyncio.sleep(0)
            breaker.record_failure("E901")
            running.leave()
            await asyncio.gather(*tasks)

        run_async(main())
    assert ran == []
    assert [type(error) for error in refused] == [CircuitOpenError] * 3
    assert limit.started == 0
    assert_at_rest(limit)


def test_only_one_of_many_in_line_gets_the_trial_and_a_waiting_call_holds_none(manual_clock: ManualClock) -> None:
    target = made(manual_clock, line=5)
    breaker, limit = parts(target)
    with pytest.raises(ConnectionError):
        target.call(fail)
    manual_clock.advance(10.0)
    states: list[str] = []

    async def body() -> None:
        states.append(breaker.state)
        await asyncio.sleep(0)

    async def main() -> None:
        running = Caller(limit)
        tasks = [asyncio.create_task(target.acall(body)) for _ in range(3)]
        while limit.waiting < 3:
            await asyncio.sleep(0)
        assert (breaker.state, breaker.snapshot().trials) == ("OPEN", 0)
        running.leave()
        await asyncio.gather(*tasks)

    run_async(main())
    assert states == ["HALF_OPEN", "CLOSED", "CLOSED"]
    assert_at_rest(limit)


def test_a_policy_without_a_name_takes_the_targets_and_one_with_a_name_keeps_it() -> None:
    target = Target("CORE", breaker=CircuitBreaker(name="ledger"), bulkhead=Bulkhead())
    breaker, limit = parts(target)
    assert (target.name, breaker.name, limit.name) == ("CORE", "ledger", "CORE")


def test_either_policy_may_be_missing(manual_clock: ManualClock) -> None:
    bare = Target("BARE")
    assert bare.call(divmod, 7, 2) == (3, 1)
    assert (bare.snapshot().breaker, bare.snapshot().bulkhead) == (None, None)
    assert repr(bare) == "<Target BARE >"
    bare.listen(print)()
    only_breaker = Target("B", breaker=CircuitBreaker(1, clock=manual_clock))
    with pytest.raises(ConnectionError):
        only_breaker.call(fail)
    with pytest.raises(CircuitOpenError):
        only_breaker.call(fail)
    only_bulkhead = Target("L", bulkhead=Bulkhead(1))
    with only_bulkhead, pytest.raises(BulkheadFullError):
        only_bulkhead.call(fail)


def test_the_snapshot_shows_both_policies_and_changes_nothing(manual_clock: ManualClock) -> None:
    target = made(manual_clock, threshold=3)
    with pytest.raises(ConnectionError):
        target.call(fail)
    first = target.snapshot()
    assert first == target.snapshot()
    assert first.breaker is not None
    assert first.bulkhead is not None
    assert (first.name, first.breaker.failures, first.bulkhead.completed) == ("CORE", 1, 1)
    assert repr(target) == "<Target CORE CLOSED>"


def test_a_listener_is_told_each_change_until_it_is_removed(manual_clock: ManualClock) -> None:
    target = made(manual_clock)
    told: list[object] = []
    remove = target.listen(told.append)
    with pytest.raises(ConnectionError):
        target.call(fail)
    [event] = told
    assert isinstance(event, StateChanged)
    assert (event.target, event.old, event.new, event.at, event.retry_at) == ("CORE", "CLOSED", "OPEN", 0.0, 10.0)
    remove()
    manual_clock.advance(10.0)
    target.call(int)
    assert len(told) == 1


@pytest.mark.parametrize("name", ["", None, 7, fail])
def test_a_target_without_a_name_says_what_to_write(name: object) -> None:
    with pytest.raises(TypeError, match=r"core = Target\('CORE'\)  and then  @core"):
        Target(name)  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize(("settings", "words"), [
    ({"breaker": CircuitBreaker}, r"breaker= takes a CircuitBreaker, made by CircuitBreaker\(\.\.\.\), not <class"),
    ({"bulkhead": 10}, r"bulkhead= takes a Bulkhead, made by Bulkhead\(\.\.\.\), not 10"),
    ({"breaker": Bulkhead(1)}, r"breaker= takes a CircuitBreaker"),
    ({"bulkhead": CircuitBreaker(1)}, r"bulkhead= takes a Bulkhead"),
])
def test_something_else_in_a_policys_place_is_refused_at_once(settings: dict[str, object], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        Target("CORE", **settings)  # type: ignore[arg-type]  # that is the point
