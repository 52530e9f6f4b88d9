"""The end of a budget for a running asyncio task: one cancellation, told apart from everybody else's.

A budget ends at a moment of its own, so it has a loop timer of its own; limits of equal duration share one, see
:mod:`seawall.drivers.timers`. Who cancels is told apart as ``asyncio.timeout`` does it.

Imports asyncio: to be imported by what runs in a loop, not by ``import seawall``.
"""

from __future__ import annotations

from asyncio import CancelledError, current_task, get_running_loop
from collections.abc import Awaitable
from typing import Protocol, TypeVar, final

from .timers import UVLOOP_GRAIN, dropped, is_uvloop, no_task

__all__ = ["End", "Ending", "until"]

R = TypeVar("R")


class Ending(Protocol):
    """Whatever time can run out for: a deadline, or an attempt of an adapter's."""

    def remaining(self) -> float:
        """Seconds left, 0 or more."""

    def exceeded(self) -> Exception:
        """The error of what ran into the end, made afresh."""


@final
class End:
    """Cancels the running task in ``seconds``, unless :meth:`over` comes first."""

    __slots__ = ("_cancelling", "_fired", "_task", "_timer")

    def __init__(self, seconds: float) -> None:
        loop = get_running_loop()
        task = current_task(loop)
        if task is None:
            raise no_task()
        self._task, self._cancelling, self._fired = task, task.cancelling(), False
        self._timer = loop.call_later(seconds + UVLOOP_GRAIN if is_uvloop(loop) else seconds, self._fire)

    def _fire(self) -> None:
        self._fired = True
        self._task.cancel()

    def disarm(self) -> None:
        """It cancels nobody any more. :meth:`over` is to be said all the same: it may have done so before."""
        self._timer.cancel()

    def over(self, error: BaseException | None) -> bool:
        """It has ended, with ``error``. Whether that is the cancellation by this end, and nobody else's."""
        if not self._fired:
            self.disarm()
            return False
        return self._task.uncancel() <= self._cancelling and isinstance(error, CancelledError)


async def until(deadline: Ending, awaitable: Awaitable[R]) -> R:
    """``await awaitable``, cancelled at the deadline: then :meth:`~Ending.exceeded` is raised."""
    try:
        end = End(deadline.remaining())
    except BaseException:
        dropped(awaitable)
        raise
    try:
        result = await awaitable
    except BaseException as error:
        if end.over(error):
            raise deadline.exceeded() from error
        raise
    end.over(None)
    return result
