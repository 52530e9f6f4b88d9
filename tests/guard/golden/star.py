"""Star: as generated for a function that takes (*args, **kwargs).

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
    def guarded(*args, **kwargs):
        if used and spent(retry.least):
            return run(stack, fn, *args, **kwargs)
        epoch = breaker.fast
        if epoch is None:
            left = breaker.shut_until - breaker.clock()
            if left > 0.0:
                raise breaker.refusal(left)
            return run(stack, fn, *args, **kwargs)
        tries = retry.ticks
        if tries is None:
            return run(stack, fn, *args, **kwargs)
        alert = bulkhead.alert
        if alert:
            return run(stack, fn, *args, **kwargs)
        free = bulkhead.free
        try:
            del free[-1]
        except IndexError:
            free = None
        if free is None:
            return run(stack, fn, *args, **kwargs)
        try:
            next(calls)
            next(places)
            result = fn(*args, **kwargs)
        except BaseException as error:
            free += (True,)
            if alert:
                bulkhead.pump()
            kind = type(error)
            if kind in breaker.rules.failures:
                breaker.fail(epoch, kind)
            else:
                breaker.raised(epoch, error, fn)
            if not isinstance(error, Exception):
                raise
            failed = error
        else:
            free.append(True)
            if alert:
                bulkhead.pump()
            if epoch.noted:
                breaker.returned(epoch, result)
            return result
        try:
            return resume(stack, fn, failed, *args, **kwargs)
        finally:
            failed = None
    return guarded
