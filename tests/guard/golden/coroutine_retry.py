"""Coroutine retry: as generated for a function that takes (a, /, b, *rest, key, **more).

Written by python tools/golden.py --write; edit src/seawall/guard/template.py, not this.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from seawall import Bulkhead, CircuitBreaker, Retry, Timeout
from seawall.deadline import ambient, used
from seawall.guard.plain import resume_coroutine as resume
from seawall.guard.plain import run_coroutine as run


def make(
    fn: Any,
    stack: Any,
    breaker: CircuitBreaker,
    bulkhead: Bulkhead,
    retry: Retry,
    timeout: Timeout,
    calls: count[int],
    places: count[int],
) -> Any:
    async def guarded(a, /, b, *rest, key, **more):
        if used and ambient() is not None:
            return await run(retry, fn, a, b, *rest, key=key, **more)
        tries = retry.ticks
        if tries is None:
            return await run(retry, fn, a, b, *rest, key=key, **more)
        try:
            next(tries)
            return await fn(a, b, *rest, key=key, **more)
        except BaseException as error:
            if not isinstance(error, Exception):
                raise
            failed = error
        try:
            return await resume(retry, fn, failed, a, b, *rest, key=key, **more)
        finally:
            failed = None
    return guarded
