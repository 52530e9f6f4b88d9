"""A connection of a client: takes requests apart, one after another, and lets each through its exchange."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

from .answers import problem
from .chunks import BadChunk, ChunkedBody
from .exchange import Exchange
from .head import BadHead, RequestHead, parse_request
from .wheel import RATE, Timed

if TYPE_CHECKING:
    from .server import Hub
    from .tx import TxRequest

__all__ = ["Client"]

HEAD, COUNTED, CHUNKED, WAIT, TUNNEL, LINGER, CLOSED = range(7)
LINGER_SECONDS = 2.0  # how long what a client still sends is thrown away, so that our last answer is not lost to a reset
AHEAD = 65536  # bytes a client may send ahead of the answer it waits for
_CODES = {431: "E431", 413: "E413", 408: "E408"}


class Client(asyncio.Protocol, Timed):
    """One connection of a client. It stands on the wheel for itself and for the exchange it is in."""

    __slots__ = (
        "blocked", "buffer", "busy", "chunks", "exchange", "forwarded_lines", "half_closed", "hub", "left", "paused",
        "peer", "state", "transport", "write",
    )  # fmt: skip
    transport: asyncio.Transport

    def __init__(self, hub: Hub) -> None:
        Timed.__init__(self)
        self.hub = hub
        self.exchange: Exchange | TxRequest | None = None
        self.buffer = b""
        self.state = HEAD
        self.left = 0
        self.chunks: ChunkedBody | None = None
        self.paused = self.blocked = self.busy = self.half_closed = False

    # -- what asyncio calls
    def connection_made(self, transport: Any) -> None:
        """A client has connected."""
        self.transport = transport
        self.write = transport.write
        peer = transport.get_extra_info("peername")
        self.peer = peer[0].encode() if isinstance(peer, tuple) else b"unknown"
        self.forwarded_lines = b"X-Forwarded-For: %b\r\nX-Forwarded-Proto: http\r\nVia: 1.1 seawall" % self.peer
        self.hub.clients[self] = None
        self.set_due(self.hub.now() + self.hub.settings.idle_timeout)

    def connection_lost(self, error: Exception | None) -> None:
        """The client is gone."""
        self.state = CLOSED
        self.hub.gone(self)
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange.client_gone()

    def eof_received(self) -> bool:
        """The client will send no more. One that waits for an answer with its side closed still gets it."""
        self.half_closed = True
        return self.exchange is not None and self.state == WAIT

    def data_received(self, data: bytes) -> None:
        """Bytes of a request, or of several."""
        state = self.state
        if state == HEAD:
            if self.buffer:
                data = self.buffer + data
                self.buffer = b""
            self._read_requests(data)
        elif state in (COUNTED, CHUNKED):
            self._on_body(data)
        elif state == WAIT:
            self.buffer += data
            if len(self.buffer) > AHEAD:
                self.pause()
        elif state == TUNNEL:
            self._through_tunnel(data)

    def pause_writing(self) -> None:
        """The client reads too slowly: take no more from the target."""
        self.blocked = True
        if self.exchange is not None and self.exchange.upstream is not None:
            self.exchange.upstream.pause()

    def resume_writing(self) -> None:
        """The client reads again."""
        self.blocked = False
        if self.exchange is not None and self.exchange.upstream is not None:
            self.exchange.upstream.resume()

    # -- requests
    def _read_requests(self, data: bytes) -> None:
        """Take one request after another out of ``data``. A loop: answers given at once do not nest."""
        if self.busy:
            self.buffer = data
            return
        self.busy = True
        try:
            while data and self._on_head(data):
                data, self.buffer = self.buffer, b""
        finally:
            self.busy = False

    def _on_head(self, data: bytes) -> bool:
        """Begin the request at the start of ``data``; whether it is over already and the next may follow."""
        hub = self.hub
        try:
            head = parse_request(data, hub.settings.max_head)
        except BadHead as bad:
            self.refuse(_CODES.get(bad.status, "E400"), bad.why, bad.status)
            return False
        now = hub.now()
        if head is None:
            self.set_due(min(self.due, now + hub.settings.head_timeout))
            self.buffer = data
            return False
        self._frame(head)
        rest = data[head.end :] if head.end < len(data) else b""
        if self.state == WAIT:
            self.buffer = rest
        exchange = hub.open(self, head, now)
        if exchange is not None:
            self.exchange = exchange
            if self.state == WAIT:
                exchange.complete(now)
            else:
                self._await_body(exchange, head, now)
                if rest and self.exchange is exchange:
                    self._on_body(rest)
        return self.state == HEAD

    def _await_body(self, exchange: Exchange | TxRequest, head: RequestHead, now: float) -> None:
        exchange.until = now + self.hub.settings.body_gap
        self.set_due(min(exchange.until, exchange.deadline))
        if head.expect:
            exchange.expected(now)

    def _frame(self, head: RequestHead) -> None:
        if head.chunked:
            self.state = CHUNKED
            self.chunks = ChunkedBody()
        elif head.length:
            self.state = COUNTED
            self.left = head.length
        else:
            self.state = WAIT

    def _on_body(self, data: bytes) -> None:
        exchange = self.exchange
        now = self.hub.now()
        if self.state == COUNTED:
            size = len(data)
            if size > self.left:
                self.buffer = data[self.left :]
                data = data[: self.left]
            self.left -= len(data)
            whole = self.left == 0
        else:
            assert self.chunks is not None
            try:
                used = self.chunks.feed(data)
            except BadChunk as bad:
                self.refuse("E400", str(bad))
                return
            whole = self.chunks.done
            if used < len(data):
                self.buffer = data[used:]
                data = data[:used]
        if whole:
            self.state = WAIT
        if exchange is None:
            return
        exchange.receive(data, now)
        if whole and self.exchange is exchange:
            exchange.complete(now)

    def refuse(self, code: str, why: str, status: int | None = None) -> None:
        """Answer what cannot be understood, and end: what follows cannot be told apart any more."""
        exchange, self.exchange = self.exchange, None
        head, body = problem(code, why, status=status, close=True)
        self.state = LINGER
        if exchange is None or not exchange.started:
            self.hub.count_refused(code)
            self.reply(head, body, False)
        if exchange is not None:
            exchange.client_gone()

    # -- for the exchange
    def set_due(self, due: float) -> None:
        """When to look at this connection again."""
        self.hub.wheel.set(self, due)

    def pause(self) -> None:
        """Take no more from the client."""
        if not self.paused and not self.transport.is_closing():
            self.paused = True
            self.transport.pause_reading()

    def resume(self) -> None:
        """Take from the client again."""
        if self.paused and not self.transport.is_closing():
            self.paused = False
            self.transport.resume_reading()

    def reply(self, head: bytes, body: bytes, keep: bool) -> None:
        """Write an answer of the hub's own, and end its exchange."""
        if self.state == CLOSED:
            return
        self.write(head + body)
        self.over(keep)

    def over(self, keep: bool) -> None:
        """The exchange has ended: on to the next request, or close."""
        self.exchange = None
        if self.state == CLOSED:
            return
        if not keep or self.state != WAIT or (self.half_closed and not self.buffer):
            self._close()
            return
        self.state = HEAD
        hub = self.hub
        self.due = due = hub.now() + hub.settings.idle_timeout
        if due * RATE < self.armed:
            hub.wheel.set(self, due)
        if self.paused:
            self.resume()
        if self.buffer and not self.busy:
            data, self.buffer = self.buffer, b""
            self._read_requests(data)

    def tunnel(self) -> None:
        """The protocol has been switched."""
        self.state = TUNNEL
        if self.buffer:
            data, self.buffer = self.buffer, b""
            self._through_tunnel(data)

    def _through_tunnel(self, data: bytes) -> None:
        if isinstance(self.exchange, Exchange):
            self.exchange.through_tunnel(data)

    def cut(self) -> None:
        """Close without a proper end: the answer must not look complete."""
        self.exchange = None
        if self.state != CLOSED:
            self.state = LINGER
            self.hub.wheel.drop(self)
            self.transport.abort()

    def idle(self) -> bool:
        """Whether nothing is under way here, nor lies unread in the socket."""
        if self.state != HEAD or self.buffer or self.exchange is not None:
            return False
        sock = self.transport.get_extra_info("socket")
        try:
            with socket.socket(fileno=socket.dup(sock.fileno())) as copy:
                copy.setblocking(False)
                return not copy.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False

    def _close(self) -> None:
        """Close after an answer. While the client may still be sending, only our side, and what comes is thrown away."""
        if self.state == WAIT and not self.buffer:
            self.state = LINGER
            self.hub.wheel.drop(self)
            self.transport.close()
            return
        self.state = LINGER
        self.buffer = b""
        self.resume()
        if self.transport.can_write_eof() and not self.transport.is_closing():
            self.transport.write_eof()
        self.set_due(self.hub.now() + LINGER_SECONDS)

    # -- time
    def on_due(self, now: float) -> None:
        """A limit may have passed: of the exchange, of a head on its way in, of an idle client."""
        if self.exchange is not None:
            self.exchange.on_due(now)
        elif self.state == HEAD and self.buffer:
            self.refuse("E408", f"no whole request head within {self.hub.settings.head_timeout:g} s")
        elif self.state in (HEAD, LINGER):
            self.transport.close()
