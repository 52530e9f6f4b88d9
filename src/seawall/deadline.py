"""The time that is left: a budget for everything done on behalf of one request, and what it means inside it.

``with budget(1.2):`` sets a deadline for the code inside and all it calls, in this thread or task and the tasks started
from it. A budget within a budget can only shorten. Guards refuse a call for which nothing is left, cut the one that runs
into the end (coroutines: by cancelling them; a thread cannot be cut, see :class:`~seawall.Timeout`), and wait no longer
than that in any line or between any two attempts.

A program that never opens a budget pays one look at an empty list for each guarded call: ``used``.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from contextvars import ContextVar, Token, copy_context
from functools import wraps
from types import CoroutineType, TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast, final

from .amounts import LONGEST, is_amount
from .errors import ConfigError, DeadlineExceededError

if TYPE_CHECKING:
    from .drivers.ends import End

__all__ = ["Deadline", "ambient", "budget", "carry", "check", "current_deadline", "detach", "remaining", "used"]

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

used: list[None] = []
"""Not empty once a budget was opened in this process. Guards look here first: a context variable costs ten times that."""

_deadline: ContextVar[Deadline | None] = ContextVar("seawall_deadline", default=None)
ambient: Callable[[], Deadline | None] = _deadline.get
"""The deadline in force, or ``None``; :func:`current_deadline` without the call."""


@final
class Deadline:
    """A moment on a clock by which everything has to be done.

    Args:
        at: Seconds, as ``clock`` tells them.
        clock: Seconds that never go back. Default: :func:`time.monotonic`.

    To allow less for a part, open a ``budget`` inside: nothing here is changed.
    """

    __slots__ = ("at", "clock", "since")

    def __init__(self, at: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.at, self.clock, self.since = at, clock, clock()

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> Deadline:
        """The moment ``seconds`` from now."""
        return cls(clock() + seconds, clock)

    def __repr__(self) -> str:
        return f"<Deadline in {self.remaining():.3f} s>"

    def remaining(self) -> float:
        """Seconds left; 0.0 once there are none."""
        left = self.at - self.clock()
        return left if left > 0.0 else 0.0

    @property
    def expired(self) -> bool:
        """Whether nothing is left."""
        return self.clock() >= self.at

    def check(self) -> None:
        """Raise :class:`~seawall.DeadlineExceededError` if nothing is left. For loops that compute."""
        if self.clock() >= self.at:
            raise self.exceeded()

    def exceeded(self) -> DeadlineExceededError:
        """The error of what ran into this deadline, made afresh."""
        return DeadlineExceededError(f"the budget of {max(0.0, self.at - self.since) * 1000:.0f} ms is spent")


def current_deadline() -> Deadline | None:
    """The deadline in force in this thread or task, or ``None``."""
    return _deadline.get()


def remaining(at_most: float | None = None) -> float | None:
    """Seconds left of the budget in force: what to hand to a client as its time limit.

    Args:
        at_most: Never more than this; also what is returned where no budget is in force.

    Returns:
        Seconds, 0.0 once there are none; ``None`` where nothing limits.
    """
    deadline = _deadline.get()
    if deadline is None:
        return at_most
    left = deadline.remaining()
    return left if at_most is None or left < at_most else at_most


def check() -> None:
    """Raise :class:`~seawall.DeadlineExceededError` if a budget is in force and nothing of it is left."""
    deadline = _deadline.get()
    if deadline is not None:
        deadline.check()


class _Block:
    """A block in which another deadline is in force, or none."""

    __slots__ = ("_before",)

    def __init__(self) -> None:
        self._before: Token[Deadline | None] | None = None

    def _set(self, deadline: Deadline | None) -> None:
        if self._before is not None:
            raise RuntimeError("this block is entered already: write  with budget(...)  anew for each")
        self._before = _deadline.set(deadline)

    def _reset(self, kind: type[BaseException] | None) -> None:
        before, self._before = self._before, None
        try:
            if before is not None:
                _deadline.reset(before)
        except ValueError:
            if kind is not GeneratorExit:  # a generator that nobody exhausted is closed in whatever context that happens
                raise RuntimeError(
                    "this block was left in another thread or task than it was entered in: leave it in the same one"
                ) from None


@final
class budget(_Block):
    """Allow ``seconds`` for all that is done inside: ``with budget(1.2):``, ``async with budget(1.2):``, ``@budget(1.2)``.

    Inside another budget it can only shorten. ``with`` sets the deadline and lets guards, waits and retries obey it;
    ``async with``, and the decorator on a coroutine function, also end the block itself: whatever it awaits is cancelled
    at the deadline, and :class:`~seawall.DeadlineExceededError` comes out.

    Args:
        seconds: 0 or more, and finite. There is no default: only the caller knows what an answer is still worth.
        clock: Seconds that never go back. Default: :func:`time.monotonic`.

    Raises:
        ConfigError: ``seconds`` is no such number.

    Cost: one small object and two steps of a context variable.
    """

    __slots__ = ("_clock", "_end", "_seconds")

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        if type(seconds) is not float or not 0.0 <= seconds <= LONGEST:
            seconds = _length(seconds)
        self._before = None
        self._seconds, self._clock = seconds, clock
        self._end: End | None = None

    def __enter__(self) -> Deadline:
        """Set the deadline and return it."""
        clock, outer = self._clock, _deadline.get()
        at = clock() + self._seconds
        if outer is not None:
            at = min(at, outer.at if outer.clock is clock else clock() + outer.remaining())
        deadline = Deadline(at, clock)
        if not used:
            used.append(None)
        self._set(deadline)
        return deadline

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Put back what was in force before."""
        self._reset(kind)

    async def __aenter__(self) -> Deadline:
        """:meth:`__enter__`; what the block awaits is cancelled at the deadline."""
        from .drivers.ends import End  # not at the top: it imports asyncio

        deadline = self.__enter__()
        try:
            self._end = End(deadline.remaining())
        except BaseException:
            self._reset(None)
            raise
        return deadline

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Put back what was in force before; a cancellation by this deadline becomes its error."""
        deadline, end, self._end = _deadline.get(), self._end, None
        cut = end is not None and end.over(error)  # first: the timer must not outlive a block that was left wrongly
        self._reset(kind)
        if cut:
            raise (deadline or Deadline(0.0)).exceeded() from error

    def __call__(self, fn: F) -> F:
        """Give each call of ``fn`` this budget: the decorator.

        Raises:
            TypeError: ``fn`` is a generator; or, at the call, it returned a coroutine, which would run without the budget.
        """
        if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
            raise TypeError(f"a budget around the generator {fn!r} would hold for its consumer too: open it where that is")
        seconds, clock = self._seconds, self._clock
        if _is_coroutine_function(fn):

            async def awaited(*args: Any, **kwargs: Any) -> Any:
                async with budget(seconds, clock=clock):
                    return await fn(*args, **kwargs)

            return cast("F", wraps(fn)(awaited))

        def called(*args: Any, **kwargs: Any) -> Any:
            with budget(seconds, clock=clock):
                result = fn(*args, **kwargs)
            if type(result) is CoroutineType:
                result.close()
                raise TypeError(f"{fn!r} returned a coroutine, which would run outside its budget: make it  async def")
            return result

        return cast("F", wraps(fn)(called))


@final
class detach(_Block):
    """No budget inside: ``with detach():`` for work that must outlive the caller (an audit line, a refund).

    Tasks created inside stay without one. Also an ``async with`` block.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        """Forget the deadline for now."""
        self._set(None)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Put back what was in force before."""
        self._reset(kind)

    async def __aenter__(self) -> None:
        """Forget the deadline for now."""
        self._set(None)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Put back what was in force before."""
        self._reset(kind)


