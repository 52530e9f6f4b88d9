"""Time limits for calls in threads: the call runs in a thread of this pool, and its caller waits no longer than the limit.

Theory of operation. A thread cannot be ended from outside: no signal reaches it, and an exception injected into it
strikes at any line, or never where it hangs. So what is limited is the waiting. The caller hands the call over and
blocks; when the time is over it leaves, and the call goes on alone, *abandoned*. Nobody gets its result.

Who was first. A call that is running is the one element of its ``baton``. The caller that leaves takes it, and so does
the thread that comes to the end of the call; ``del baton[-1]`` is one atomic step, so one of them gets it, and the
other finds nothing. Where the thread was first the outcome is there and is the caller's. Where the caller was first the
thread puts back what the call still holds (:class:`Keeper`: the permit of a bulkhead) when it returns. Never both,
never neither, also if a ``KeyboardInterrupt`` strikes the waiting caller: a signal is handled at the return of a call,
at the first line of a function and at the backward jump of a loop, and what must not be torn apart here has none of
these in it. It stands in one frame for that reason, without a call: ``list += (x,)`` instead of ``append``.

No call ever waits for a thread: where none is idle, one more is started. So a dead target cannot take the threads of
another one. What bounds their number are the callers, who each wait for one call, and for what they left behind the
``max_abandoned`` of each limit, asked at the door.

Threads. One has a ``free`` list with one element while it is nobody's. Who takes that element may give it work: a
caller, or the thread itself when it has waited long enough and ends. ``idle`` is where callers find it, the last one
first, so that those not needed come to their end. A thread that a caller has looked up and then, interrupted, not taken
is on no list, and ends by itself. All are daemons: no hung call keeps the process from ending. There is no lock over it
all: relied on is that each of ``del list[-1]``, ``list +=``, ``dict.popitem``, ``dict[key] =`` and ``dict.pop`` is one
atomic step, with the GIL and (by the container's own lock) without.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context, copy_context
from itertools import count
from threading import TIMEOUT_MAX, Lock, Thread
from typing import TYPE_CHECKING, Any, Protocol, final

from ..counters import reset_in_child
from ..outcome import stands_between

if TYPE_CHECKING:
    from ..deadline import Deadline
    from ..policies.timeout import Timeout

__all__ = ["IDLE", "Abandoned", "Keeper", "run"]

IDLE = 10.0
"""Seconds a thread waits for its next call before it ends. Long beside the gaps of a busy program, and what one burst has
started is gone soon after."""


class Keeper(Protocol):
    """Holds something for the time a call runs, however long that is."""

    held: Any
    """What is held, or ``None``. It is ``None`` after :func:`run` if the call was abandoned: it is no more the caller's."""

    def late(self, held: Any) -> object:
        """An abandoned call has returned: put ``held`` back. Called once, in the call's thread; must not raise."""


@final
class Abandoned:
    """The calls of one limit that were given up."""

    __slots__ = ("__weakref__", "running", "ticks")

    def __init__(self) -> None:
        self.running: list[None] = []  # an element for each that has not returned
        self.ticks = count()  # raised by each
        reset_in_child(self)

    def _after_fork(self) -> None:
        """In the child none of their threads is there."""
        self.running = []


