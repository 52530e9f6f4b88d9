"""Stands in for a client that has left, while the trial it started runs on."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from ..outcome import CODES
from .wheel import Timed

if TYPE_CHECKING:
    from .exchange import Exchange
    from .server import Hub

__all__ = ["Ghost", "go_on_alone"]


def go_on_alone(exchange: Exchange, code: str, detail: str) -> None:
    """A trial runs on when its caller has left: it is the breaker's question, and its answer is worth waiting for."""
    client = exchange.client
    exchange.status = CODES[code].status if code in CODES else 0
    exchange.count(code, exchange.backend.clock())
    exchange.client = Ghost(client.hub, exchange)
    exchange.deadline = inf
    exchange.arm()
    client.exchange = None
    if exchange.status:
        exchange.reply(client, code, detail, None, {})


class Ghost(Timed):
    """Takes what would go to the client, and keeps the exchange's limits on the wheel."""

    __slots__ = ("exchange", "forwarded_lines", "hub", "peer")
    peer: bytes
    forwarded_lines: bytes
    paused = blocked = heeds_budgets = False

    def __init__(self, hub: Hub, exchange: Exchange) -> None:
        super().__init__()
        self.hub = hub
        self.exchange: Exchange | None = exchange
        self.peer, self.forwarded_lines = exchange.client.peer, exchange.client.forwarded_lines  # it may be sent again
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
