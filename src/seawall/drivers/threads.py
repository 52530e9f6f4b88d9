"""Waiting, in line or between attempts, by blocking the calling thread."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from math import inf
from threading import TIMEOUT_MAX, Lock
from typing import TYPE_CHECKING, Any

from ..plan import Attempt, Ended, Plan
from . import FIRST_LOOK

if TYPE_CHECKING:
    from ..policies.bulkhead import Bulkhead
    from ..policies.slots import Ticket

__all__ = ["perform", "wait_in_line"]

LONGEST_SLEEP = 86400.0
"""Seconds that are slept at once. No system sleeps for ever, and ``TIMEOUT_MAX`` is too much for some by the time since
their start; a day, at which asyncio's selectors wake too, is good on all of them."""


def perform(plan: Plan, attempt: Callable[[int], Any], sleep: Callable[[float], object] = time.sleep) -> Any:
    """Carry out ``plan``: call ``attempt`` with the number of each attempt, block for each wait.

    Returns:
        What counts in the end.
    """
    try:
        effect = next(plan)
        while True:
            if isinstance(effect, Attempt):
                try:
                    ended = Ended(attempt(effect.number))
                except Exception as error:
                    ended = Ended(None, error)
                effect = plan.send(ended)
            else:
                left = effect.seconds
                while left > LONGEST_SLEEP:
                    sleep(LONGEST_SLEEP)
                    left -= LONGEST_SLEEP
                sleep(left)
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


def wait_in_line(bulkhead: Bulkhead, ticket: Ticket, seconds: float | None) -> None:
    """Join the line and block until ``ticket`` has its place, ``seconds`` at the most (``None``: without end).

    Raises:
        BulkheadFullError: No room in line, or no place came free in time.
        RuntimeError: This thread runs an event loop, which would stand still, and with it the tasks to wait for.
    """
    try:
        if bulkhead.join(ticket):
            return
        _refuse_on_a_running_loop(bulkhead.name)
        latch = Lock()
        latch.acquire()
        ticket.wake = latch.release
        left, look = inf if seconds is None else seconds, FIRST_LOOK
        while left > 0.0 and not ticket.granted and not latch.acquire(timeout=min(left, look, TIMEOUT_MAX)):
            left, look = left - look, look * 2.0
            bulkhead.pump()
        bulkhead.claim(ticket, seconds)
    except BaseException:
        while not ticket.left:  # a second interrupt may fall into the withdrawal itself
            try:
                bulkhead.withdraw(ticket)
            except BaseException:
                continue
        raise


def _refuse_on_a_running_loop(name: str) -> None:
    events = sys.modules.get("asyncio.events")
    if events is not None and events._get_running_loop() is not None:
        raise RuntimeError(
            f"{name or 'the bulkhead'} is full, and to wait for a place here would block the event loop that runs on "
            "this thread: use the async form (await target.acall(...), async with, await aacquire()), or max_queue=0"
        )
