"""F12: a predicate that raises: the failure counts, its own error is logged, the user's error reaches the caller."""

from __future__ import annotations

import logging

import pytest

from seawall import CircuitBreaker, on_result
from tests.clock import ManualClock
from tests.policies.play import opened

pytestmark = pytest.mark.fault("F12")


def broken(value: object) -> bool:
    raise LookupError("the predicate's own fault")


def call() -> None:
    raise ConnectionError("down")


def test_on_the_error(caplog: pytest.LogCaptureFixture) -> None:
    breaker = CircuitBreaker(1, counts_as_failure=broken)
    with pytest.raises(ConnectionError, match="down") as caught:
        breaker.call(call)
    assert breaker.state == "OPEN"
    assert caught.value.__context__ is None
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("seawall", logging.ERROR)
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], LookupError)


def test_on_the_result(caplog: pytest.LogCaptureFixture) -> None:
    breaker = CircuitBreaker(1, counts_as_failure=on_result(broken))
    assert breaker.call(lambda: 7) == 7
    assert (breaker.state, len(caplog.records)) == ("OPEN", 1)


def test_among_those_that_ignore(caplog: pytest.LogCaptureFixture) -> None:
    breaker = CircuitBreaker(1, ignores=broken)
    with pytest.raises(ConnectionError):
        breaker.call(call)
    assert (breaker.state, len(caplog.records)) == ("OPEN", 1)


@pytest.mark.usefixtures("caplog")
def test_in_a_trial_it_keeps_no_place(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock, failure_threshold=1, counts_as_failure=broken)
    manual_clock.set(10)
    with pytest.raises(ConnectionError):
        breaker.call(call)
    assert (breaker.state, breaker.retry_at, breaker.snapshot().trials) == ("OPEN", 20, 0)
