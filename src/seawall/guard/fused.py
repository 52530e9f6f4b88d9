"""The fused form: one generated function for each guarded one, with its own signature and no detour.

A wrapper that takes ``*args, **kwargs`` builds a tuple and a dictionary for each call and leaves the interpreter's loop;
one with the wrapped function's own parameters does neither, which saves more than all policies cost. The signature is
read from the code object; defaults are the wrapped function's own objects. What has no code object of its own (builtins,
partials, callable objects, bound methods) gets the same straight line with ``*args, **kwargs``: the star form.

Sources are compiled once for each shape: functions of one shape share one code object. The guard reads state, limits and
rules afresh at each call, so it follows when they change.

Wrong arguments are a ``TypeError`` at the guard's own first line, as if it were the function: no policy is asked.
"""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable
from functools import lru_cache
from keyword import iskeyword
from types import CodeType, FunctionType
from typing import Any

from ..deadline import ambient, remaining, used
from ..outcome import SUCCESS
from .kinds import ASYNC_GENERATOR, COROUTINE, FUNCTION, GENERATOR, Kind
from .nesting import repeats
from .passage import Passage, spent
from .plain import PLAIN, resume_coroutine, resume_function, run_coroutine, run_function, run_generator
from .template import source

__all__ = ["fuse"]

STAR = ("*args, **kwargs", "*args, **kwargs", ("args", "kwargs"))
_RUN = {FUNCTION: run_function, COROUTINE: run_coroutine, GENERATOR: run_generator, ASYNC_GENERATOR: None}
_RESUME = {FUNCTION: resume_function, COROUTINE: resume_coroutine}
_TIMERS = ("get_running_loop", "fifo_of", "current_task", "no_task", "Entry")
# Compiled sources kept: some 4 kB each, and hardly any program has as many different signatures. Their lines stay in
# linecache, some 1 kB each: guards made earlier may still need them.
_SHAPES = 1024


def fuse(stack: Any, fn: Any, kind: Kind, star: bool = False) -> Callable[..., Any]:
    """The fused guard for ``fn``, without name and docstring yet.

    Args:
        stack: Has ``breaker``, ``bulkhead``, ``retry`` and ``timeout``, any of which may be ``None``.
        fn: What to guard.
        kind: Its kind.
        star: Take ``*args, **kwargs`` in any case.

    Cost: some 20 us for a known shape, a few hundred for a new one.
    """
    breaker, bulkhead, retry, timeout = stack.breaker, stack.bulkhead, stack.retry, stack.timeout
    features = "b" * (breaker is not None) + "h" * (bulkhead is not None)
    if kind in (FUNCTION, COROUTINE):
        features += "r" * (retry is not None) + "t" * (timeout is not None)
    if not features or (kind is FUNCTION and timeout is not None):
        return PLAIN[kind](stack, fn)  # runs in another thread, so there is no straight line; or has no policies
    exact = type(fn) is FunctionType and not star
    make = _maker(kind, features, *(signature(fn.__code__) if exact else STAR))
    calls = None if breaker is None else breaker.started_ticks
    places = None if bulkhead is None else bulkhead.started_ticks
    guarded: FunctionType = make(fn, stack, breaker, bulkhead, retry, timeout, calls, places)
    if "r" in features:
        repeats(guarded.__code__, next(name for name in guarded.__code__.co_freevars if name.rstrip("_") == "retry"))
    if exact:
        guarded.__defaults__ = fn.__defaults__
        guarded.__kwdefaults__ = None if fn.__kwdefaults__ is None else dict(fn.__kwdefaults__)
    return guarded


def signature(code: CodeType) -> tuple[str, str, tuple[str, ...]]:
    """The parameter list of a function with this code, the arguments that hand everything on, and the names."""
    by_place, by_name = code.co_argcount, code.co_kwonlyargcount
    names = list(code.co_varnames)
    placed, named, rest = names[:by_place], names[by_place : by_place + by_name], names[by_place + by_name :]
    parameters, arguments = list(placed), list(placed)
    if code.co_posonlyargcount:
        parameters.insert(code.co_posonlyargcount, "/")
    taken = placed + named
    if code.co_flags & inspect.CO_VARARGS:
        taken.append(rest[0])
        parameters.append(f"*{rest[0]}")
        arguments.append(f"*{rest.pop(0)}")
    elif named:
        parameters.append("*")
    parameters += named
    arguments += [f"{name}={name}" for name in named]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        taken.append(rest[0])
        parameters.append(f"**{rest[0]}")
        arguments.append(f"**{rest[0]}")
    if not all(name.isidentifier() and not iskeyword(name) for name in taken):  # made by hand, or by a compiler
        return STAR
    return ", ".join(parameters), ", ".join(arguments), tuple(taken)


@lru_cache(_SHAPES)
def _maker(
    kind: Kind, features: str, parameters: str, arguments: str, taken: tuple[str, ...]
) -> Callable[..., FunctionType]:
    text, suffix = source(kind, features, parameters, arguments, taken)
    filename = f"<seawall guard {kind.value} {features} ({parameters})>"
    names: dict[str, Any] = {
        "run": _RUN[kind], "resume": _RESUME.get(kind), "used": used, "spent": spent, "ambient": ambient,
        "remaining": remaining, "SUCCESS": SUCCESS, "Passage": Passage, "next": next, "anext": anext, "type": type,
        "isinstance": isinstance, "IndexError": IndexError, "Exception": Exception, "BaseException": BaseException,
        "GeneratorExit": GeneratorExit, "StopAsyncIteration": StopAsyncIteration,
    }  # fmt: skip
    if "t" in features:
        from ..drivers import timers  # not at the top: it imports asyncio

        names |= {name: getattr(timers, name) for name in _TIMERS}
    scope: dict[str, Any] = {"__name__": __name__} | {name + suffix: value for name, value in names.items()}
    exec(compile(text, filename, "exec"), scope)
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)  # tracebacks show the lines
    maker: Callable[..., FunctionType] = scope["make"]
    return maker
