"""How policies are put around a callable: decorator, ``call``/``acall``, ``with``/``async with``.

What has a ``breaker`` and a ``bulkhead`` (either may be ``None``) becomes usable in all these forms by deriving from
:class:`Guarded`. The guard needs nothing of them but their methods, so it stands below the policies.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from types import BuiltinFunctionType, CodeType, TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .blocks import blocks, innermost, left_elsewhere, open_block
from .forms import guard
from .kinds import FUNCTION, kind_of
from .nesting import repeats
from .plain import PLAIN, Passage, run_coroutine, run_function

if TYPE_CHECKING:
    from typing import Self

    from ..policies.retry import Retry
    from ..policies.timeout import Timeout

__all__ = ["Guarded", "Passage"]

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

_RUNS_LATER = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
_CALLED_AS_IT_IS = (type, BuiltinFunctionType)  # what call() need not look into


class Guarded:
    """The forms in which policies are put around calls."""

    __slots__ = ()

    @property
    def retry(self) -> Retry | None:
        """How often a call is attempted; ``None``: once."""
        return None

    @property
    def timeout(self) -> Timeout | None:
        """The limit of one attempt, or ``None``."""
        return None

    def __call__(self, fn: F) -> F:
        """Put the policies around ``fn``: the decorator.

        Functions, coroutine functions, generators, async generators, methods, partials and callable objects. The result
        is of the same kind and keeps name, docstring and signature. A generator is admitted at its first ``next`` and
        holds its place until it ends.

        Raises:
            TypeError: ``fn`` cannot be guarded; the message says what to do instead.
        """
        return guard(self, fn)

    def call(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """``fn(*args, **kwargs)`` behind the policies.

        Of a coroutine function or a generator this returns what the guarded one would: admitted when it runs.
        """
        code = getattr(fn, "__code__", None)
        runs_at_once = not code.co_flags & _RUNS_LATER if isinstance(code, CodeType) else isinstance(fn, _CALLED_AS_IT_IS)
        if runs_at_once or (kind := kind_of(fn)) is FUNCTION:
            result: R = run_function(self, fn, *args, **kwargs)
        else:
            result = PLAIN[kind](self, fn)(*args, **kwargs)
        return result

    async def acall(self, fn: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """``await fn(*args, **kwargs)`` behind the policies."""
        result: R = await run_coroutine(self, fn, *args, **kwargs)
        return result

    def __enter__(self) -> Self:
        """Admit the block as one call; an exception out of it is judged like one out of a call."""
        passage = Passage(self)
        try:
            passage.enter()
            blocks.set([self, passage, innermost(blocks.get())])
        except BaseException as error:
            passage.refused(error)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """End the call that the block is."""
        block = open_block(self)
        if block is None:
            raise left_elsewhere()
        block[0] = None
        passage: Passage = block[1]
        if error is None:
            passage.ended()
        else:
            passage.failed(error)

    async def __aenter__(self) -> Self:
        """:meth:`__enter__` for a coroutine: waits in line without blocking the event loop."""
        passage = Passage(self)
        try:
            await passage.aenter()
            blocks.set([self, passage, innermost(blocks.get())])
        except BaseException as error:
            passage.refused(error)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        """End the call that the block is."""
        self.__exit__(kind, error, tb)


repeats(Guarded.call.__code__, "self")
repeats(Guarded.acall.__code__, "self")