def carry(fn: Callable[P, R]) -> Callable[P, R]:
    """``fn`` with the context of this moment, for another thread: ``pool.submit(carry(fetch), url)``.

    New threads start with an empty context, so a budget would not reach them. Each call runs in a copy of its own, so one
    carried function may run in many threads at once.

    Raises:
        TypeError: ``fn`` is a coroutine function: calling it runs nothing of it. Carry what runs it:
            ``pool.submit(carry(asyncio.run), fetch(url))``.
    """
    if _is_coroutine_function(fn):
        raise TypeError(
            f"the coroutine function {fn!r} runs in the context of its task, wherever it was called: "
            "carry what runs it, as in  pool.submit(carry(asyncio.run), fetch(url))"
        )
    context = copy_context()

    @wraps(fn)
    def carried(*args: P.args, **kwargs: P.kwargs) -> R:
        return context.copy().run(fn, *args, **kwargs)

    return carried


def _is_coroutine_function(fn: Callable[..., Any]) -> bool:
    return any(inspect.iscoroutinefunction(what) for what in (fn, type(fn).__call__))


def _length(seconds: float) -> float:
    if callable(seconds):
        raise TypeError("a budget takes seconds, not the function: write  @budget(1.2)  above it")
    if not is_amount(seconds):
        raise ConfigError(f"a budget is in seconds, 0 or more and finite, not {seconds!r}")
    return float(seconds)
