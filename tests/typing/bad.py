"""Calls that must not check. Never run; read by mypy, which also reports each ``ignore`` that would not be needed."""

from __future__ import annotations

from seawall import CircuitBreaker, ModeChanged, State, StateChanged, Target, Timeout

breaker = CircuitBreaker()
core = Target("CORE", breaker=breaker)
two_seconds = Timeout(2.0)

CircuitBreaker("5")  # type: ignore[arg-type]
CircuitBreaker(5, "10s")  # type: ignore[arg-type]
CircuitBreaker(5, 10.0, 0.0)  # type: ignore[arg-type]
CircuitBreaker(5, 10.0, lambda: 0.0, "CORE")  # type: ignore[arg-type, call-arg]
CircuitBreaker(treshold=5)  # type: ignore[call-arg]
CircuitBreaker(counts_as_failure=int)  # type: ignore[arg-type]
CircuitBreaker(counts_as_failure="ConnectionError")  # type: ignore[arg-type]
CircuitBreaker(ignores=[7])  # type: ignore[list-item]
Target("CORE", CircuitBreaker())  # type: ignore[call-arg]


@breaker
def transfer(amount: int, /, to: str) -> float:
    return float(amount)


@core
async def atransfer(amount: int) -> str:
    return str(amount)


@two_seconds
def limited(amount: int) -> float:
    return float(amount)


transfer()  # type: ignore[call-arg]
transfer("3", to="x")  # type: ignore[arg-type]
transfer(amount=3, to="x")  # type: ignore[call-arg]
transfer(3, to="x").upper()  # type: ignore[attr-defined]
breaker.call(transfer, 3)  # type: ignore[call-arg]
breaker.call(transfer, 3, "x", fast=True)  # type: ignore[call-arg]
breaker.call(transfer, "3", "x")  # type: ignore[arg-type]
breaker.call(3)  # type: ignore[arg-type]
breaker(3)  # type: ignore[type-var]
Timeout("2")  # type: ignore[arg-type]
Timeout(2.0, "CORE")  # type: ignore[call-arg]
two_seconds(3)  # type: ignore[type-var]
limited("3")  # type: ignore[arg-type]
limited(3).upper()  # type: ignore[attr-defined]
two_seconds.call(limited, "3")  # type: ignore[arg-type]
two_seconds.call(limited, 3).upper()  # type: ignore[attr-defined]
two_seconds.abandoned = 0  # type: ignore[misc]
breaker.state = State.OPEN + 1  # type: ignore[operator]
breaker.failures = 0  # type: ignore[misc]
print(core.breaker.state)  # type: ignore[union-attr]


async def tasks() -> None:
    atransfer(1).upper()  # type: ignore[attr-defined]
    await core.acall(transfer, 3, "x")  # type: ignore[arg-type]
    await core.acall(atransfer, "1")  # type: ignore[arg-type]


def in_a_thread() -> None:
    with two_seconds:  # type: ignore[attr-defined]
        pass


def listener(event: int) -> None: ...


breaker.listen(listener)  # type: ignore[arg-type]


def either(event: StateChanged | ModeChanged) -> float:
    return event.retry_at  # type: ignore[union-attr]
