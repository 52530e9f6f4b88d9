"""The rivals' circuit breakers: how each is put around a function, and in which rows it takes part."""

from __future__ import annotations

import datetime
import inspect
import itertools
from functools import partial

from peers import rows
from peers.rows import BIG, HOUR, Fn, add

_numbers = itertools.count()


def pybreaker(fn: Fn, threshold: int = BIG, recovery: float = HOUR, need: int = 1) -> Fn:
    import pybreaker as p
    return p.CircuitBreaker(fail_max=threshold, reset_timeout=recovery, success_threshold=need)(fn)


def circuitbreaker(fn: Fn, threshold: int = BIG, recovery: float = HOUR) -> Fn:
    import circuitbreaker as p
    name = f"c{next(_numbers)}"  # it keeps a register by name
    return p.CircuitBreaker(failure_threshold=threshold, recovery_timeout=recovery, name=name)(fn)


def aiobreaker(fn: Fn, threshold: int = BIG, recovery: float = HOUR) -> Fn:
    import aiobreaker as p
    return p.CircuitBreaker(fail_max=threshold, timeout_duration=datetime.timedelta(seconds=recovery))(fn)


def purgatory(fn: Fn, threshold: int = BIG, recovery: float = HOUR) -> Fn:
    import purgatory as p
    kind = p.AsyncCircuitBreakerFactory if inspect.iscoroutinefunction(fn) else p.SyncCircuitBreakerFactory
    return kind(default_threshold=threshold, default_ttl=recovery)("c")(fn)


def hyx(fn: Fn, threshold: int = BIG, recovery: float = HOUR, need: int = 1) -> Fn:
    from hyx.circuitbreaker import consecutive_breaker
    return consecutive_breaker(failure_threshold=threshold, recovery_time_secs=recovery, recovery_threshold=need)(fn)


def pyresilience(fn: Fn, threshold: int = BIG, recovery: float = HOUR, need: int = 1) -> Fn:
    import pyresilience as p
    config = p.CircuitBreakerConfig(failure_threshold=threshold, recovery_timeout=recovery, success_threshold=need)
    return p.resilient(circuit_breaker=config)(fn)


SYNC = {"pybreaker": pybreaker, "circuitbreaker": circuitbreaker, "aiobreaker": aiobreaker, "purgatory": purgatory,
        "pyresilience": pyresilience}
ASYNC = {"circuitbreaker": circuitbreaker, "aiobreaker": aiobreaker, "purgatory": purgatory, "hyx": hyx,
         "pyresilience": pyresilience}
# circuitbreaker and aiobreaker take 0 for "not given", and purgatory wants more than its time to have passed.
AT_ONCE = {"circuitbreaker": 1e-9, "aiobreaker": 1e-6, "purgatory": -1.0}
HELD_HALF_OPEN = {"pybreaker": pybreaker, "pyresilience": pyresilience}  # those that can ask for many good trials
AHELD_HALF_OPEN = {"hyx": hyx, "pyresilience": pyresilience}


def register() -> None:
    """Let the rivals take part."""
    for name, breaker in SYNC.items():
        add("breaker_closed", name, partial(breaker, rows.noop))
        add("breaker_failure", name, partial(breaker, rows.fail))
        add("breaker_open", name, lambda b=breaker: rows.after_failure(b(rows.fail, threshold=1)))
        add("breaker_cycle", name, partial(breaker, rows.flip, threshold=1, recovery=AT_ONCE.get(name, 0.0)))
    for name, breaker in ASYNC.items():
        add("abreaker_closed", name, partial(breaker, rows.anoop))
        add("abreaker_failure", name, partial(breaker, rows.afail))
        add("abreaker_open", name, lambda b=breaker: rows.aafter_failure(b(rows.afail, threshold=1)))
        add("abreaker_cycle", name, partial(breaker, rows.aflip, threshold=1, recovery=AT_ONCE.get(name, 0.0)))
    for name, breaker in HELD_HALF_OPEN.items():
        add("breaker_halfopen", name, partial(rows.half_open, partial(breaker, threshold=1, recovery=0.0, need=BIG)))
    for name, breaker in AHELD_HALF_OPEN.items():
        add("abreaker_halfopen", name, partial(rows.ahalf_open, partial(breaker, threshold=1, recovery=0.0, need=BIG)))
    add("breaker_api", "pyresilience", pyresilience_by_hand)
    for name, block in (("circuitbreaker", circuitbreaker_block), ("pybreaker", pybreaker_block),
                        ("purgatory", purgatory_block)):
        add("breaker_with", name, block)
    add("abreaker_with", "purgatory", apurgatory_block)
    add("abreaker_with", "hyx", hyx_block)


def pyresilience_by_hand() -> Fn:
    import pyresilience as p
    from pyresilience._circuit_breaker import CircuitBreaker
    breaker = CircuitBreaker(p.CircuitBreakerConfig(failure_threshold=BIG))
    allow, well = breaker.allow_request, breaker.record_success

    def pair() -> None:
        if allow():
            well()
    return pair


def circuitbreaker_block() -> Fn:
    """Its ``with`` records and never refuses."""
    import circuitbreaker as p
    breaker = p.CircuitBreaker(failure_threshold=BIG)

    def pair() -> None:
        with breaker:
            pass
    return pair


def pybreaker_block() -> Fn:
    import pybreaker as p
    breaker = p.CircuitBreaker(fail_max=BIG)

    def pair() -> None:
        with breaker.calling():
            pass
    return pair


def purgatory_block() -> Fn:
    import purgatory as p
    breaker = p.SyncCircuitBreakerFactory(default_threshold=BIG).get_breaker("c")

    def pair() -> None:
        with breaker:
            pass
    return pair


async def apurgatory_block() -> Fn:
    import purgatory as p
    breaker = await p.AsyncCircuitBreakerFactory(default_threshold=BIG).get_breaker("c")

    async def pair() -> None:
        async with breaker:
            pass
    return pair


def hyx_block() -> Fn:
    from hyx.circuitbreaker import consecutive_breaker
    breaker = consecutive_breaker(failure_threshold=BIG)

    async def pair() -> None:
        async with breaker:
            pass
    return pair
