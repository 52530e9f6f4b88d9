"""Is there time? One call may take so long, and no longer."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from types import CodeType, CoroutineType, TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from ..amounts import is_amount
from ..counters import birth, reading
from ..deadline import ambient, used
from ..drivers.pool import Abandoned, run
from ..errors import ConfigError, NoBudgetError, NoThreadError, TimeoutExceededError
from ..errors import seconds as said
from ..guard.blocks import blocks, innermost, left_elsewhere, open_block
from ..guard.forms import dressed, guard
from ..guard.kinds import COROUTINE, FUNCTION, kind_of
from ..guard.passage import no_budget
from ..guard.plain import run_coroutine

if TYPE_CHECKING:
    from typing import Self

    from ..drivers.timers import Entry, Fifo

__all__ = ["Timeout"]

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

_RUNS_LATER = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


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
    """Waits for a call no longer than ``seconds``, then raises :class:`~seawall.TimeoutExceededError`.

    Use it as a decorator (``@limit``, for functions and coroutine functions), by ``limit.call(fn, ...)`` and ``await
    limit.acall(fn, ...)``, or as a block (``async with limit:``). One limit may be used by any number of threads, tasks
    and event loops at once, nested too.

    Under ``@breaker`` the error counts as a failure of the target, other than a caller that lost patience (a cancellation
    from outside, :class:`~seawall.DeadlineExceededError`), which is a cut.

    **Coroutines are cancelled.** Who cancels is told apart as ``asyncio.timeout`` does it. A cancellation from outside
    that comes together with the end of the time wins. Of nested limits that end at the same moment the outer one
    raises. A call that suppresses the cancellation goes on, and what it then returns or raises is the outcome: a limit
    interrupts at the next ``await``, it cannot stop a computation, and the call may last longer than ``seconds`` for
    that reason or by its own clean-up.

    **Functions are abandoned.** Nothing can end a thread from outside, so the call runs in a thread of a pool, and what
    ends is the waiting for it. An abandoned call goes on by itself; what it returns or raises is dropped. So give the
    client that hangs a timeout of its own too: this limit is the net under it. The call sees a copy of its caller's
    context variables, budget included; what it sets there stays there, and what it keeps in thread-local data stays in
    a thread that others use after it. It works in any thread, without signals. In a thread whose event loop is running
    it blocks that loop, as any function does.

    A call never waits for a thread, and one dead target takes none from the others: threads are shared, but each limit
    counts what it has abandoned. When ``max_abandoned`` of its calls are still running, further ones are refused at
    once with :class:`~seawall.NoThreadError`, until one returns. Those that run at that moment are given up all the
    same when their time is over, so the most threads that a limit can lose are ``max_abandoned`` and as many as it had
    callers at once.

    Args:
        seconds: More than 0, and finite. There is no default: only the caller knows what an answer is still worth.
        name: Of the target, for the error.
        max_abandoned: Functions only: calls given up and still running, past which no more are made; 1 or more. The
            default of 32 is several times what a breaker needs to open (5), and is some MB of memory at the most.

    Raises:
        ConfigError: ``seconds`` or ``max_abandoned`` is no such number.

    Cost: for a coroutine a place in a queue; calls of one duration share one timer of the loop. On asyncio a limit
    never ends a call early, and late by no more than one turn of the loop; uvloop counts milliseconds, and may be late
    by two. For a function two switches between threads: 14 us on one core, up to 65 where each has
    to wake another.
    """

    __slots__ = ("_fifo", "_given_up", "_seconds", "max_abandoned", "name")

    def __init__(self, seconds: float, *, name: str = "", max_abandoned: int = 32) -> None:
        if callable(seconds):
            raise TypeError("a limit takes seconds, not the function: write  limit = Timeout(2.0)  and then  @limit")
        if not is_amount(seconds) or seconds == 0:
            raise ConfigError(f"a limit is in seconds, more than 0 and finite, not {seconds!r}")
        if type(max_abandoned) is not int or max_abandoned < 1:
            raise ConfigError(f"max_abandoned is a number of calls, 1 or more, not {max_abandoned!r}")
        self._seconds, self.name, self.max_abandoned = float(seconds), name, max_abandoned
        self._given_up: Abandoned | None = None
        self._fifo: Callable[[], Fifo | None] = _nowhere  # of the loop it was last used on; the driver's

    def __repr__(self) -> str:
        return f"<Timeout {said(self._seconds)}{self.name and ' for '}{self.name}>"

    # -- what the guard asks for
    breaker = bulkhead = retry = None

    @property
    def timeout(self) -> Timeout:
        """Itself: what the guard goes through."""
        return self

    @property
    def seconds(self) -> float:
        """How long a call may take."""
        return self._seconds

    @property
    def abandoned(self) -> int:
        """Calls that were given up and are still running in their threads."""
        return 0 if self._given_up is None else len(self._given_up.running)

    @property
    def abandoned_total(self) -> int:
        """Calls in threads that were given up since the beginning."""
        return 0 if self._given_up is None else reading(self._given_up.ticks)

    @property
    def given_up(self) -> Abandoned:
        """Those calls, as the pool counts them."""
        if self._given_up is None:
            with birth():
                self._given_up = self._given_up or Abandoned()
        return self._given_up

    # -- errors, made afresh
    def exceeded(self) -> TimeoutExceededError:
        """Of a call that exceeded this limit."""
        return TimeoutExceededError(self.name, self._seconds)

    def crowded(self, abandoned: int) -> NoThreadError:
        """Of a call that is not made because so many abandoned ones are still running."""
        calls = "1 call" if abandoned == 1 else f"{abandoned} calls"
        reason = (
            f"was not called: {calls} given up after {said(self._seconds)} still running, {self.max_abandoned} allowed; "
            "set a timeout on the client that hangs"
        )
        return NoThreadError(self.name, reason, "", None)

    def no_thread(self, error: BaseException) -> NoThreadError:
        """Of a call that is not made because the system starts no thread for it."""
        return NoThreadError(self.name, f"was not called: no thread to run it in ({error})", "", None)

    def too_late(self) -> NoBudgetError:
        """Of a call that is not made because its caller has no time left."""
        return no_budget(self.name, 0.0)

    # -- around a call
    def __call__(self, fn: F) -> F:
        """Put the limit around ``fn``: the decorator. The result keeps name, docstring and signature.

        Raises:
            TypeError: ``fn`` is neither a function nor a coroutine function.
        """
        kind = kind_of(fn)
        if kind is FUNCTION:
            return dressed(_limited(self, fn), fn)
        if kind is not COROUTINE:
            raise TypeError(
                f"cannot put a time limit on the {kind.value} {fn!r}: its consumer decides how long it takes. Limit the "
                "calls inside it, or the function that consumes it"
            )
        return guard(self, fn)

    def call(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """``fn(*args, **kwargs)`` under the limit, in a thread of the pool.

        Of a coroutine function this returns what the limited one would: a coroutine under the limit.

        Raises:
            TimeoutExceededError: It did not end in time, and goes on alone.
            DeadlineExceededError: The same, and its caller's budget had ended before the limit.
            NoThreadError: ``max_abandoned`` such calls are still running. It was not made.
            NoBudgetError: Nothing is left of its caller's budget. It was not made.
            TypeError: It returned a coroutine, whose running would have no limit.
        """
        code = getattr(fn, "__code__", None)
        runs_at_once = not code.co_flags & _RUNS_LATER if isinstance(code, CodeType) else isinstance(fn, type)
        if not runs_at_once and kind_of(fn) is not FUNCTION:
            return self(fn)(*args, **kwargs)
        result = run(self, fn, args, kwargs, ambient() if used else None)
        if type(result) is CoroutineType:
            raise _made_only(fn, result)
        return cast("R", result)

    async def acall(self, fn: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """``await fn(*args, **kwargs)`` under the limit, and its caller's budget."""
        if used and ambient() is not None:
            return cast("R", await run_coroutine(self, fn, *args, **kwargs))
        entry = _arm(self)
        try:
            result = await fn(*args, **kwargs)
        except BaseException as error:
            if entry.overdue(error):
                raise self.exceeded() from error
            raise
        entry.end()
        return result

    if not TYPE_CHECKING:  # a type checker refuses such a block by itself

        def __enter__(self):
            """Refuse a block in a thread."""
            raise TypeError(
                "a block in a thread cannot be ended: write  async with limit:  in a coroutine, or put the block's code "
                "into a function and write  @limit  above it"
            )

        def __exit__(self, *error):
            """Be there, so that ``with`` asks :meth:`__enter__`."""

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


def _limited(timeout: Timeout, fn: Callable[..., Any]) -> Callable[..., Any]:
    def limited(*args: Any, **kwargs: Any) -> Any:
        result = run(timeout, fn, args, kwargs, ambient() if used else None)
        if type(result) is CoroutineType:
            raise _made_only(fn, result)
        return result

    return limited


def _made_only(fn: object, coroutine: Any) -> TypeError:
    coroutine.close()
    return TypeError(
        f"{fn!r} returned a coroutine, and only the making of it was under the limit: put the limit around the coroutine "
        "function itself, or write  await limit.acall(...)"
    )
