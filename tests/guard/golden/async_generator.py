"""Async generator: as generated for a function that takes (a, /, b, *rest, key, **more).

Written by python tools/golden.py --write; edit src/seawall/guard/template.py, not this.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from seawall import Bulkhead, CircuitBreaker, Retry, Timeout
from seawall.guard.passage import Passage


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
        passage = Passage(stack)
        try:
            try:
                await passage.aenter()
                inner = fn(a, b, *rest, key=key, **more)
                item = await anext(inner)
                while True:
                    try:
                        sent = yield item
                    except GeneratorExit:
                        await inner.aclose()
                        raise
                    except BaseException as thrown:
                        item = await inner.athrow(thrown)
                    else:
                        item = await inner.asend(sent)
            finally:
                free = passage.held
                if free is not None:
                    passage.held = None
                    free += (True,)
        except (StopAsyncIteration, GeneratorExit) as end:
            passage.ended()
            if isinstance(end, GeneratorExit):
                raise
        except BaseException as error:
            passage.failed(error, fn)
            raise
    return guarded
