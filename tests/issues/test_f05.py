"""F05: a trial that never returns costs one lease, not the breaker; what it says later is void.

tests/policies/test_breaker_lease.py has the rules of the lease.
"""

from __future__ import annotations

import threading

import pytest

from seawall import CircuitOpenError
from tests.clock import ManualClock
from tests.policies.play import opened


@pytest.mark.fault("F05")
@pytest.mark.parametrize("late", ["success", "failure"])
def test_others_go_on_and_the_late_word_moves_nothing(late: str, manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock, failure_threshold=1, reset_timeout=10.0, trial_lease=5.0)
    manual_clock.set(10)
    inside, leave = threading.Event(), threading.Event()

    def hang() -> None:
        inside.set()
        leave.wait(30)
        if late == "failure":
            raise ConnectionError

    def run() -> None:
        try:
            breaker.call(hang)
        except ConnectionError:
            pass

    thread = threading.Thread(target=run)
    thread.start()
    assert inside.wait(30)
    for now in (10, 14.9, 15, 24.9):
        manual_clock.set(now)
        with pytest.raises(CircuitOpenError):
            breaker.call(lambda: None)
    manual_clock.set(25)
    breaker.call(lambda: None)
    assert breaker.state == "CLOSED"
    leave.set()
    thread.join(30)
    assert (breaker.state, breaker.failures) == ("CLOSED", 0)
