"""The rivals' bulkheads, stacks and timeouts, and what one writes by hand with semaphores."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import Any

from peers import breakers, rows
from peers.rows import BIG, HOUR, Fn, add

PLACES = 10


# -- bulkheads
def semaphore(fn: Fn) -> Fn:
    places = threading.BoundedSemaphore(PLACES)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not places.acquire(blocking=False):
            raise RuntimeError
        try:
            return fn(*args, **kwargs)
        finally:
            places.release()
    return wrapper


def asemaphore(fn: Fn) -> Fn:
    places = asyncio.Semaphore(PLACES)

    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        async with places:
            return await fn(*args, **kwargs)
    return wrapper


def hyx_bulkhead(fn: Fn) -> Fn:
    from hyx.bulkhead import bulkhead
    return bulkhead(max_concurrency=PLACES, max_capacity=2 * PLACES)(fn)


def pyresilience_bulkhead(fn: Fn) -> Fn:
    import pyresilience as p
    return p.resilient(bulkhead=p.BulkheadConfig(max_concurrent=PLACES))(fn)


# -- bulkheads by hand
def semaphore_by_hand() -> Fn:
    places = threading.BoundedSemaphore(PLACES)

    def pair() -> None:
        places.acquire(blocking=False)
        places.release()
    return pair


def lock_and_number() -> Fn:
    """What one writes first: a number under a lock, once in and once out."""
    lock, running = threading.Lock(), 0

    def pair() -> None:
        nonlocal running
        with lock:
            if running >= PLACES:
                raise RuntimeError
            running += 1
        with lock:
            running -= 1
    return pair


def pyresilience_by_hand() -> Fn:
    import pyresilience as p
    from pyresilience._bulkhead import Bulkhead
    places = Bulkhead(p.BulkheadConfig(max_concurrent=PLACES))

    def pair() -> None:
        places.acquire()
        places.release()
    return pair


def asemaphore_by_hand() -> Fn:
    places = asyncio.Semaphore(PLACES)

    async def pair() -> None:
        await places.acquire()
        places.release()
    return pair


def apyresilience_by_hand() -> Fn:
    import pyresilience as p
    from pyresilience._bulkhead import AsyncBulkhead
    places = AsyncBulkhead(p.BulkheadConfig(max_concurrent=PLACES))

    async def pair() -> None:
        await places.acquire()
        places.release()
    return pair


def hyx_bulkhead_block() -> Fn:
    from hyx.bulkhead import bulkhead
    places = bulkhead(max_concurrency=PLACES, max_capacity=2 * PLACES)

    async def pair() -> None:
        async with places:
            pass
    return pair


# -- stacks
def pyresilience_stack(fn: Fn) -> Fn:
    import pyresilience as p
    return p.resilient(circuit_breaker=p.CircuitBreakerConfig(failure_threshold=BIG),
                       bulkhead=p.BulkheadConfig(max_concurrent=PLACES))(fn)


# -- timeouts
def asyncio_timeout(fn: Fn) -> Fn:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        async with asyncio.timeout(HOUR):
            return await fn(*args, **kwargs)
    return wrapper


def wait_for(fn: Fn) -> Fn:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        return await asyncio.wait_for(fn(*args, **kwargs), HOUR)
    return wrapper


async def hyx_timeout(fn: Fn) -> Fn:
    """It wants a running loop when it is made."""
    from hyx.timeout import timeout
    return timeout(HOUR)(fn)


def pyresilience_timeout(fn: Fn) -> Fn:
    import pyresilience as p
    return p.resilient(timeout=p.TimeoutConfig(seconds=HOUR))(fn)


TIMEOUTS = {"asyncio.timeout": asyncio_timeout, "asyncio.wait_for": wait_for, "hyx": hyx_timeout,
            "pyresilience": pyresilience_timeout}


def register() -> None:
    """Let the rivals take part."""
    add("bulkhead_prim", "threading.BoundedSemaphore", semaphore_by_hand)
    add("bulkhead_prim", "with lock x2 + int", lock_and_number)
    add("bulkhead_prim", "pyresilience", pyresilience_by_hand)
    add("abulkhead_prim", "asyncio.Semaphore", asemaphore_by_hand)
    add("abulkhead_prim", "hyx", hyx_bulkhead_block)
    add("abulkhead_prim", "pyresilience", apyresilience_by_hand)
    add("bulkhead", "threading.BoundedSemaphore", partial(semaphore, rows.noop))
    add("bulkhead", "pyresilience", partial(pyresilience_bulkhead, rows.noop))
    add("abulkhead", "asyncio.Semaphore", partial(asemaphore, rows.anoop))
    add("abulkhead", "hyx", partial(hyx_bulkhead, rows.anoop))
    add("abulkhead", "pyresilience", partial(pyresilience_bulkhead, rows.anoop))
    # By hand the breaker stands outside, so that an open circuit refuses before it takes a place.
    for name in ("circuitbreaker", "pybreaker"):
        add("stack", f"{name}+BoundedSemaphore", lambda b=breakers.SYNC[name]: b(semaphore(rows.noop)))
    add("stack", "pyresilience", partial(pyresilience_stack, rows.noop))
    add("astack", "circuitbreaker+asyncio.Semaphore", lambda: breakers.circuitbreaker(asemaphore(rows.anoop)))
    add("astack", "hyx", lambda: breakers.hyx(hyx_bulkhead(rows.anoop)))
    add("astack", "pyresilience", partial(pyresilience_stack, rows.anoop))
    for name, timeout in TIMEOUTS.items():
        add("atimeout", name, partial(timeout, rows.anoop))
        add("atimeout_yield", name, partial(timeout, rows.ayield))
