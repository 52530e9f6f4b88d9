"""What is measured: the functions that are called, and the rows with their candidates.

A row is one question, "what does a closed breaker add to a call?"; a candidate is one answer to it. Candidates come from
factories, plain or async, that return what is called. A factory that raises :class:`Skip` or ``ImportError`` leaves its
candidate out.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

BIG = 10**9     # a threshold out of reach
HOUR = 3600.0   # a time out of reach
BASELINES = ("bare", "wrapper", "exact-wrapper")
Fn = Callable[..., Any]
Factory = Callable[[], Any]


class Skip(Exception):
    """This candidate is not to be had: not installed, or no such feature."""


# -- what is called
def noop(x: int) -> int:
    return x


async def anoop(x: int) -> int:
    return x


async def ayield(x: int) -> int:
    await asyncio.sleep(0)  # one real trip through the event loop
    return x


def fail(x: int) -> int:
    raise ValueError


async def afail(x: int) -> int:
    raise ValueError


def flip(x: int) -> int:
    if x:
        raise ValueError
    return x


async def aflip(x: int) -> int:
    if x:
        raise ValueError
    return x


def nothing() -> None:
    pass


async def anothing() -> None:
    pass


# -- the two measures beside the bare call
def empty_wrapper(fn: Fn) -> Fn:
    """What any decorator costs that takes ``*args, **kwargs`` and does nothing."""
    if inspect.iscoroutinefunction(fn):
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            return await fn(*args, **kwargs)
    else:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return fn(*args, **kwargs)
    return functools.wraps(fn)(wrapper)


def exact_wrapper(fn: Fn) -> Fn:
    """An empty wrapper with the signature ``f(x)``: the floor for generated code."""
    if inspect.iscoroutinefunction(fn):
        async def wrapper(x: int) -> Any:
            return await fn(x)
    else:
        def wrapper(x: int) -> Any:
            return fn(x)
    return wrapper


# -- bringing a candidate into a state
def after_failure(fn: Fn) -> Fn:
    """``fn``, after one call that failed."""
    try:
        fn(1)
    except Exception:
        pass
    return fn


async def aafter_failure(fn: Fn) -> Fn:
    """:func:`after_failure` for a coroutine function."""
    try:
        await fn(1)
    except Exception:
        pass
    return fn


class Patient:
    """A target that fails until it is ``well``, for candidates that are to be held half-open."""

    def __init__(self) -> None:
        self.well = False

    def function(self) -> Fn:
        def answer(x: int) -> int:
            if not self.well:
                raise ValueError
            return x
        return answer

    def coroutine(self) -> Fn:
        async def answer(x: int) -> int:
            if not self.well:
                raise ValueError
            return x
        return answer


def half_open(guard: Callable[[Fn], Fn]) -> Fn:
    """A guarded function after one failure that opened it and one trial that went well."""
    patient = Patient()
    guarded = after_failure(guard(patient.function()))
    patient.well = True
    guarded(1)
    return guarded


async def ahalf_open(guard: Callable[[Fn], Fn]) -> Fn:
    """:func:`half_open` for a coroutine function."""
    patient = Patient()
    guarded = await aafter_failure(guard(patient.coroutine()))
    patient.well = True
    await guarded(1)
    return guarded


# -- the rows
def raises_own(error: BaseException | None) -> bool:
    """The error of the function itself came through."""
    return type(error) is ValueError


def fails(error: BaseException | None) -> bool:
    """Some error came: pybreaker and aiobreaker put their own in the place of the one that opened them."""
    return error is not None


def refuses(error: BaseException | None) -> bool:
    """The function was not called: what came is the guard's own error."""
    return error is not None and not raises_own(error)