@final
class _Nothing:
    """Keeps nothing."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held = None

    def late(self, held: None) -> None:
        """Never called."""


@final
class _Call:
    """One call on its way into a thread, and its outcome on the way back."""

    __slots__ = ("args", "baton", "context", "done", "error", "fn", "held", "keeper", "kwargs", "result", "running")

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    context: Context
    keeper: Keeper
    held: Any
    running: list[None]  # where it is counted if it is abandoned
    baton: list[None]
    done: Lock  # free once it has ended, unless it was abandoned
    result: Any
    error: BaseException | None


@final
class _Worker:
    """A thread of the pool, as callers see it."""

    __slots__ = ("call", "free", "wake")

    def __init__(self) -> None:
        self.call: _Call | None = None
        self.free: list[None] = [None]
        self.wake = Lock()
        self.wake.acquire()


@final
class _Pool:
    """The threads of this process."""

    __slots__ = ("__weakref__", "idle", "numbers")

    def __init__(self) -> None:
        self.idle: dict[_Worker, None] = {}
        self.numbers = count(1)
        reset_in_child(self)

    def _after_fork(self) -> None:
        """In the child there is no thread but the one that forked."""
        self.idle = {}


_NOTHING = _Nothing()
_pool = _Pool()


def run(
    timeout: Timeout,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    deadline: Deadline | None = None,
    keeper: Keeper = _NOTHING,
) -> Any:
    """``fn(*args, **kwargs)`` in a thread of the pool, in a copy of this context. Blocks no longer than the limit.

    Args:
        timeout: The limit.
        fn: What to call.
        args: By place.
        kwargs: By name.
        deadline: An end that may come before the limit's.
        keeper: What it holds stays held until the call returns. Is the call abandoned, ``keeper.held`` is set to
            ``None`` in the step that abandons it, and ``keeper.late(held)`` is called at the end. In any other case it
            is untouched: the caller puts it back, as if it had made the call itself.

    Raises:
        TimeoutExceededError: The limit has passed; the call was abandoned.
        DeadlineExceededError: ``deadline`` has passed, before the limit; the call was abandoned.
        NoBudgetError: It had passed before. The call was not made.
        NoThreadError: As many abandoned calls as allowed are running, or no thread can be started. The call was not made.
        BaseException: What the call raised, the same object, with its traceback.

    Cost: two switches between threads; a thread is started only where none is idle.
    """
    abandoned = timeout.given_up
    running = abandoned.running
    if len(running) >= timeout.max_abandoned:
        raise timeout.crowded(len(running))
    limit: Timeout | Deadline = timeout
    seconds = timeout.seconds
    if deadline is not None and (left := deadline.remaining()) < seconds:
        limit, seconds = deadline, left
        if left <= 0.0:
            raise timeout.too_late()
    call = _Call()  # filled here: an __init__ with so many arguments is slower
    call.fn, call.args, call.kwargs, call.context = fn, args, kwargs, copy_context()
    call.keeper, call.held, call.running = keeper, keeper.held, running
    call.result = call.error = None
    baton: list[None] = []
    call.baton = baton
    call.done = done = Lock()
    done.acquire()
    late = False
    try:
        _hand_over(call, timeout)
        done.acquire(True, min(seconds, TIMEOUT_MAX))
    finally:
        if baton:  # still running; no signal from here to the last step
            running += (None,)  # before the baton is taken: the thread counts down as soon as it finds it gone
            try:
                del baton[-1]
                keeper.held = None
                late = True
            except IndexError:  # it has ended just now
                del running[-1]
            if late:
                next(abandoned.ticks)
    if late:
        del call  # this frame stands in the traceback of the error, and would keep what the call returns one day
        raise limit.exceeded()
    if call.error is None:
        return call.result
    error, context = call.error, call.error.__context__
    try:
        raise error
    finally:
        if context is not None:  # what the raising has put in its place: the error that our caller is handling
            _set_context(error, context)
        del call, error, context  # else the traceback, this frame and the error would hold each other


_set_context: Callable[[BaseException, BaseException], None] = vars(BaseException)["__context__"].__set__
# Not by assignment: an exception may have a __setattr__ of its own, as a frozen dataclass does.


stands_between(run.__code__)


def _hand_over(call: _Call, timeout: Timeout) -> None:
    """Have a thread begin with ``call``, at once."""
    baton = call.baton
    while True:
        try:
            worker, _ = _pool.idle.popitem()
        except KeyError:
            worker = _start(timeout)
        try:
            del worker.free[-1]
        except IndexError:  # it has come to its end just now
            continue
        worker.call = call  # no signal from the taking to the release: whoever is taken is woken, with a call
        baton += (None,)
        worker.wake.release()
        return


def _start(timeout: Timeout) -> _Worker:
    worker = _Worker()
    try:
        # A Thread, not a bare one: logging, debuggers and profilers know it, and what it runs may ask for its name.
        Thread(target=_work, args=(worker,), name=f"seawall-{next(_pool.numbers)}", daemon=True).start()
    except RuntimeError as error:  # the system's limit, or the interpreter is coming to its end
        raise timeout.no_thread(error) from error
    return worker


def _work(worker: _Worker) -> None:
    """What a thread of the pool does: one call after another, until none has come for a while."""
    wake, free, idle = worker.wake, worker.free, _pool.idle
    while wake.acquire(True, IDLE) or not _ends(worker):
        waiting = _perform(worker)  # in a frame of its own, so that nothing of the call is kept here
        if idle is not _pool.idle:  # the call has forked, and this is the child: nobody waits here
            return
        free += (None,)
        idle[worker] = None  # before the caller goes on: its next call finds this thread
        if waiting is not None:
            waiting.release()


def _perform(worker: _Worker) -> Lock | None:
    """Make the call that has come. Returns what its caller waits for, ``None`` if it does not any more."""
    call, worker.call = worker.call, None
    assert call is not None
    try:
        call.result = call.context.run(call.fn, *call.args, **call.kwargs)
    except BaseException as error:
        # Without the entry of this frame, which is nothing to the reader. By a method: see _set_context.
        call.error = error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)
    waiting: Lock | None = call.done
    try:
        del call.baton[-1]
    except IndexError:
        waiting = None
        del call.running[-1]
        if call.held is not None:
            call.keeper.late(call.held)
    del call  # the frame of a call that raised leads back to this one: no cycle
    return waiting


def _ends(worker: _Worker) -> bool:
    """The time of waiting is over: end, unless somebody has just taken this thread; then his call is on its way."""
    try:
        del worker.free[-1]
    except IndexError:
        worker.wake.acquire()
        return False
    _pool.idle.pop(worker, None)
    return True
