"""Coroutine bulkhead: as generated for a function that takes (a, /, b, *rest, key, **more).

Written by python tools/golden.py --write; edit src/seawall/guard/template.py, not this.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from seawall import Bulkhead, CircuitBreaker, Retry, Timeout
from seawall.deadline import ambient, used
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
            return await run(bulkhead, fn, a, b, *rest, key=key, **more)
        alert = bulkhead.alert
        if alert:
            return await run(bulkhead, fn, a, b, *rest, key=key, **more)
        free = bulkhead.free
        try:
            del free[-1]
        except IndexError:
            free = None
        if free is None:
            return await run(bulkhead, fn, a, b, *rest, key=key, **more)
        try:
            next(places)
            result = await fn(a, b, *rest, key=key, **more)
        except BaseException as error:
            free += (True,)
            if alert:
                bulkhead.pump()
            raise
        else:
            free.append(True)
            if alert:
                bulkhead.pump()
            return result
    return guarded
