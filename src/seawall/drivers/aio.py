"""Waiting in line by suspending the running asyncio task."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

    from ..policies.bulkhead import Bulkhead
    from ..policies.slots import Ticket

__all__ = ["wait_in_line"]


async def wait_in_line(bulkhead: Bulkhead, ticket: Ticket, seconds: float | None) -> None:
    """Suspend until ``ticket`` has its place, ``seconds`` at the most (``None``: without end).

    Raises:
        BulkheadFullError: No place came free in time.
    """
    import asyncio  # not at the top: who awaits has imported it, who does not need not pay for it

    try:
        loop = asyncio.get_running_loop()
        granted = loop.create_future()
        ticket.wake = lambda: loop.call_soon_threadsafe(_set, granted)  # raises RuntimeError when the loop is closed
        if not ticket.granted:
            await asyncio.wait([granted], timeout=None if seconds is None else max(0.0, seconds))
        bulkhead.claim(ticket, seconds)
    except BaseException:
        bulkhead.withdraw(ticket)
        raise


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
