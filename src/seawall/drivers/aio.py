"""Waiting, in line or between attempts, by suspending the running asyncio task."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import inf
from typing import TYPE_CHECKING, Any

from ..plan import Attempt, Ended, Plan
from . import FIRST_LOOK

if TYPE_CHECKING:
    import asyncio

    from ..policies.bulkhead import Bulkhead
    from ..policies.slots import Ticket

__all__ = ["perform", "wait_in_line"]


async def perform(plan: Plan, attempt: Callable[[int], Awaitable[Any]]) -> Any:
    """Carry out ``plan``: await ``attempt(number)`` for each attempt, suspend for each wait.

    Returns:
        What counts in the end.
    """
    import asyncio  # not at the top: who awaits has imported it, who does not need not pay for it

    try:
        effect = next(plan)
        while True:
            if isinstance(effect, Attempt):
                try:
                    ended = Ended(await attempt(effect.number))
                except Exception as error:
                    ended = Ended(None, error)
                effect = plan.send(ended)
            else:
                await asyncio.sleep(effect.seconds)
                effect = next(plan)
    except StopIteration as stop:
        ended = stop.value
    except BaseException:
        plan.close()
        raise
    try:
        return ended.unwrap()
    finally:
        del ended  # the traceback of an error holds this frame: no cycle


async def wait_in_line(bulkhead: Bulkhead, ticket: Ticket, seconds: float | None) -> None:
    """Join the line and suspend until ``ticket`` has its place, ``seconds`` at the most (``None``: without end).

    Raises:
        BulkheadFullError: No room in line, or no place came free in time.
    """
    import asyncio  # not at the top: who awaits has imported it, who does not need not pay for it

    try:
        if bulkhead.join(ticket):
            return
        loop = asyncio.get_running_loop()
        granted = loop.create_future()
        ticket.wake = lambda: loop.call_soon_threadsafe(_set, granted)  # raises RuntimeError when the loop is closed
        left, look = inf if seconds is None else seconds, FIRST_LOOK
        while left > 0.0 and not ticket.granted and not (await asyncio.wait([granted], timeout=min(left, look)))[0]:
            left, look = left - look, look * 2.0
            bulkhead.pump()
        bulkhead.claim(ticket, seconds)
    except BaseException:
        bulkhead.withdraw(ticket)
        raise


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
