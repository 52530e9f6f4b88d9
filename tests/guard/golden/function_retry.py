"""Function retry: as generated for a function that takes (a, /, b, *rest, key, **more).

Written by python tools/golden.py --write; edit src/seawall/guard/template.py, not this.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from seawall import Bulkhead, CircuitBreaker, Retry, Timeout
from seawall.deadline import used
from seawall.guard.passage import spent
from seawall.guard.plain import resume_function as resume
from seawall.guard.plain import run_function as run


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
    def guarded(a, /, b, *rest, key, **more):
        if used and spent(retry.least):
            return run(retry, fn, a, b, *rest, key=key, **more)
        tries = retry.ticks
        if tries is None:
            return run(retry, fn, a, b, *rest, key=key, **more)
        try:
            next(tries)
            return fn(a, b, *rest, key=key, **more)
        except BaseException as error:
            if not isinstance(error, Exception):
                raise
            failed = error
        try:
            return resume(retry, fn, failed, a, b, *rest, key=key, **more)
        finally:
            failed = None
    return guarded
