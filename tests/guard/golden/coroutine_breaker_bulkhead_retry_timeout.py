"""Coroutine breaker bulkhead retry timeout: as generated for a function that takes (a, /, b, *rest, key, **more).

Written by python tools/golden.py --write; edit src/seawall/guard/template.py, not this.
"""

from __future__ import annotations

from asyncio import current_task, get_running_loop
from itertools import count
from typing import Any

from seawall import Bulkhead, CircuitBreaker, Retry, Timeout
from seawall.deadline import ambient, used
from seawall.drivers.timers import Entry, fifo_of, no_task
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
            return await run(stack, fn, a, b, *rest, key=key, **more)
        epoch = breaker.fast
        if epoch is None:
            left = breaker.shut_until - breaker.clock()
            if left > 0.0:
                raise breaker.refusal(left)
            return await run(stack, fn, a, b, *rest, key=key, **more)
        tries = retry.ticks
        if tries is None:
            return await run(stack, fn, a, b, *rest, key=key, **more)
        alert = bulkhead.alert
        if alert:
            return await run(stack, fn, a, b, *rest, key=key, **more)
        free = bulkhead.free
        try:
            del free[-1]
        except IndexError:
            free = None
        if free is None:
            return await run(stack, fn, a, b, *rest, key=key, **more)
        try:
            next(calls)
            next(places)
            loop = get_running_loop()
            fifo = timeout._fifo()
            if fifo is None or fifo.loop is not loop:
                fifo = fifo_of(loop, timeout)
            task = current_task(loop)
            if task is None:
                raise no_task()
            entry = Entry()
            entry.fifo, entry.task, entry.due = fifo, task, fifo.clock() + fifo.seconds
            entry.cancelling = task.cancelling()
            entry.armed = True
            entries = fifo.entries
            entries.append(entry)
            if fifo.timer is None:
                fifo.start(fifo.seconds)
            try:
                result = await fn(a, b, *rest, key=key, **more)
            except BaseException as end:
                if entry.overdue(end):
                    raise timeout.exceeded() from end
                raise
            if entries and entries[-1] is entry and not fifo.dead:
                entries.pop()
            else:
                entry.end()
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
            return await resume(stack, fn, failed, a, b, *rest, key=key, **more)
        finally:
            failed = None
    return guarded
