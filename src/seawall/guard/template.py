"""The source of a fused guard: the straight line through the policies, in the guarded function's own signature.

With a bulkhead it handles one case by itself: circuit closed, nobody in line, a place free. Everything else is ``run``, the
plain form, from the start, before anything was taken: no wait ever occurs in generated code. Without one there is nothing
to wait for, and a trial goes the same way as any call.

A line stands where each letter before its bar is among the features: ``b`` breaker, ``h`` bulkhead, ``n`` no bulkhead;
``v`` what gives a result (functions and coroutines), ``g`` generators. ``tests/guard/golden`` holds what comes out, for
people and checkers.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from .kinds import ASYNC_GENERATOR, COROUTINE, FUNCTION, GENERATOR, Kind

__all__ = ["NAMES", "source"]

# Between `del` and the inner `try` there is no call, hence no point at which a signal could be handled and the slot be
# lost; nor is there one between the end of that `try` and the end of `append`. In a handler there is no call at all: when
# the recursion limit was hit in `fn`, another call would hit it too. `run` stands outside the handler, so that what it
# raises has no context.
STRAIGHT = """
   |def make(fn, stack, breaker, bulkhead, calls, places):
   |    {define} guarded({parameters}):
b  |        epoch = breaker.fast
b  |        if epoch is None:
b  |            left = breaker.shut_until - breaker.clock()
b  |            if left > 0.0:
b  |                raise breaker.refusal(left)
bh |            return {run}
bn |            epoch = breaker.ask()
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
   |            result = {call}
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
   |            raise
h  |        free.append(True)
h  |        if alert:
h  |            bulkhead.pump()
vb |        if epoch.noted:
vb |            breaker.returned(epoch, result)
gb |        breaker.settle(epoch, SUCCESS)
   |        return result
   |    return guarded
"""

# An async generator costs several calls by itself, and cannot hand over to another: it has no straight line, only the
# signature. This is the plain form.
ASYNC = """
   |def make(fn, stack, breaker, bulkhead, calls, places):
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
    "fn", "stack", "breaker", "bulkhead", "calls", "places", "guarded", "epoch", "alert", "free", "result", "error",
    "passage", "inner", "item", "sent", "thrown", "end", "run", "left", "kind", "SUCCESS", "Passage", "next", "anext",
    "type", "isinstance", "IndexError", "BaseException", "GeneratorExit", "StopAsyncIteration",
]  # fmt: skip
"""All names in the templates. A parameter of the same name renames ours."""

_DEFINE = {FUNCTION: "def", COROUTINE: "async def", GENERATOR: "def"}
_RUN = {FUNCTION: "run({})", COROUTINE: "await run({})", GENERATOR: "(yield from run({}))"}
_CALL = {FUNCTION: "fn({})", COROUTINE: "await fn({})", GENERATOR: "yield from fn({})"}


def source(kind: Kind, features: str, parameters: str, arguments: str, taken: Collection[str] = ()) -> tuple[str, str]:
    """The source of ``make(...)``, which returns the guard, and what was put behind each of :data:`NAMES` in it.

    Args:
        kind: What is guarded.
        features: ``b`` where there is a breaker, ``h`` where there is a bulkhead.
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
        text = _chosen(STRAIGHT, features + "n" * ("h" not in features) + ("g" if kind is GENERATOR else "v"))
        owner = "stack" if "b" in features else "bulkhead"  # a bulkhead is a stack by itself: one name less to carry
        run = ", ".join([owner, "fn", *["{arguments}"] * bool(arguments)])
        filled = {"define": _DEFINE[kind], "run": _RUN[kind].format(run), "call": _CALL[kind].format("{arguments}")}
    text = text.format(parameters="{parameters}", **filled)
    if suffix:
        text = re.sub(rf"(?<!\.)\b({'|'.join(NAMES)})\b", rf"\1{suffix}", text)
    return text.format(parameters=parameters, arguments=arguments), suffix


def _chosen(template: str, features: str) -> str:
    lines = (line.partition("|") for line in template.strip("\n").split("\n"))
    return "".join(f"{text}\n" for marks, _, text in lines if set(marks.strip()) <= set(features))
