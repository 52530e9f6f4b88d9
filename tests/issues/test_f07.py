"""F07: a block is admitted like a call: while open it does not run, and so cannot close the circuit."""

from __future__ import annotations

import pytest

from seawall import CircuitOpenError
from tests.aio import run_async
from tests.clock import ManualClock
from tests.policies.play import opened

pytestmark = pytest.mark.fault("F07")


def test_with_while_open(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock)
    with pytest.raises(CircuitOpenError), breaker:
        pytest.fail("the block must not run")
    assert breaker.state == "OPEN"


def test_async_with_while_open(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock)

    async def main() -> None:
        async with breaker:
            pytest.fail("the block must not run")

    with pytest.raises(CircuitOpenError):
        run_async(main())
    assert breaker.state == "OPEN"


def test_with_beside_a_trial(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock)
    manual_clock.set(10)
    with breaker:
        with pytest.raises(CircuitOpenError), breaker:
            pytest.fail("one trial at a time")
    assert breaker.state == "CLOSED"
