"""Taking no more from a connection for a while: how backpressure goes from one side of the relay to the other."""

from __future__ import annotations

import asyncio
from typing import Protocol

__all__ = ["Pausing"]


class _Connection(Protocol):
    paused: bool
    transport: asyncio.Transport


class Pausing:
    """A connection that can be told to wait. Whoever derives from it keeps ``paused`` and ``transport``."""

    __slots__ = ()

    def pause(self: _Connection) -> None:
        """Take no more from this side: the other one does not keep up."""
        if not self.paused and not self.transport.is_closing():
            self.paused = True
            self.transport.pause_reading()

    def resume(self: _Connection) -> None:
        """Take from this side again."""
        if self.paused and not self.transport.is_closing():
            self.paused = False
            self.transport.resume_reading()
