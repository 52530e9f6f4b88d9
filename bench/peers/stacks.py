"""The rivals' retries, and retry, breaker, bulkhead and time limit together."""

from __future__ import annotations

from functools import partial
from typing import Any

from peers import breakers, rows
from peers.others import PLACES, asemaphore, asyncio_timeout, hyx_bulkhead, hyx_timeout, semaphore
from peers.rows import BIG, HOUR, Fn, add

ATTEMPTS = 3


# -- retries
def tenacity(fn: Fn) -> Fn:
    import tenacity as t
    return t.retry(stop=t.stop_after_attempt(ATTEMPTS), wait=t.wait_fixed(0), retry=t.retry_if_exception_type(ValueError))(fn)


def stamina(fn: Fn) -> Fn:
    import stamina as s
    return s.retry(on=ValueError, attempts=ATTEMPTS)(fn)


def backoff(fn: Fn) -> Fn:
    import backoff as b
    return b.on_exception(b.expo, ValueError, max_tries=ATTEMPTS)(fn)


def pyresilience(fn: Fn) -> Fn:
    import pyresilience as p
    return p.resilient(retry=p.RetryConfig(max_attempts=ATTEMPTS, retry_on=(ValueError,)))(fn)


async def hyx(fn: Fn) -> Fn:
    """It wants a running loop when it is made."""
    from hyx.retry import retry
    return retry(on=ValueError, attempts=ATTEMPTS)(fn)


RETRIES = {"tenacity": tenacity, "stamina": stamina, "backoff": backoff, "pyresilience": pyresilience}


# -- stacks
def pyresilience_stack(fn: Fn, limit: bool) -> Fn:
    import pyresilience as p
    more = {"timeout": p.TimeoutConfig(seconds=HOUR)} if limit else {}
    return p.resilient(retry=p.RetryConfig(max_attempts=ATTEMPTS), bulkhead=p.BulkheadConfig(max_concurrent=PLACES),
                       circuit_breaker=p.CircuitBreakerConfig(failure_threshold=BIG), **more)(fn)


async def hyx_stack(fn: Fn, limit: bool) -> Fn:
    guarded = hyx_bulkhead(fn)
    if limit:
        guarded = await hyx_timeout(guarded)
    return await hyx(breakers.hyx(guarded))


def tenacity_stack(fn: Fn, limit: bool) -> Fn:
    """Of parts: what most people have today."""
    return tenacity(breakers.aiobreaker(asemaphore(asyncio_timeout(fn) if limit else fn)))


def register() -> None:
    """Let the rivals take part."""
    for name, retry in RETRIES.items():
        add("retry_first_try", name, partial(retry, rows.noop))
        add("aretry_first_try", name, partial(retry, rows.anoop))
    add("aretry_first_try", "hyx", partial(hyx, rows.anoop))
    add("stack_no_timeout", "pyresilience", partial(pyresilience_stack, rows.noop, False))
    add("stack_no_timeout", "tenacity+pybreaker+Semaphore", lambda: tenacity(breakers.pybreaker(semaphore(rows.noop))))
    add("stack_deadline", "pyresilience", partial(pyresilience_stack, rows.noop, True))  # by a pool of threads
    for row, fn, limit in (("astack_no_timeout", rows.anoop, False), ("astack_timeout_yield", rows.ayield, True)):
        add(row, "pyresilience", partial(pyresilience_stack, fn, limit))
        add(row, "hyx", partial(hyx_stack, fn, limit))
        parts: Any = partial(tenacity_stack, fn, limit)
        add(row, "tenacity+aiobreaker+Semaphore" + "+asyncio.timeout" * limit, parts)
