"""The timed loops: mode to a function that makes ``n`` calls and returns the seconds they took.

``ok`` is ``fn(1)``, ``kw`` ``fn(x=1)``, ``stmt`` ``fn()``, ``exc`` a call that raises, ``cycle`` a failing call and then a
good one; with an ``a`` in front the call is awaited. Nothing stands in a loop but the call, so the cost of the empty
loop, which is subtracted, is the same for all.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from time import perf_counter
from typing import Any

from peers.rows import Fn


def ok(fn: Fn, n: int) -> float:
    began = perf_counter()
    for _ in repeat(None, n):
        fn(1)
    return perf_counter() - began


def kw(fn: Fn, n: int) -> float:
    began = perf_counter()
    for _ in repeat(None, n):
        fn(x=1)
    return perf_counter() - began


def stmt(fn: Fn, n: int) -> float:
    began = perf_counter()
    for _ in repeat(None, n):
        fn()
    return perf_counter() - began


def exc(fn: Fn, n: int) -> float:
    began = perf_counter()
    for _ in repeat(None, n):
        try:
            fn(1)
        except Exception:
            pass
    return perf_counter() - began


def cycle(fn: Fn, n: int) -> float:
    began = perf_counter()
    for _ in repeat(None, n):
        try:
            fn(1)
        except Exception:
            pass
        fn(0)
    return perf_counter() - began


async def aok(fn: Fn, n: int) -> float:
    began = perf_counter()
    for _ in repeat(None, n):
        await fn(1)
    return perf_counter() - began


async def astmt(fn: Fn, n: int) -> float:
    began = perf_counter()
    for _ in repeat(None, n):
        await fn()
    return perf_counter() - began


async def aexc(fn: Fn, n: int) -> float:
    began = perf_counter()
    for _ in repeat(None, n):
        try:
            await fn(1)
        except Exception:
            pass
    return perf_counter() - began


async def acycle(fn: Fn, n: int) -> float:
    began = perf_counter()
    for _ in repeat(None, n):
        try:
            await fn(1)
        except Exception:
            pass
        await fn(0)
    return perf_counter() - began


LOOPS: dict[str, Callable[[Fn, int], Any]] = {f.__name__: f for f in (ok, kw, stmt, exc, cycle, aok, astmt, aexc, acycle)}


def empty(n: int) -> float:
    """Seconds of the loop itself."""
    began = perf_counter()
    for _ in repeat(None, n):
        pass
    return perf_counter() - began


def first_call(fn: Fn, mode: str) -> Any:
    """One call as the loop makes it (the failing one of a cycle); a coroutine where it has to be awaited."""
    kind = mode.removeprefix("a")
    return fn() if kind == "stmt" else fn(x=1) if kind == "kw" else fn(1)
