"""F01: calls through one closed breaker run side by side: nothing of the breaker's is held around the user's function."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from seawall import CircuitBreaker


@pytest.mark.fault("F01")
def test_four_calls_are_inside_at_once() -> None:
    """Each waits inside for the other three; one after another they would never meet."""
    breaker = CircuitBreaker()
    meeting = threading.Barrier(4)

    @breaker
    def call() -> int:
        return meeting.wait(30)

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(lambda _: call(), range(4))) == [0, 1, 2, 3]


@pytest.mark.fault("F01")
def test_failures_are_reported_while_others_are_inside() -> None:
    breaker = CircuitBreaker(2)
    inside, leave = threading.Event(), threading.Event()

    def hang() -> None:
        inside.set()
        leave.wait(30)

    with ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(breaker.call, hang)
        assert inside.wait(30)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                breaker.call(lambda: 1 // 0)
        assert (breaker.state, hanging.done()) == ("OPEN", False)
        leave.set()
        hanging.result(30)
    assert breaker.state == "OPEN"
