"""What a request looks like when it goes on to the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .budget import other_forms

if TYPE_CHECKING:
    from .exchange import Exchange

__all__ = ["VIA", "forwarded_head"]

VIA = b"1.1 seawall"


def forwarded_head(exchange: Exchange, now: float, lines: list[bytes]) -> list[bytes]:
    """Request line and header lines for the target; framing and the final empty line are left to the door.

    Args:
        exchange: Whose request it is.
        now: The hub's time: what is left of the budget is told to the target as of this moment.
        lines: The client's header lines to pass on.
    """
    request, client, backend = exchange.request, exchange.client, exchange.backend
    if exchange.request_id is None:
        exchange.request_id = client.hub.new_request_id()
    told = request.forwarded or request.proto or request.via
    left = exchange.deadline - now - backend.margin
    if left > backend.tell:
        left = backend.tell
    if request.budgets is not None:
        lines = [*lines, *other_forms(request.budgets, left)]
    return [
        b"%b %b HTTP/1.1\r\nHost: %b" % (request.method, exchange.path, backend.host or request.host or b""),
        *lines,
        _forwarded_lines(exchange) if told else client.forwarded_lines,
        b"X-Request-Id: %b\r\nX-Budget-Ms: %d" % (exchange.request_id, max(0, left * 1000)),
    ]


def _forwarded_lines(exchange: Exchange) -> bytes:
    """Where the request came from, added to what others have said of it."""
    request, client = exchange.request, exchange.client
    trusted = client.hub.settings.trust_forwarded
    forwarded = request.forwarded + b", " + client.peer if request.forwarded and trusted else client.peer
    proto = request.proto if request.proto and trusted else b"http"
    via = VIA if request.via is None else request.via + b", " + VIA
    return b"X-Forwarded-For: %b\r\nX-Forwarded-Proto: %b\r\nVia: %b" % (forwarded, proto, via)
