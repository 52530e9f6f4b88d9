"""Function breaker: as generated for a function that takes (a, /, b, *rest, key, **more).

Written by python tools/golden.py --write; edit src/seawall/guard/template.py, not this.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from seawall import Bulkhead, CircuitBreaker, Retry, Timeout
from seawall.deadline import remaining, used
from seawall.guard.passage import spent
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
        if used and spent(0.0):
            return run(stack, fn, a, b, *rest, key=key, **more)
        epoch = breaker.fast
        if epoch is None:
            left = breaker.shut_until - breaker.clock()
            if left > 0.0:
                raise breaker.refusal(left)
            epoch = breaker.ask(remaining() if used else None)
        try:
            next(calls)
            result = fn(a, b, *rest, key=key, **more)
        except BaseException as error:
            kind = type(error)
            if kind in breaker.rules.failures:
                breaker.fail(epoch, kind)
            else:
                breaker.raised(epoch, error, fn)
            raise
        else:
            if epoch.noted:
                breaker.returned(epoch, result)
            return result
    return guarded
