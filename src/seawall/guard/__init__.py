"""How policies are put around a callable: decorator, ``call``/``acall``, ``with``/``async with``.

What has a ``breaker`` and a ``bulkhead`` (either may be ``None``) becomes usable in all these forms by deriving from
:class:`Guarded`. The guard needs nothing of them but their methods, so it stands below the policies.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import partial, partialmethod, update_wrapper
from types import BuiltinFunctionType, FunctionType, TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .plain import Passage, guard_async_generator, guard_coroutine, guard_function, guard_generator

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Guarded", "Passage"]

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

_RUNS_LATER = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
_CALLED_AS_IT_IS = (type, BuiltinFunctionType)  # what call() need not look into

# The blocks this thread or task stands in, innermost last. A tuple is never changed, so a child task starts with its
# parent's and takes nothing away from it.
_blocks: ContextVar[tuple[tuple[Guarded, Passage], ...]] = ContextVar("seawall_blocks", default=())


class Guarded:
    """The forms in which policies are put around calls."""

    __slots__ = ()

    def __call__(self, fn: F) -> F:
        """Put the policies around ``fn``: the decorator.

        Functions, coroutine functions, generators, async generators, methods, partials and callable objects. The result
        is of the same kind and keeps name, docstring and signature. A generator is admitted at its first ``next`` and
        holds its place until it ends.

        Raises:
            TypeError: ``fn`` cannot be guarded; the message says what to do instead.
        """
        guarded = _maker(fn)(self, fn)
        keep = isinstance(fn, FunctionType)
        return update_wrapper(guarded, fn, updated=("__dict__",) if keep else ())  # type: ignore[return-value]

    def call(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """``fn(*args, **kwargs)`` behind the policies.

        Of a coroutine function or a generator this returns what the guarded one would: admitted when it runs.
        """
        code = getattr(fn, "__code__", None)
        runs_at_once = isinstance(fn, _CALLED_AS_IT_IS) if code is None else not code.co_flags & _RUNS_LATER
        result: R = (guard_function if runs_at_once else _maker(fn))(self, fn)(*args, **kwargs)
        return result

    async def acall(self, fn: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """``await fn(*args, **kwargs)`` behind the policies."""
        result: R = await guard_coroutine(self, fn)(*args, **kwargs)
        return result

    def __enter__(self) -> Self:
        """Admit the block as one call; an exception out of it is judged like one out of a call."""
        passage, outer = Passage(self), _blocks.get()
        try:
            passage.enter()
            _blocks.set((*outer, (self, passage)))
        except BaseException as error:
            _blocks.set(outer)
            passage.refused(error)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """End the call that the block is."""
        passage = _leave_block(self)
        if error is None:
            passage.ended()
        else:
            passage.failed(error)

    async def __aenter__(self) -> Self:
        """:meth:`__enter__` for a coroutine: waits in line without blocking the event loop."""
        passage, outer = Passage(self), _blocks.get()
        try:
            await passage.aenter()
            _blocks.set((*outer, (self, passage)))
        except BaseException as error:
            _blocks.set(outer)
            passage.refused(error)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        """End the call that the block is."""
        self.__exit__(kind, error, tb)


def _leave_block(guard: Guarded) -> Passage:
    """The innermost open block of ``guard`` in this thread or task."""
    blocks = _blocks.get()
    for i in range(len(blocks) - 1, -1, -1):
        if blocks[i][0] is guard:
            _blocks.set(blocks[:i] + blocks[i + 1 :])
            return blocks[i][1]
    raise RuntimeError(
        "this block was left in another thread or task than it was entered in: enter and leave it in the same one, or "
        "guard the function itself"
    )


def _maker(fn: object) -> Callable[[Any, Any], Callable[..., Any]]:
    """Which form of guard fits ``fn``; decided once, at decoration."""
    if isinstance(fn, (staticmethod, classmethod, property, partialmethod)):
        raise TypeError(f"cannot guard a {type(fn).__name__} object: write its decorator above the guard, not below it")
    if isinstance(fn, type):
        name = fn.__name__
        raise TypeError(f"cannot guard the class {name}: guard its methods, or calls to it by .call({name}, ...)")
    if not callable(fn):
        raise TypeError(f"cannot guard {fn!r}: it is not callable. Guard the function that makes it")
    inner: Any = fn
    while isinstance(inner, partial):
        inner = inner.func
    kinds = (inner,) if inspect.isroutine(inner) else (inner, type(inner).__call__)
    if any(getattr(getattr(kind, "__code__", None), "co_flags", 0) & inspect.CO_ITERABLE_COROUTINE for kind in kinds):
        raise TypeError(f"cannot guard {fn!r}, made by types.coroutine: guard the coroutine function that awaits it")
    if any(inspect.isasyncgenfunction(kind) for kind in kinds):
        return guard_async_generator
    if any(inspect.isgeneratorfunction(kind) for kind in kinds):
        return guard_generator
    if any(inspect.iscoroutinefunction(kind) for kind in kinds):
        return guard_coroutine
    return guard_function
