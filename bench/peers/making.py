"""What a guard weighs and how long it takes to make: one breaker, one decorated function."""

from __future__ import annotations

import gc
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Collection
from itertools import repeat
from typing import Any

import seawall
from peers import breakers, ours
from peers.record import Run
from peers.rows import Skip, empty_wrapper, noop

BATCHES = 5


def circuitbreaker() -> Any:
    import circuitbreaker as p
    return p.CircuitBreaker()


def pybreaker() -> Any:
    import pybreaker as p
    return p.CircuitBreaker()


def aiobreaker() -> Any:
    import aiobreaker as p
    return p.CircuitBreaker()


def hyx() -> Any:
    from hyx.circuitbreaker import consecutive_breaker
    return consecutive_breaker()


def pyresilience() -> Any:
    import pyresilience as p
    from pyresilience._circuit_breaker import CircuitBreaker
    return CircuitBreaker(p.CircuitBreakerConfig())


class Purgatory:
    """Its breakers live in a factory, by name."""

    def __init__(self) -> None:
        self._factory: Any = None
        self._made = 0

    def __call__(self) -> Any:
        if self._factory is None:
            import purgatory as p
            self._factory = p.SyncCircuitBreakerFactory()
        self._made += 1
        return self._factory.get_breaker(f"c{self._made}")


def failed_once() -> seawall.CircuitBreaker:
    breaker = seawall.CircuitBreaker()
    breaker.record_failure()
    return breaker


MAKE: dict[str, Callable[[], Any]] = {
    "threading.Lock": threading.Lock,
    "empty wrapper": lambda: empty_wrapper(noop),
    "seawall": seawall.CircuitBreaker,
    "seawall, after its first failure": failed_once,
    "seawall, bulkhead": seawall.Bulkhead,
    "seawall, decorated": lambda: seawall.CircuitBreaker()(noop),
    "seawall, breaker + bulkhead, decorated": lambda: ours.target()(noop),
    "circuitbreaker": circuitbreaker,
    "pybreaker": pybreaker,
    "pybreaker, decorated": lambda: breakers.pybreaker(noop),
    "aiobreaker": aiobreaker,
    "aiobreaker, decorated": lambda: breakers.aiobreaker(noop),
    "hyx": hyx,
    "pyresilience": pyresilience,
    "pyresilience, decorated": lambda: breakers.pyresilience(noop),
    "purgatory": Purgatory(),
}
# A decorated function of circuitbreaker is missing: its register keeps each for ever, so it would weigh the register too.


def microseconds(make: Callable[[], Any], count: int) -> float:
    """To make one: the best of a few batches."""
    best = float("inf")
    for _ in range(BATCHES):
        began = time.perf_counter()
        made = [make() for _ in repeat(None, count)]
        best = min(best, time.perf_counter() - began)
        del made
    return best / count * 1e6


def weight(make: Callable[[], Any], count: int) -> float:
    """Bytes that each of ``count`` holds, as ``tracemalloc`` sees it."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        made = [make() for _ in repeat(None, count)]
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    return (after - before - sys.getsizeof(made)) / count


def measure(run: Run, count: int, only: Collection[str] | None) -> None:
    """Measure all into ``run``."""
    for name, make in MAKE.items():
        if only is not None and name.split(",")[0] not in only and name not in ("threading.Lock", "empty wrapper"):
            continue
        try:
            make()
            run.making[name] = {"create_us": microseconds(make, count // BATCHES), "bytes": weight(make, count)}
        except (Skip, ImportError) as e:
            run.leave_out("making", name.split(",")[0], str(e), missing=True)
        except Exception as e:
            run.leave_out("making", name, f"{type(e).__name__}: {e}", missing=False)
