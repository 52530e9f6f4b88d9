"""F50: eight threads drive transitions: what is told starts where the one before ended, each change exactly once.

tests/policies/test_breaker_threads.py does it with resets as well; here the lines are written by a slow listener.
"""

from __future__ import annotations

import time

import pytest

from seawall import CircuitBreaker
from seawall.events import Event
from tests.clock import ManualClock
from tests.policies.crowd import in_step
from tests.policies.test_breaker_threads import drive


@pytest.mark.fault("F50")
@pytest.mark.usefixtures("fast_switching")
def test_each_from_is_the_previous_to() -> None:
    breaker = CircuitBreaker(1, 0.0, ManualClock(), name="CORE")
    lines: list[str] = []

    def log(event: Event) -> None:
        time.sleep(0)  # where another thread may overtake
        lines.append(f"{event.old}->{event.new}")

    breaker.listen(log)
    in_step(8, 60, lambda number, who: drive(breaker, who), lambda number: None)
    ends = [line.split("->") for line in lines]
    assert ends[0][0] == "CLOSED"
    assert [old for old, _ in ends[1:]] == [new for _, new in ends[:-1]]
    assert ends[-1][1] == breaker.state
    assert lines.count("CLOSED->OPEN") + lines.count("HALF_OPEN->OPEN") == breaker.snapshot().opened > 50
