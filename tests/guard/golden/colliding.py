"""Colliding: as generated for a function that takes (fn, /, free, alert, *type, run_, **breaker).

Written by python tools/golden.py --write; edit src/seawall/guard/template.py, not this.
"""

from __future__ import annotations

from builtins import BaseException as BaseException__
from builtins import Exception as Exception__
from builtins import IndexError as IndexError__
from builtins import isinstance as isinstance__
from builtins import next as next__
from builtins import type as type__
from itertools import count
from typing import Any

from seawall import Bulkhead, CircuitBreaker, Retry, Timeout
from seawall.deadline import used as used__
from seawall.guard.passage import spent as spent__
from seawall.guard.plain import resume_function as resume__
from seawall.guard.plain import run_function as run__


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
    def guarded__(fn, /, free, alert, *type, run_, **breaker):
        if used__ and spent__(retry__.least):
            return run__(stack__, fn__, fn, free, alert, *type, run_=run_, **breaker)
        epoch__ = breaker__.fast
        if epoch__ is None:
            left__ = breaker__.shut_until - breaker__.clock()
            if left__ > 0.0:
                raise breaker__.refusal(left__)
            return run__(stack__, fn__, fn, free, alert, *type, run_=run_, **breaker)
        tries__ = retry__.ticks
        if tries__ is None:
            return run__(stack__, fn__, fn, free, alert, *type, run_=run_, **breaker)
        alert__ = bulkhead__.alert
        if alert__:
            return run__(stack__, fn__, fn, free, alert, *type, run_=run_, **breaker)
        free__ = bulkhead__.free
        try:
            del free__[-1]
        except IndexError__:
            free__ = None
        if free__ is None:
            return run__(stack__, fn__, fn, free, alert, *type, run_=run_, **breaker)
        try:
            next__(calls__)
            next__(places__)
            result__ = fn__(fn, free, alert, *type, run_=run_, **breaker)
        except BaseException__ as error__:
            free__ += (True,)
            if alert__:
                bulkhead__.pump()
            kind__ = type__(error__)
            if kind__ in breaker__.rules.failures:
                breaker__.fail(epoch__, kind__)
            else:
                breaker__.raised(epoch__, error__, fn__)
            if not isinstance__(error__, Exception__):
                raise
            failed__ = error__
        else:
            free__.append(True)
            if alert__:
                bulkhead__.pump()
            if epoch__.noted:
                breaker__.returned(epoch__, result__)
            return result__
        try:
            return resume__(stack__, fn__, failed__, fn, free, alert, *type, run_=run_, **breaker)
        finally:
            failed__ = None
    return guarded__
