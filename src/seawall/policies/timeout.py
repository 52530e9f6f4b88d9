"""Is there time? One call may take so long, and no longer."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ..errors import ConfigError, TimeoutExceededError
from ..errors import seconds as said
from ..guard.blocks import blocks, innermost, left_elsewhere, open_block
from ..guard.forms import dressed
from ..guard.kinds import COROUTINE, kind_of

if TYPE_CHECKING:
    from typing import Self

    from ..drivers.timers import Entry, Fifo

__all__ = ["Timeout"]

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Coroutine[Any, Any, Any]])

LONGEST = sys.float_info.max  # the largest number of seconds there is: nothing to wait for, but nothing to refuse

def _first_arm(timeout: Timeout) -> Entry:
    """The driver imports asyncio. A program that uses no limit does not pay for that."""
    global _arm
    from ..drivers.timers import arm

    _arm = arm
    return arm(timeout)


_arm: Callable[[Timeout], Entry] = _first_arm


def _nowhere() -> None:
    """Stands for the weak reference to a FIFO until there is one."""


class Timeout:
    """Ends a call that has not ended after ``seconds``: cancels it and raises :class:`~seawall.TimeoutExceededError`.

    Use it as a decorator (``@limit``, for coroutine functions), by ``await limit.acall(fn, ...)``, or as a block
    (``async with limit:``). One limit may be used by any number of tasks and event loops at once, nested too.

    Under ``@breaker`` the error counts as a failure of the target, other than a caller that lost patience (a cancellation
    from outside, :class:`~seawall.DeadlineExceededError`), which is a cut.

    Who cancels is told apart as ``asyncio.timeout`` does it. A cancellation from outside that comes together with the
    end of the time wins. Of nested limits that end at the same moment the outer one raises. A call that suppresses the
    cancellation goes on, and what it then returns or raises is the outcome: a limit interrupts at the next ``await``, it
    cannot stop a computation, and the call may last longer than ``seconds`` for that reason or by its own clean-up.

    Args:
        seconds: More than 0, and finite. There is no default: only the caller knows what an answer is still worth.
        name: Of the target, for the error.

    Raises:
        ConfigError: ``seconds`` is no such number.

    Cost: a place in a queue; calls of one duration share one timer of the loop. On asyncio a limit never ends a call
    early, and late by no more than one turn of the loop; uvloop counts milliseconds, and may be late by two.
    """

    __slots__ = ("_fifo", "_seconds", "name")

    def __init__(self, seconds: float, *, name: str = "") -> None:
        if callable(seconds):
            raise TypeError("a limit takes seconds, not the function: write  limit = Timeout(2.0)  and then  @limit")
        if not isinstance(seconds, (int, float)) or not 0 < seconds <= LONGEST:
            raise ConfigError(f"a limit is in seconds, more than 0 and finite, not {seconds!r}")
        self._seconds, self.name = float(seconds), name
        self._fifo: Callable[[], Fifo | None] = _nowhere  # of the loop it was last used on; the driver's

    def __repr__(self) -> str:
        return f"<Timeout {said(self._seconds)}{self.name and ' for '}{self.name}>"

    @property
    def seconds(self) -> float:
        """How long a call may take."""
        return self._seconds

    def exceeded(self) -> TimeoutExceededError:
        """The error of a call that exceeded this limit, made afresh."""
        return TimeoutExceededError(self.name, self._seconds)

    def __call__(self, fn: F) -> F:
        """Put the limit around ``fn``: the decorator. The result keeps name, docstring and signature.

        Raises:
            TypeError: ``fn`` is not a coroutine function.
        """
        _refuse_what_cannot_be_cancelled(fn)
        from ..drivers.timers import limit  # not at the top: it imports asyncio

        return dressed(limit(self, fn), fn)

    async def acall(self, fn: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """``await fn(*args, **kwargs)`` under the limit."""
        entry = _arm(self)
        try:
            result = await fn(*args, **kwargs)
        except BaseException as error:
            if entry.overdue(error):
                raise self.exceeded() from error
            raise
        entry.end()
        return result

    async def __aenter__(self) -> Self:
        """Put the block under the limit."""
        blocks.set([self, _arm(self), innermost(blocks.get())])
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        """End the block."""
        block = open_block(self)
        if block is None:
            if kind is GeneratorExit:  # a task that will never go on is collected, in whatever context that happens
                return
            raise left_elsewhere()
        entry: Entry = block[1]
        block[0] = block[1] = None
        if error is None:
            entry.end()
        elif entry.overdue(error):
            raise self.exceeded() from error


def _refuse_what_cannot_be_cancelled(fn: object) -> None:
    kind = kind_of(fn)
    if kind is not COROUTINE:
        raise TypeError(
            f"cannot put a time limit on the {kind.value} {fn!r}: only a coroutine function can be cancelled while it "
            "waits. Limits on what runs in threads come later; until then set a timeout on the client it uses"
        )
