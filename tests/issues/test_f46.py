"""F46: a target that hangs opens the circuit although every caller leaves early; impatience with a healthy one does not.

tests/policies/test_breaker_cuts.py has the rules.
"""

from __future__ import annotations

import asyncio

import pytest

from seawall import CircuitBreaker, CircuitOpenError, DeadlineExceededError
from tests.aio import run_async
from tests.clock import ManualClock

pytestmark = pytest.mark.fault("F46")


async def cancelled_call(breaker: CircuitBreaker) -> None:
    """A caller that leaves as soon as the call is under way."""
    task = asyncio.ensure_future(breaker.acall(asyncio.Event().wait))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_cancelled_callers_of_a_hung_target_open_it(manual_clock: ManualClock) -> None:
    breaker = CircuitBreaker(5, 10.0, manual_clock, attempt_limit=2.0)

    async def main() -> None:
        for _ in range(4):
            await cancelled_call(breaker)
            manual_clock.advance(1.0)
        assert breaker.state == "CLOSED"
        await cancelled_call(breaker)
        with pytest.raises(CircuitOpenError, match="no answer for 4 s, 5 calls in a row cut by their callers"):
            await breaker.acall(asyncio.sleep, 0)

    run_async(main())
    assert breaker.started == 5


def test_calls_whose_budget_ends_open_a_hung_target(manual_clock: ManualClock) -> None:
    breaker = CircuitBreaker(3, 10.0, manual_clock)

    def call() -> None:
        raise DeadlineExceededError("the caller's 0.1 s are spent")

    for _ in range(200):
        with pytest.raises(DeadlineExceededError):
            breaker.call(call)
        manual_clock.advance(0.1)
        if manual_clock() > 10:
            break
    with pytest.raises(DeadlineExceededError):
        breaker.call(call)
    assert breaker.state == "OPEN"


def test_impatient_callers_of_a_target_that_answers_others_count_for_nothing(manual_clock: ManualClock) -> None:
    breaker = CircuitBreaker(5, 10.0, manual_clock, attempt_limit=2.0)

    async def main() -> None:
        for _ in range(100):
            for _ in range(4):
                await cancelled_call(breaker)
            await breaker.acall(asyncio.sleep, 0)
            manual_clock.advance(5.0)
        for _ in range(50):  # nor does a sudden crowd of them
            await cancelled_call(breaker)

    run_async(main())
    assert (breaker.state, breaker.failures) == ("CLOSED", 0)
