"""Errors say the target, the number that decided and when to come back; each is fresh, hashable and picklable."""

from __future__ import annotations

import pickle

import pytest

import seawall
from seawall import errors
from seawall.errors import (
    BulkheadFullError,
    CircuitBreakerError,
    CircuitOpenError,
    ConfigError,
    DeadlineExceededError,
    NoBudgetError,
    NoThreadError,
    RejectedError,
    SeawallError,
)
from tests.clock import ManualClock
from tests.policies.play import opened

REFUSALS = [CircuitOpenError, BulkheadFullError, NoBudgetError, NoThreadError]


def test_the_family() -> None:
    assert issubclass(RejectedError, SeawallError)
    assert all(issubclass(kind, RejectedError) for kind in REFUSALS)
    assert CircuitBreakerError is CircuitOpenError
    assert issubclass(DeadlineExceededError, (SeawallError, TimeoutError))
    assert issubclass(DeadlineExceededError, TimeoutError)
    assert not issubclass(DeadlineExceededError, RejectedError)  # it ran
    assert issubclass(ConfigError, ValueError)
    assert all(getattr(seawall, name) is getattr(errors, name) for name in errors.__all__)


@pytest.mark.req("LIB-4", "TRACE-4")
@pytest.mark.parametrize(("error", "message"), [
    (CircuitOpenError("CORE", "is open: 5 failures in a row, last E901", "OPEN", 7.21),
     "CORE is open: 5 failures in a row, last E901; next trial in 7.21 s"),
    (CircuitOpenError("", "is open: 5 failures in a row", "OPEN", 10.0),
     "the target is open: 5 failures in a row; next trial in 10 s"),
    (CircuitOpenError("CORE", "is forced open by hand", "OPEN", None), "CORE is forced open by hand"),
    (BulkheadFullError("CLAIM", "is full: 10 calls running", "", None), "CLAIM is full: 10 calls running"),
    (BulkheadFullError("CLAIM", "has 3 waiting", "", 0.25), "CLAIM has 3 waiting; try again in 0.25 s"),
    (NoBudgetError("CORE", "needs 20 ms, and 3 ms are left", "", None), "CORE needs 20 ms, and 3 ms are left"),
    (NoThreadError("CORE", "was not called: 32 calls run", "", None), "CORE was not called: 32 calls run"),
])
def test_messages(error: RejectedError, message: str) -> None:
    assert str(error) == message
    assert str(pickle.loads(pickle.dumps(error))) == message


@pytest.mark.parametrize(("left", "text"), [
    (0.0, "0 s"), (0.00123, "0.00123 s"), (7.2, "7.2 s"), (59.96, "60 s"), (999.4, "999 s"), (999.6, "1000 s"),
    (3600, "3600 s"), (86399.6, "86400 s"),
])
def test_durations_are_written_for_people(left: float, text: str) -> None:
    assert str(CircuitOpenError("CORE", "is open", "OPEN", left)) == f"CORE is open; next trial in {text}"


@pytest.mark.req("LIB-4")
@pytest.mark.parametrize("kind", [RejectedError, *REFUSALS])
def test_attributes(kind: type[RejectedError]) -> None:
    error = kind("CORE", "is open", "OPEN", 7.25)
    assert (error.target, error.reason, error.state, error.retry_after) == ("CORE", "is open", "OPEN", 7.25)
    bare = kind()
    assert (bare.target, bare.reason, bare.state, bare.retry_after) == ("", "", "", None)
    assert str(bare).startswith("the target")


@pytest.mark.fault("F10")
@pytest.mark.parametrize("kind", [getattr(errors, name) for name in errors.__all__])
def test_every_error_is_hashable_and_equal_only_to_itself(kind: type[SeawallError]) -> None:
    one, other = kind("CORE"), kind("CORE")
    assert one != other
    assert len({one, other}) == 2


@pytest.mark.req("LIB-4", "TRACE-4")
def test_a_refusal_says_how_long_to_wait_at_each_moment(manual_clock: ManualClock) -> None:
    breaker = opened(manual_clock, failure_threshold=1, reset_timeout=7.5, name="CORE")
    for now, left in [(0.0, 7.5), (5.0, 2.5), (7.25, 0.25)]:
        manual_clock.set(now)
        with pytest.raises(CircuitOpenError) as caught:
            breaker.call(lambda: None)
        assert (caught.value.target, caught.value.state, caught.value.retry_after) == ("CORE", "OPEN", left)
