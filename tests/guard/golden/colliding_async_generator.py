"""Colliding async generator: as generated for a function that takes (fn, /, free, alert, *type, run_, **breaker).

Written by python tools/golden.py --write; edit src/seawall/guard/template.py, not this.
"""

from __future__ import annotations

from builtins import BaseException as BaseException__
from builtins import GeneratorExit as GeneratorExit__
from builtins import StopAsyncIteration as StopAsyncIteration__
from builtins import anext as anext__
from builtins import isinstance as isinstance__
from itertools import count
from typing import Any

from seawall import Bulkhead, CircuitBreaker, Retry, Timeout
from seawall.guard.passage import Passage as Passage__


def make(
    fn__: Any,
    stack__: Any,
    breaker__: CircuitBreaker,
    bulkhead__: Bulkhead,
    retry__: Retry,
    timeout__: Timeout,
    calls__: count[int],
    places__: count[int],
) -> Any:
    async def guarded__(fn, /, free, alert, *type, run_, **breaker):
        passage__ = Passage__(stack__)
        try:
            try:
                await passage__.aenter()
                inner__ = fn__(fn, free, alert, *type, run_=run_, **breaker)
                item__ = await anext__(inner__)
                while True:
                    try:
                        sent__ = yield item__
                    except GeneratorExit__:
                        await inner__.aclose()
                        raise
                    except BaseException__ as thrown__:
                        item__ = await inner__.athrow(thrown__)
                    else:
                        item__ = await inner__.asend(sent__)
            finally:
                free__ = passage__.held
                if free__ is not None:
                    passage__.held = None
                    free__ += (True,)
        except (StopAsyncIteration__, GeneratorExit__) as end__:
            passage__.ended()
            if isinstance__(end__, GeneratorExit__):
                raise
        except BaseException__ as error__:
            passage__.failed(error__, fn__)
            raise
    return guarded__
