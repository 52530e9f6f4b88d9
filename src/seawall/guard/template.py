"""The source of a fused guard: the straight line through the policies, in the guarded function's own signature.

With a bulkhead it handles one case by itself: circuit closed, nobody in line, a place free. Everything else is ``run``, the
plain form, from the start, before anything was taken: no wait ever occurs in generated code. Without one there is nothing
to wait for, and a trial goes the same way as any call.

A line stands where each letter before its bar is among the features: ``b`` breaker, ``h`` bulkhead, ``n`` no bulkhead,
``r`` retry, ``o`` once (no retry), ``t`` time limit, ``l`` none; ``a`` no breaker; ``m`` more to do after a success,
``k`` nothing; ``v`` what gives a result (functions and coroutines), ``g`` generators; ``c`` coroutines, ``f`` all others.
``tests/guard/golden`` holds what comes out, for people and checkers.

Only a first attempt is made here. After it has failed the plan goes on (``resume``), outside the handler, so that what it
raises has no context; and the variable that held the error is emptied, since the error's traceback holds the frame.
A time limit is ``arm()`` and ``Entry.end()`` of :mod:`seawall.drivers.timers`, written out: calling them would add a fifth
to what a limit costs.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from .kinds import ASYNC_GENERATOR, COROUTINE, FUNCTION, GENERATOR, Kind

__all__ = ["NAMES", "source"]

# Between `del` and the inner `try` there is no call, hence no point at which a signal could be handled and the slot be
# lost; nor is there one between the end of the call and the end of `append`. In a handler there is no call at all: when
# the recursion limit was hit in `fn`, another call would hit it too. `run` stands outside the handler, so that what it
# raises has no context.
STRAIGHT = """
   |def make(fn, stack, breaker, bulkhead, retry, timeout, calls, places):
   |    {define} guarded({parameters}):
f  |        if used and spent({least}):
f  |            return {run}
c  |        if used and ambient() is not None:
c  |            return {run}
b  |        epoch = breaker.fast
b  |        if epoch is None:
b  |            left = breaker.shut_until - breaker.clock()
b  |            if left > 0.0:
b  |                raise breaker.refusal(left)
bh |            return {run}
bn |            epoch = breaker.ask(remaining() if used else None)
r  |        tries = retry.ticks
r  |        if tries is None:
r  |            return {run}
h  |        alert = bulkhead.alert
h  |        if alert:
h  |            return {run}
h  |        free = bulkhead.free
h  |        try:
h  |            del free[-1]
h  |        except IndexError:
h  |            free = None
h  |        if free is None:
h  |            return {run}
   |        try:
b  |            next(calls)
h  |            next(places)
ra |            next(tries)
t  |            loop = get_running_loop()
t  |            fifo = timeout._fifo()
t  |            if fifo is None or fifo.loop is not loop:
t  |                fifo = fifo_of(loop, timeout)
t  |            task = current_task(loop)
t  |            if task is None:
t  |                raise no_task()
t  |            entry = Entry()
t  |            entry.fifo, entry.task, entry.due = fifo, task, fifo.clock() + fifo.seconds
t  |            entry.cancelling = task.cancelling()
t  |            entry.armed = True
t  |            entries = fifo.entries
t  |            entries.append(entry)
t  |            if fifo.timer is None:
t  |                fifo.start(fifo.seconds)
t  |            try:
t  |                result = {call}
t  |            except BaseException as end:
t  |                if entry.overdue(end):
t  |                    raise timeout.exceeded() from end
t  |                raise
t  |            if entries and entries[-1] is entry and not fifo.dead:
t  |                entries.pop()
t  |            else:
t  |                entry.end()
lm |            result = {call}
lk |            return {call}
g  |        except GeneratorExit:
gh |            free += (True,)
gh |            if alert:
gh |                bulkhead.pump()
gb |            breaker.settle(epoch, SUCCESS)
g  |            raise
   |        except BaseException as error:
h  |            free += (True,)
h  |            if alert:
h  |                bulkhead.pump()
b  |            kind = type(error)
b  |            if kind in breaker.rules.failures:
b  |                breaker.fail(epoch, kind)
b  |            else:
b  |                breaker.raised(epoch, error, fn)
o  |            raise
r  |            if not isinstance(error, Exception):
r  |                raise
r  |            failed = error
m  |        else:
h  |            free.append(True)
h  |            if alert:
h  |                bulkhead.pump()
vb |            if epoch.noted:
vb |                breaker.returned(epoch, result)
gb |            breaker.settle(epoch, SUCCESS)
m  |            return result
r  |        try:
r  |            return {resume}
r  |        finally:
r  |            failed = None
   |    return guarded
