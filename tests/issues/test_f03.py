"""F03: when the open time ends, of all who ask at that instant exactly the permitted trials run, and the rest is refused.

tests/policies/test_breaker_threads.py repeats this some thousand times, for each form and for tasks.
"""

from __future__ import annotations

import threading

import pytest

from tests.policies.crowd import Rush, in_step
from tests.policies.test_breaker_threads import half_open_soon


@pytest.mark.fault("F03")
@pytest.mark.usefixtures("fast_switching")
@pytest.mark.parametrize(("callers", "permits"), [(20, 1), (50, 3)])
def test_exactly_the_permits_run(callers: int, permits: int) -> None:
    breakers = [half_open_soon(permits) for _ in range(20)]
    rushes = [Rush(callers, threading.Event) for _ in breakers]
    in_step(callers, len(breakers), lambda number, who: rushes[number].enter(rushes[number].by_decorator, breakers[number]),
            lambda number: None)
    assert {(len(rush.ran), len(rush.refused)) for rush in rushes} == {(permits, callers - permits)}
    assert {str(breaker.state) for breaker in breakers} == {"CLOSED"}
