"""What a callable is, and so which form of guard fits it; decided once, at decoration."""

from __future__ import annotations

import inspect
from enum import Enum
from functools import partial, partialmethod
from types import CodeType

__all__ = ["ASYNC_GENERATOR", "COROUTINE", "FUNCTION", "GENERATOR", "Kind", "flags", "kind_of"]


class Kind(Enum):
    """What calling it gives."""

    FUNCTION = "function"
    COROUTINE = "coroutine"
    GENERATOR = "generator"
    ASYNC_GENERATOR = "async generator"


FUNCTION, COROUTINE, GENERATOR, ASYNC_GENERATOR = Kind


def flags(fn: object) -> int:
    """The flags of its code, 0 where it has none. A proxy that has every attribute has no code."""
    code = getattr(fn, "__code__", None)
    return code.co_flags if isinstance(code, CodeType) else 0


def kind_of(fn: object) -> Kind:
    """The kind of ``fn``, or :class:`TypeError` that says what to guard instead."""
    if isinstance(fn, (staticmethod, classmethod, property, partialmethod)):
        raise TypeError(f"cannot guard a {type(fn).__name__} object: write its decorator above the guard, not below it")
    if isinstance(fn, type):
        name = fn.__name__
        raise TypeError(f"cannot guard the class {name}: guard its methods, or calls to it by .call({name}, ...)")
    if not callable(fn):
        raise TypeError(f"cannot guard {fn!r}: it is not callable. Guard the function that makes it")
    inner: object = fn
    while isinstance(inner, partial):
        inner = inner.func
    kinds = (inner,) if inspect.isroutine(inner) else (inner, type(inner).__call__)
    if any(flags(kind) & inspect.CO_ITERABLE_COROUTINE for kind in kinds):
        raise TypeError(f"cannot guard {fn!r}, made by types.coroutine: guard the coroutine function that awaits it")
    if any(inspect.isasyncgenfunction(kind) for kind in kinds):
        return ASYNC_GENERATOR
    if any(inspect.isgeneratorfunction(kind) for kind in kinds):
        return GENERATOR
    if any(inspect.iscoroutinefunction(kind) for kind in kinds):
        return COROUTINE
    return FUNCTION
