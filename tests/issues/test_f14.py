"""F14: only the injected clock matters, by default the monotonic one: moving the wall clock changes nothing."""

from __future__ import annotations

import inspect
import time

import pytest

from seawall import CircuitBreaker, CircuitOpenError
from tests.clock import ManualClock


def forbidden(*args: object) -> float:
    raise AssertionError("read a clock that was not injected")


@pytest.mark.fault("F14")
@pytest.mark.req("HUB-1", "HUB-9")
def test_no_other_clock_is_ever_read(manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every clock of the time module is taken away; cut calls, leases and modes are driven as well."""
    breaker = CircuitBreaker(1, 10.0, manual_clock, trial_lease=5.0)
    with monkeypatch.context() as patch:
        for name in ("time", "monotonic", "perf_counter", "time_ns", "monotonic_ns", "perf_counter_ns", "process_time"):
            patch.setattr(time, name, forbidden)
        seen = [breaker.allow()]
        breaker.record_failure()
        seen.append(breaker.allow())
        manual_clock.set(10)
        seen += [breaker.allow(), breaker.allow()]
        manual_clock.set(15)
        seen.append(breaker.allow())
        breaker.set_mode("OBSERVE", expires_in=3)
        breaker.call(lambda: None)
        manual_clock.set(25)
        breaker.call(lambda: None)
        retry_after = breaker.snapshot().retry_after
    assert seen == [True, False, True, False, False]
    assert (breaker.state, retry_after) == ("CLOSED", 0.0)


@pytest.mark.fault("F14")
@pytest.mark.parametrize("hours", [-1, 1])
def test_an_hours_change_of_the_wall_clock_is_not_noticed(
    hours: int, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaker = CircuitBreaker(1, 10.0, manual_clock)
    breaker.record_failure()
    real = time.time
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: real() + 3600 * hours)
        manual_clock.set(9.9)
        with pytest.raises(CircuitOpenError, match=r"next trial in 0\.1 s"):
            breaker.check()
        manual_clock.set(10)
        assert breaker.allow() is True


@pytest.mark.fault("F14")
def test_the_clock_by_default_is_the_monotonic_one() -> None:
    assert inspect.signature(CircuitBreaker).parameters["clock"].default is time.monotonic