@dataclass
class Row:
    """One question.

    Attributes:
        name: Short, for ``--rows``. An ``a`` in front: the async twin.
        mode: How it is called; see loops.py.
        doc: In words.
        target: What is called inside; ``None``: nothing, and bare is the call of an empty function without arguments.
        right: Whether what a call raised is what this row is about. Without: it may not raise.
        cands: Name to factory.
    """

    name: str
    mode: str
    doc: str
    target: Fn | None = None
    right: Callable[[BaseException | None], bool] | None = None
    cands: dict[str, Factory] = field(default_factory=dict)

    def __post_init__(self) -> None:
        fn = self.target
        if fn is None:
            self.cands["bare"] = lambda: anothing if self.mode.startswith("a") else nothing
        else:
            self.cands["bare"] = lambda: fn
            self.cands["wrapper"] = lambda: empty_wrapper(fn)
            self.cands["exact-wrapper"] = lambda: exact_wrapper(fn)


ROWS = {row.name: row for row in (
    Row("call", "ok", "the bare call, one positional argument", noop),
    Row("call_kw", "kw", "the same with a keyword argument", noop),
    Row("acall", "aok", "awaiting a coroutine function", anoop),
    Row("breaker_closed", "ok", "breaker, closed, success", noop),
    Row("breaker_failure", "exc", "breaker, closed, the call raises and is counted", fail, raises_own),
    Row("breaker_open", "exc", "breaker, open, refused (bare: a call that raises)", fail, refuses),
    Row("breaker_cycle", "cycle", "breaker: opens, trial, closes (one failing and one good call)", flip, fails),
    Row("breaker_halfopen", "ok", "breaker held half-open, the trial succeeds", noop),
    Row("breaker_api", "stmt", "breaker by hand: allow, report success; nothing is called"),
    Row("breaker_with", "stmt", "breaker as a `with` block, empty body"),
    Row("abreaker_closed", "aok", "async breaker, closed, success", anoop),
    Row("abreaker_failure", "aexc", "async breaker, closed, the call raises and is counted", afail, raises_own),
    Row("abreaker_open", "aexc", "async breaker, open, refused", afail, refuses),
    Row("abreaker_cycle", "acycle", "async breaker: opens, trial, closes", aflip, fails),
    Row("abreaker_halfopen", "aok", "async breaker held half-open, the trial succeeds", anoop),
    Row("abreaker_with", "astmt", "breaker as an `async with` block, empty body"),
    Row("bulkhead_prim", "stmt", "bulkhead by hand: acquire, release; nothing is called"),
    Row("bulkhead", "ok", "bulkhead around a call", noop),
    Row("abulkhead_prim", "astmt", "async bulkhead by hand"),
    Row("abulkhead", "aok", "async bulkhead around a call", anoop),
    Row("stack", "ok", "breaker + bulkhead", noop),
    Row("astack", "aok", "async breaker + bulkhead", anoop),
    Row("retry_first_try", "ok", "retry, the first attempt goes well", noop),
    Row("aretry_first_try", "aok", "async retry, the first attempt goes well", anoop),
    Row("stack_no_timeout", "ok", "retry + breaker + bulkhead", noop),
    Row("stack_deadline", "ok", "the same under a time limit for the whole call (a rival: by a pool of threads)", noop),
    Row("astack_no_timeout", "aok", "async retry + breaker + bulkhead", anoop),
    Row("astack_timeout_yield", "aok", "async retry + breaker + bulkhead + timeout, suspends once", ayield),
    Row("atimeout", "aok", "async timeout", anoop),
    Row("atimeout_yield", "aok", "async timeout around a coroutine that suspends once", ayield),
)}


def add(row: str, cand: str, factory: Factory) -> None:
    """Let a candidate take part in a row."""
    ROWS[row].cands[cand] = factory


def wrong_end(row: Row, error: BaseException | None) -> str | None:
    """What is wrong with a first call's end, or ``None``: a guard that does something else is not measured."""
    if row.right is None:
        return None if error is None else f"raised {type(error).__name__}: {error}"
    return None if row.right(error) else f"ended with {error!r}, which is not what this row is about"
