"""Plays a table of ``(time, call, expected)`` to a breaker: one row a line, read from top to bottom."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from seawall import CircuitBreaker, CircuitOpenError
from seawall.outcome import Outcome
from tests.clock import ManualClock

Row: TypeAlias = "tuple[float, str, Any]"


class BreakerError(Exception):
    """What a failing call raises."""


def fail() -> None:
    """A call that fails."""
    raise BreakerError


def ok() -> None:
    """A call that works."""


def allowed(breaker: CircuitBreaker) -> bool:
    return breaker.allow()


def called(breaker: CircuitBreaker, fn: Callable[[], object]) -> str:
    """One call through the guard: how it ended, and the state after it."""
    try:
        breaker.call(fn)
    except BreakerError:
        return f"failure {breaker.state}"
    except CircuitOpenError:
        return f"refused {breaker.state}"
    return f"success {breaker.state}"


def reported(breaker: CircuitBreaker, report: Callable[[], None]) -> str:
    report()
    return str(breaker.state)


CALLS: dict[str, Callable[[CircuitBreaker], object]] = {
    "allow": allowed,
    "record_success": lambda b: reported(b, b.record_success),
    "record_failure": lambda b: reported(b, b.record_failure),
    "ok": lambda b: called(b, ok),
    "fail": lambda b: called(b, fail),
    "state": lambda b: str(b.state),
    "failures": lambda b: b.failures,
    "retry_at": lambda b: b.retry_at,
    "retry_after": lambda b: b.retry_after,
    "trial_due": lambda b: b.snapshot().trial_due,
    "trials": lambda b: b.snapshot().trials,
    "rejected": lambda b: b.rejected,
    "reset": lambda b: reported(b, b.reset),
}


def play(breaker: CircuitBreaker, table: Iterable[Row]) -> None:
    """Set the clock, make the call, compare; the row that differs is named."""
    clock = breaker.clock
    assert isinstance(clock, ManualClock)
    for at, call, expected in table:
        clock.set(at)
        assert (at, call, CALLS[call](breaker)) == (at, call, expected)


def opened(clock: ManualClock, **settings: Any) -> CircuitBreaker:
    """A breaker that was opened at the clock's time by ``failure_threshold`` failures."""
    breaker = CircuitBreaker(clock=clock, **settings)
    for _ in range(breaker.failure_threshold):
        breaker.settle(breaker.admit(), Outcome.FAILURE)
    assert breaker.state == "OPEN"
    return breaker
