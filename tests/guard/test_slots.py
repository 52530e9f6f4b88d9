"""The slot of a guarded call goes to the head of the line at its end, however it ends, and nobody overtakes the line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from seawall import Bulkhead, BulkheadFullError, CircuitBreaker, Target
from seawall.guard import plain
from seawall.guard.kinds import Kind
from seawall.policies.slots import USED
from tests.guard.both import Form, driven, every_form, every_kind, of_kind, without_a_loop
from tests.lines import Caller, assert_at_rest

pytestmark = pytest.mark.req("LIB-1")


@pytest.fixture
def limit() -> Bulkhead:
    return Bulkhead(1, max_queue=1, max_wait=0.0)


@pytest.fixture(params=["bulkhead", "target"])
def stack(request: pytest.FixtureRequest, limit: Bulkhead) -> Any:
    return limit if request.param == "bulkhead" else Target("CORE", breaker=CircuitBreaker(5), bulkhead=limit)


def assert_handed_on(waiting: Caller, limit: Bulkhead) -> None:
    assert (waiting.woken, limit.in_flight, limit.alert) == (1, 1, [])
    waiting.claim()
    waiting.leave()
    assert_at_rest(limit)


@every_form
@every_kind
@pytest.mark.parametrize("error", [None, ConnectionError, KeyboardInterrupt])
def test_who_came_during_a_call_gets_its_slot(
    form: Form, kind: Kind, error: type[BaseException] | None, stack: Any, limit: Bulkhead
) -> None:
    waiting: list[Caller] = []

    def act() -> None:
        waiting.append(Caller(limit))
        assert waiting[0].in_line
        if error is not None:
            raise error

    guarded = form(stack, of_kind(kind, act))
    if error is None:
        driven(kind, guarded())
    else:
        with pytest.raises(error):
            driven(kind, guarded())
    assert_handed_on(waiting[0], limit)


@every_form
@pytest.mark.parametrize("closed", [True, False])
def test_who_came_before_a_generator_was_closed_or_dropped_gets_its_slot(
    form: Form, closed: bool, stack: Any, limit: Bulkhead
) -> None:
    def items() -> Iterator[int]:
        yield 1

    stream: Any = form(stack, items)()
    assert next(stream) == 1
    waiting = Caller(limit)
    if closed:
        stream.close()
    del stream
    assert_handed_on(waiting, limit)


@every_form
def test_who_came_before_an_async_generator_was_closed_gets_its_slot(form: Form, stack: Any, limit: Bulkhead) -> None:
    async def items() -> AsyncIterator[int]:
        yield 1

    stream: Any = form(stack, items)()
    assert without_a_loop(anext(stream)) == 1
    waiting = Caller(limit)
    without_a_loop(stream.aclose())
    assert_handed_on(waiting, limit)


@every_form
@pytest.mark.parametrize("kind", [Kind.FUNCTION, Kind.GENERATOR], ids=lambda kind: kind.value)
def test_a_newcomer_does_not_take_the_slot_that_came_back_for_the_line(
    form: Form, kind: Kind, stack: Any, limit: Bulkhead
) -> None:
    running, waiting = Caller(limit), Caller(limit)
    assert running.held is not None
    running.held.append(USED)  # and has not looked yet whether anybody waits
    with pytest.raises(BulkheadFullError):
        driven(kind, form(stack, of_kind(kind, lambda: None))())
    assert_handed_on(waiting, limit)


def at_the_end_of_the_stack(act: Callable[[], object]) -> int:
    """``act()`` on each of the last levels of the stack, where it may find no room; returns how many are still to come."""
    try:
        left = at_the_end_of_the_stack(act)
    except RecursionError:
        left = 20
    if left:
        with suppress(RecursionError):
            act()
    return max(0, left - 1)


def new(function: Any) -> None:
    """Give it code that has never run: from the 8th run on the interpreter has short cuts that need no stack."""
    function.__code__ = function.__code__.replace()


@every_form
@every_kind
@pytest.mark.filterwarnings("ignore:.*was never awaited:RuntimeWarning")  # no room between a coroutine and its await
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_slot_is_lost_where_the_stack_ends(form: Form, kind: Kind, stack: Any, limit: Bulkhead) -> None:
    guarded: Any = form(stack, of_kind(kind, lambda: None))
    ends: set[str] = set()

    def act() -> None:
        for function in (guarded, plain.run_function, plain.run_coroutine, plain.run_generator):
            new(function)
        end = "no room"
        try:
            driven(kind, guarded())
            end = "well"
        finally:
            ends.add(f"{end}, {limit.in_flight} lost")
            if limit.in_flight:
                limit.free.append(USED)

    at_the_end_of_the_stack(act)
    assert ends == {"no room, 0 lost", "well, 0 lost"}
    assert_at_rest(limit)
