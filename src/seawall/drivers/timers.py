"""Time limits for asyncio tasks: one loop timer for all calls that share a duration and an event loop.

Theory of operation. Equal durations fall due in the order in which they were armed. So the calls of one duration on one
loop stand in a :class:`Fifo`, and the loop needs a timer for its head only. Arming appends. Disarming marks the entry, and
entries at the tail that are disarmed are taken off at once: calls one after another leave nothing behind. Those in the
middle are taken out when they are more than half and more than a hundred, as asyncio does with cancelled handles. The
timer is not moved when the head is disarmed: when it fires, it looks who is at the head by then. A thousand short calls
under a limit of 10 s cost one timer in 10 s.

Lifetimes. A ``Fifo`` belongs to nobody: it lives as long as the loop's timer is pending (the timer calls a method of it)
or a call stands in it. Whoever wants to find it again holds it weakly, so nothing here keeps a loop alive, and a loop
that is closed drops its timers and with them all of this. Durations that never come again leave one idle ``Fifo`` each,
with a pending timer; when there are many, the idle ones are stopped.

Everything here runs in the thread of its loop and waits for nothing. Only ``_tables`` is used by several threads, each
under its own loop as the key: relied on is that one store into a dictionary, and one removal, is atomic.

Imports asyncio: to be imported by what runs in a loop, not by ``import seawall``.
"""

from __future__ import annotations

import time
from asyncio import AbstractEventLoop, BaseEventLoop, CancelledError, Task, TimerHandle, current_task, get_running_loop
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context
from typing import TYPE_CHECKING, Any, final
from weakref import WeakKeyDictionary, WeakValueDictionary, ref

if TYPE_CHECKING:
    from ..policies.timeout import Timeout

__all__ = [
    "Entry",
    "Fifo",
    "arm",
    "current_task",
    "dropped",
    "fifo_of",
    "get_running_loop",
    "is_uvloop",
    "limited",
    "no_task",
]

SPARE = 100
"""Disarmed entries, and idle durations, that are not worth a clean-up. As many as asyncio's own cancelled timers."""

UVLOOP_GRAIN = 0.0015
"""Seconds added to a timer on uvloop: it counts whole milliseconds from the last one that has begun (up to 1 ms early),
and rounds a delay to the nearest (up to 0.5 ms early). Too early a timer would be set again, for no time at all, and the
loop would turn in circles until the moment has come."""


@final
class Entry:
    """One call under a limit. It is ended once, by the task that armed it."""

    __slots__ = ("armed", "cancelling", "due", "fifo", "task")

    fifo: Fifo
    task: Task[Any]
    due: float
    cancelling: int  # requests that were there before: not ours, and not for us to answer
    armed: bool

    def end(self) -> bool:
        """The call has ended.

        Returns:
            Whether this entry has cancelled the task, and nobody else has: a cancellation that arrives is then its own.
        """
        if not self.armed:
            return self.task.uncancel() <= self.cancelling
        self.armed = False
        fifo = self.fifo
        entries = fifo.entries
        if entries[-1] is self:
            entries.pop()
            if fifo.dead:
                fifo.trim()
        else:
            del self.task  # nobody asks any more, and it may stand here for long
            fifo.bury()
        return False

    def overdue(self, error: BaseException) -> bool:
        """The call has ended with ``error``. Whether that is the cancellation by this entry, and nobody else's."""
        return self.end() and isinstance(error, CancelledError)


@final
class Fifo:
    """The calls of one duration on one loop, in the order of their ends. The last one is always armed."""

    __slots__ = ("__weakref__", "clock", "dead", "entries", "grain", "loop", "seconds", "timer")

    def __init__(self, loop: AbstractEventLoop, seconds: float, grain: float | None) -> None:
        self.loop, self.seconds = loop, seconds
        self.clock: Callable[[], float] = loop.time if grain is None else time.monotonic
        self.grain = grain or 0.0  # added to each timer
        self.entries: deque[Entry] = deque()
        self.dead = 0  # disarmed, and still in entries
        self.timer: TimerHandle | None = None  # pending while there are entries, and often for a while after

    def start(self, delay: float) -> None:
        """Have the loop call back in ``delay`` seconds."""
        # In an empty context: it is nobody's timer, and must not keep alive what its first user had in his.
        self.timer = self.loop.call_later(delay + self.grain, self._fire, context=Context())

    def stop(self) -> None:
        """Forget the timer, with nobody waiting for it: nothing but the loop's timer has kept this alive."""
        assert not self.entries
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def trim(self) -> None:
        """Take off what is disarmed at the tail."""
        entries = self.entries
        while entries and not entries[-1].armed:
            entries.pop()
            self.dead -= 1

    def bury(self) -> None:
        """One in the middle has been disarmed: take all of those out when that is worth it."""
        self.dead += 1
        if self.dead > SPARE and self.dead * 2 > len(self.entries):
            alive = [entry for entry in self.entries if entry.armed]
            self.entries.clear()
            self.entries.extend(alive)
            self.dead = 0

    def _fire(self) -> None:
        entries, now = self.entries, self.clock()
        try:
            while entries and (not entries[0].armed or entries[0].due <= now):
                entry = entries.popleft()
                if entry.armed:
                    entry.armed = False
                    entry.task.cancel()
                else:
                    self.dead -= 1
        finally:  # a task whose cancel() raises costs the others one turn of the loop
            self.timer = None  # only now: who arms meanwhile needs no timer of his own
            if entries:
                self.start(entries[0].due - now)


