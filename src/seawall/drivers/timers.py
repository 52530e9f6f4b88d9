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
from collections.abc import Callable
from contextvars import Context
from typing import TYPE_CHECKING, Any, final
from weakref import WeakKeyDictionary, WeakValueDictionary, ref

if TYPE_CHECKING:
    from ..policies.timeout import Timeout

__all__ = ["Entry", "Fifo", "arm"]

SPARE = 100
"""Disarmed entries, and idle durations, that are not worth a clean-up. As many as asyncio's own cancelled timers."""

UVLOOP_GRAIN = 0.0015
"""Seconds added to a timer on uvloop: it counts whole milliseconds from the last one that has begun (up to 1 ms early),
and rounds a delay to the nearest (up to 0.5 ms early)."""


def arm(timeout: Timeout) -> Entry:
    """Have the running task cancelled ``timeout.seconds`` from now, unless :meth:`Entry.end` comes first.

    Raises:
        RuntimeError: No event loop runs here, or it does not run a task at the moment: nothing could be cancelled.

    Cost: no loop timer, unless nobody else has armed this duration lately.
    """
    loop = get_running_loop()
    fifo = timeout._fifo()
    if fifo is None or fifo.loop is not loop:
        fifo = _find(loop, timeout.seconds)
        timeout._fifo = ref(fifo)
    task = current_task(loop)
    if task is None:
        raise RuntimeError("a time limit cancels the task it runs in, and this code does not run in a task")
    entry = Entry(fifo, task, fifo.clock() + fifo.seconds)
    fifo.entries.append(entry)
    if fifo.timer is None:
        fifo.start(fifo.seconds)
    return entry


@final
class Entry:
    """One call under a limit. It is ended once, by the task that armed it."""

    __slots__ = ("armed", "cancelling", "due", "fifo", "task")

    def __init__(self, fifo: Fifo, task: Task[Any], due: float) -> None:
        self.fifo, self.task, self.due = fifo, task, due
        self.cancelling = task.cancelling()  # requests that were there before: not ours, and not to be answered by us
        self.armed = True

    def end(self) -> bool:
        """The call has ended.

        Returns:
            Whether this entry has cancelled the task, and nobody else has: a cancellation that arrives is then its own.
        """
        if not self.armed:
            return self.task.uncancel() <= self.cancelling
        self.armed = False
        entries = self.fifo.entries
        if entries[-1] is self:
            entries.pop()
            if self.fifo.dead:
                self.fifo.trim()
        else:
            self.fifo.dead += 1
            if self.fifo.dead > SPARE:
                self.fifo.purge()
        return False

    def overdue(self, error: BaseException) -> bool:
        """The call has ended with ``error``. Whether that is the cancellation by this entry, and nobody else's."""
        return self.end() and isinstance(error, CancelledError)
