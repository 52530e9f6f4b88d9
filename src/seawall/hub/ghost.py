"""Stands in for a client that has left, while the trial it started runs on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .wheel import Timed

if TYPE_CHECKING:
    from .exchange import Exchange
    from .server import Hub

__all__ = ["Ghost"]


class Ghost(Timed):
    """Takes what would go to the client, and keeps the exchange's limits on the wheel."""

    __slots__ = ("exchange", "hub")
    peer = b"unknown"
    forwarded_lines = b""
    paused = blocked = False

    def __init__(self, hub: Hub, exchange: Exchange) -> None:
        super().__init__()
        self.hub = hub
        self.exchange: Exchange | None = exchange
        hub.ghosts.add(self)

    def set_due(self, due: float) -> None:
        """When to look at the exchange again."""
        self.hub.wheel.set(self, due)

    def on_due(self, now: float) -> None:
        """A limit of the exchange may have passed."""
        exchange = self.exchange
        if exchange is not None:
            try:
                exchange.on_due(now)
            except Exception:
                exchange.fault()

    def write(self, data: bytes | memoryview) -> None:
        """Nobody reads it."""

    def pause(self) -> None:
        """Nobody sends."""

    def resume(self) -> None:
        """Nobody sends."""

    def tunnel(self) -> None:
        """Nobody is there to talk through it: end it."""
        self.enough()

    def enough(self) -> None:
        """What the trial was to find out is known, and nobody reads the rest."""
        if self.exchange is not None:
            self.exchange.client_gone()
        self.over(False)

    def over(self, keep: bool) -> None:
        """The exchange has ended."""
        self.hub.ghosts.discard(self)
        self.hub.wheel.drop(self)

    def reply(self, head: bytes, body: bytes, keep: bool) -> None:
        """The exchange has ended with an answer of the hub."""
        self.over(False)

    def taking(self) -> bool:
        """Nobody reads."""
        return False

    def cut(self, *, by_reset: bool) -> None:
        """The exchange has ended badly."""
        self.over(False)
