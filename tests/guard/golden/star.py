"""Star: as generated for a function that takes (*args, **kwargs).

Written by python tools/golden.py --write; edit src/seawall/guard/template.py, not this.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from seawall import Bulkhead, CircuitBreaker
from seawall.guard.plain import run_function as run


def make(
    fn: Any,
    stack: Any,
    breaker: CircuitBreaker,
    bulkhead: Bulkhead,
    calls: count[int],
    places: count[int],
) -> Any:
    def guarded(*args, **kwargs):
        epoch = breaker.fast
        if epoch is None:
            left = breaker.shut_until - breaker.clock()
            if left > 0.0:
                raise breaker.refusal(left)
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
            raise
        free.append(True)
        if alert:
            bulkhead.pump()
        if epoch.noted:
            breaker.returned(epoch, result)
        return result
    return guarded
