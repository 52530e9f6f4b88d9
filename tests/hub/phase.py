"""Where the exchanges of a hub stand."""

from __future__ import annotations

from seawall.hub.exchange import Exchange
from seawall.hub.phases import BACKOFF
from seawall.hub.server import Hub

__all__ = ["waiting"]


def waiting(hub: Hub) -> int:
    """How many exchanges are between two attempts."""
    return sum(isinstance(client.exchange, Exchange) and client.exchange.phase == BACKOFF for client in hub.clients)
