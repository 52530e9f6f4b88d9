"""F08: a consumer that takes one item from a guarded generator and closes it is content; that is no failure."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from seawall import CircuitBreaker
from tests.aio import run_async
from tests.clock import ManualClock
from tests.guard.both import Form, every_form
from tests.policies.play import opened

pytestmark = pytest.mark.fault("F08")


def items() -> Iterator[int]:
    yield from range(10)


async def aitems() -> AsyncIterator[int]:
    for i in range(10):
        yield i


@every_form
def test_a_generator(form: Form) -> None:
    breaker = CircuitBreaker(1)
    for _ in range(3):
        for item in form(breaker, items)():
            assert item == 0
            break
    assert (breaker.state, breaker.started) == ("CLOSED", 3)


@every_form
def test_an_async_generator(form: Form) -> None:
    breaker = CircuitBreaker(1)

    async def main() -> None:
        stream = form(breaker, aitems)()
        async for item in stream:
            assert item == 0
            break
        await stream.aclose()  # type: ignore[attr-defined]  # typed as an iterator, and is a generator

    run_async(main())
    assert (breaker.state, breaker.started, breaker.failures) == ("CLOSED", 1, 0)


@every_form
def test_a_trial_that_gave_one_item_closes_the_circuit(form: Form, manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock)
    manual_clock.set(10)
    stream = form(breaker, items)()
    assert next(stream) == 0
    assert breaker.state == "HALF_OPEN"
    del stream
    assert breaker.state == "CLOSED"