class _Durations:
    """The durations of one loop that are in use, or were lately. Holds nothing that holds the loop."""

    __slots__ = ("fifos", "grain", "room")

    def __init__(self, grain: float | None) -> None:
        self.fifos: WeakValueDictionary[float, Fifo] = WeakValueDictionary()
        self.grain = grain
        self.room = SPARE

    def add(self, fifo: Fifo) -> None:
        """Keep ``fifo`` to be found again; when there are many, stop the idle ones first."""
        if len(self.fifos) >= self.room:
            self._stop_idle()
            self.room = 2 * len(self.fifos) + SPARE
        self.fifos[fifo.seconds] = fifo

    def _stop_idle(self) -> None:
        for fifo in list(self.fifos.values()):
            if not fifo.entries:
                fifo.stop()


_tables: WeakKeyDictionary[AbstractEventLoop, _Durations] = WeakKeyDictionary()


def fifo_of(loop: AbstractEventLoop, timeout: Timeout) -> Fifo:
    """The one FIFO of this duration on this loop; ``timeout`` remembers it."""
    table = _tables.get(loop)
    if table is None:
        table = _tables[loop] = _Durations(_grain(loop))
    fifo = table.fifos.get(timeout.seconds)
    if fifo is None:
        fifo = Fifo(loop, timeout.seconds, table.grain)
        table.add(fifo)
    timeout._fifo = ref(fifo)
    return fifo


def arm(timeout: Timeout) -> Entry:
    """Have the running task cancelled ``timeout.seconds`` from now, unless :meth:`Entry.end` comes first.

    Raises:
        RuntimeError: No event loop runs here, or it does not run a task at the moment: nothing could be cancelled.

    Cost: no loop timer, unless nobody else has armed this duration lately.
    """
    loop = get_running_loop()
    fifo = timeout._fifo()
    if fifo is None or fifo.loop is not loop:
        fifo = fifo_of(loop, timeout)
    task = current_task(loop)
    if task is None:
        raise no_task()
    entry = Entry()  # filled here: an __init__ would cost as much as all the rest
    entry.fifo, entry.task, entry.due = fifo, task, fifo.clock() + fifo.seconds
    entry.cancelling = task.cancelling()
    entry.armed = True
    fifo.entries.append(entry)
    if fifo.timer is None:
        fifo.start(fifo.seconds)
    return entry


def dropped(call: Awaitable[Any]) -> None:
    """``call`` will never be awaited; a coroutine would complain of that when it is collected."""
    if isinstance(call, Coroutine):
        call.close()


async def limited(timeout: Timeout, call: Awaitable[Any]) -> Any:
    """``await call`` under the limit."""
    try:
        entry = arm(timeout)
    except BaseException:
        dropped(call)
        raise
    try:
        result = await call
    except BaseException as error:
        if entry.overdue(error):
            raise timeout.exceeded() from error
        raise
    entry.end()
    return result


def is_uvloop(loop: AbstractEventLoop) -> bool:
    """Whether the timers of ``loop`` are those of libuv, in whole milliseconds."""
    return any(kind.__module__.partition(".")[0] == "uvloop" for kind in type(loop).__mro__)


def no_task() -> RuntimeError:
    """What is raised where there is nothing to cancel."""
    return RuntimeError("a time limit cancels the task it is set in, and this code does not run in a task")


def _grain(loop: AbstractEventLoop) -> float | None:
    """What to add to the timers of ``loop`` so that none is early; ``None`` for a loop with a time of its own.

    asyncio's own loops read ``time.monotonic``, and so does uvloop, but in whole milliseconds: by its ``time()`` a limit
    could be short by one. A loop that tells another time, a virtual one, is believed.
    """
    if is_uvloop(loop):
        return UVLOOP_GRAIN
    return 0.0 if getattr(loop.time, "__func__", None) is BaseEventLoop.time else None
