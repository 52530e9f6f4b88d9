"""F51: a call with the wrong arguments never ran, so it is not the target's failure; a ``TypeError`` out of it is."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from seawall import CircuitBreaker
from tests.aio import run_async
from tests.clock import ManualClock
from tests.guard.both import FORMS, Form, every_form
from tests.policies.play import opened

pytestmark = pytest.mark.fault("F51")


def one(argument: int) -> None:
    raise TypeError(argument)


async def aone(argument: int) -> None:
    raise TypeError(argument)


def items(argument: int) -> Iterator[int]:
    yield argument
    raise TypeError


async def aitems(argument: int) -> AsyncIterator[int]:
    yield argument
    raise TypeError


class Client:
    def one(self, argument: int) -> None:
        raise TypeError(argument)

    async def aone(self, argument: int) -> None:
        raise TypeError(argument)

    def __call__(self, argument: int) -> None:
        raise TypeError(argument)


class AsyncClient:
    async def __call__(self, argument: int) -> None:
        raise TypeError(argument)


async def drain(stream: AsyncIterator[int]) -> None:
    async for _ in stream:
        pass


def drive(value: Any) -> None:
    if hasattr(value, "__aiter__"):
        run_async(drain(value))
    elif hasattr(value, "__await__"):
        run_async(value)
    elif value is not None:
        list(value)


SUBJECTS = [one, aone, items, aitems, Client().one, Client().aone, Client(), AsyncClient(), functools.partial(one),
            functools.partial(Client().aone)]


@pytest.mark.parametrize("form", [*FORMS, "call"])
@pytest.mark.parametrize("fn", SUBJECTS)
def test_wrong_arguments_do_not_count_and_a_type_error_out_of_it_does(fn: Callable[..., Any], form: str) -> None:
    breaker = CircuitBreaker(5)
    call = functools.partial(breaker.call, fn) if form == "call" else FORMS[form](breaker, fn)
    for wrong in ((), (1, 2)):
        with pytest.raises(TypeError, match="argument"):
            drive(call(*wrong))
    with pytest.raises(TypeError, match="argument"):
        drive(call(1, no_such=2))
    assert breaker.failures == 0
    with pytest.raises(TypeError):
        drive(call(1))
    assert breaker.failures == 1


@every_form
def test_they_neither_forget_failures_nor_decide_a_trial(manual_clock: ManualClock, form: Form) -> None:
    breaker = opened(manual_clock, failure_threshold=2)
    guarded = form(breaker, one)
    manual_clock.set(10)
    with pytest.raises(TypeError):
        guarded()  # type: ignore[call-arg]  # the mistake under test
    assert (breaker.snapshot().trials, breaker.failures) == (0, 2)
    breaker.call(lambda: None)
    breaker.record_failure()
    with pytest.raises(TypeError):
        guarded(1, 2)  # type: ignore[call-arg]  # the mistake under test
    assert breaker.failures == 1