"""

# An async generator costs several calls by itself, and cannot hand over to another: it has no straight line, only the
# signature. This is the plain form.
ASYNC = """
   |def make(fn, stack, breaker, bulkhead, retry, timeout, calls, places):
   |    async def guarded({parameters}):
   |        passage = Passage(stack)
   |        try:
   |            try:
   |                await passage.aenter()
   |                inner = fn({arguments})
   |                item = await anext(inner)
   |                while True:
   |                    try:
   |                        sent = yield item
   |                    except GeneratorExit:
   |                        await inner.aclose()
   |                        raise
   |                    except BaseException as thrown:
   |                        item = await inner.athrow(thrown)
   |                    else:
   |                        item = await inner.asend(sent)
   |            finally:
   |                free = passage.held
   |                if free is not None:
   |                    passage.held = None
   |                    free += (True,)
   |        except (StopAsyncIteration, GeneratorExit) as end:
   |            passage.ended()
   |            if isinstance(end, GeneratorExit):
   |                raise
   |        except BaseException as error:
   |            passage.failed(error, fn)
   |            raise
   |    return guarded
"""

NAMES = [
    "fn", "stack", "breaker", "bulkhead", "retry", "timeout", "calls", "places", "guarded", "epoch", "alert", "free",
    "result", "error", "passage", "inner", "item", "sent", "thrown", "end", "run", "left", "kind", "tries", "failed",
    "resume", "used", "spent", "ambient", "remaining", "loop", "fifo", "task", "entry", "entries", "get_running_loop",
    "fifo_of", "current_task", "no_task", "Entry", "SUCCESS", "Passage", "next", "anext", "type", "isinstance",
    "IndexError", "Exception", "BaseException", "GeneratorExit", "StopAsyncIteration",
]  # fmt: skip
"""All names in the templates. A parameter of the same name renames ours."""

_DEFINE = {FUNCTION: "def", COROUTINE: "async def", GENERATOR: "def"}
_RUN = {FUNCTION: "run({})", COROUTINE: "await run({})", GENERATOR: "(yield from run({}))"}
_RESUME = {FUNCTION: "resume({})", COROUTINE: "await resume({})"}
_CALL = {FUNCTION: "fn({})", COROUTINE: "await fn({})", GENERATOR: "yield from fn({})"}


def source(kind: Kind, features: str, parameters: str, arguments: str, taken: Collection[str] = ()) -> tuple[str, str]:
    """The source of ``make(...)``, which returns the guard, and what was put behind each of :data:`NAMES` in it.

    Args:
        kind: What is guarded.
        features: ``b`` where there is a breaker, ``h`` bulkhead, ``r`` retry, ``t`` time limit.
        parameters: The parameter list, without defaults and annotations.
        arguments: The list that hands all of them on.
        taken: The names of the parameters.
    """
    suffix = ""
    while not {name + suffix for name in NAMES}.isdisjoint(taken):
        suffix += "_"
    if kind is ASYNC_GENERATOR:
        text, filled = _chosen(ASYNC, features), {"arguments": "{arguments}"}
    else:
        text, filled = _chosen(STRAIGHT, features + _absent(kind, features)), _filled(kind, features, arguments)
    text = text.format(parameters="{parameters}", **filled)
    if suffix:
        text = re.sub(rf"(?<!\.)\b({'|'.join(NAMES)})\b", rf"\1{suffix}", text)
    return text.format(parameters=parameters, arguments=arguments), suffix


def _absent(kind: Kind, features: str) -> str:
    marks = "".join(mark for feature, mark in zip("bhrt", "anol", strict=True) if feature not in features)
    marks += "m" if set("bht") & set(features) else "k"
    return marks + ("g" if kind is GENERATOR else "v") + ("c" if kind is COROUTINE else "f")


def _filled(kind: Kind, features: str, arguments: str) -> dict[str, str]:
    owner = {"h": "bulkhead", "r": "retry", "t": "timeout"}.get(features, "stack")  # a stack by itself: one name less
    given = ["{arguments}"] * bool(arguments)
    return {
        "define": _DEFINE[kind],
        "run": _RUN[kind].format(", ".join([owner, "fn", *given])),
        "resume": _RESUME[kind].format(", ".join([owner, "fn", "failed", *given])) if "r" in features else "",
        "call": _CALL[kind].format("{arguments}"),
        "least": "retry.least" if "r" in features else "0.0",
        "arguments": "{arguments}",
    }


def _chosen(template: str, features: str) -> str:
    lines = (line.partition("|") for line in template.strip("\n").split("\n"))
    return "".join(f"{text}\n" for marks, _, text in lines if set(marks.strip()) <= set(features))
