"""Generator breaker: as generated for a function that takes (a, /, b, *rest, key, **more).

Written by python tools/golden.py --write; edit src/seawall/guard/template.py, not this.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from seawall import Bulkhead, CircuitBreaker, Retry, Timeout
from seawall.deadline import remaining, used
from seawall.guard.passage import spent
from seawall.guard.plain import run_generator as run
from seawall.outcome import SUCCESS


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
            return (yield from run(stack, fn, a, b, *rest, key=key, **more))
        epoch = breaker.fast
        if epoch is None:
            left = breaker.shut_until - breaker.clock()
            if left > 0.0:
                raise breaker.refusal(left)
            epoch = breaker.ask(remaining() if used else None)
        try:
            next(calls)
            result = yield from fn(a, b, *rest, key=key, **more)
        except GeneratorExit:
            breaker.settle(epoch, SUCCESS)
            raise
        except BaseException as error:
            kind = type(error)
            if kind in breaker.rules.failures:
                breaker.fail(epoch, kind)
            else:
                breaker.raised(epoch, error, fn)
            raise
        else:
            breaker.settle(epoch, SUCCESS)
            return result
    return guarded
