"""A connection of a client: takes requests apart, one after another, and lets each through its exchange."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from math import inf
from typing import TYPE_CHECKING, Any

from ..outcome import CUT
from .answers import problem
from .chunks import BadChunk, ChunkedBody
from .exchange import Exchange
from .head import BadHead, RequestHead
from .pausing import Pausing
from .recall import RequestRecall
from .wheel import RATE, Timed

if TYPE_CHECKING:
    from .server import Hub
    from .tx import TxRequest

__all__ = ["Client"]

log = logging.getLogger("seawall.hub")
HEAD, COUNTED, CHUNKED, WAIT, TUNNEL, LINGER, CLOSED = range(7)
LINGER_SECONDS = 2.0  # how long what a client still sends is thrown away, so that our last answer is not lost to a reset
GRACE = 0.25  # s for a client that has closed its side: one that left is held a place for, one in a script gets its answer
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 s
AHEAD = 65536  # bytes a client may send ahead of the answer it waits for
_CODES = {431: "E431", 413: "E413", 408: "E408"}


class Client(asyncio.Protocol, Pausing, Timed):
    """One connection of a client. It stands on the wheel for itself and for the exchange it is in."""

    __slots__ = (
        "blocked", "buffer", "busy", "chunks", "exchange", "forwarded_lines", "half_closed", "heads", "heeds_budgets",
        "hub", "left", "paused", "peer", "state", "transport", "unsent", "write",
    )  # fmt: skip
    transport: asyncio.Transport

    def __init__(self, hub: Hub, heeds_budgets: bool = True) -> None:
        Timed.__init__(self)
        self.hub, self.heeds_budgets = hub, heeds_budgets
        self.exchange: Exchange | TxRequest | None = None
        self.heads = RequestRecall()
        self.buffer = b""
        self.state = HEAD
        self.left = 0
        self.unsent: float = inf
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
        self.hub.arriving -= 1  # here it is counted as a client; both at once would be one too many at the cap
        self.set_due(self.hub.now() + self.hub.settings.idle_timeout)

    def connection_lost(self, error: Exception | None) -> None:
        """The client is gone."""
        self.state = CLOSED
        self.hub.gone(self)
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange.client_gone()

    def eof_received(self) -> bool:
        """The client sends no more. It may have left, or wait for its answer with its side closed: it gets a moment."""
        self.half_closed = True
        if self.exchange is None or self.state not in (WAIT, TUNNEL):
            return False
        if self.state == TUNNEL and self.exchange.upstream is not None and not self.exchange.upstream.end_writing():
            return False
        self.hub.loop.call_later(GRACE, self._left, self.exchange, self.exchange.until)
        return True

    def _left(self, exchange: Exchange | TxRequest, until: float) -> None:
        """Taken to have left, unless its answer goes on: writing would tell if nobody were there to read it."""
        if self.exchange is not exchange:
            return
        if exchange.started and (self.blocked or exchange.until != until):
            self.hub.loop.call_later(GRACE, self._left, exchange, exchange.until)
        elif self.state == TUNNEL and isinstance(exchange, Exchange):
            exchange.end_of_answer(False)
        else:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Bytes of a request, or of several."""
        state = self.state
        if state == HEAD:
            if self.buffer:
                data = self.buffer + data
                self.buffer = b""
            self._read_requests(data)
        elif state in (COUNTED, CHUNKED):
            try:
                self._on_body(data)
            except Exception:
                self._fault()
        elif state == WAIT:
            self.buffer += data
            if len(self.buffer) > AHEAD:
                self.pause()
        elif state == TUNNEL:
            self._through_tunnel(data)

    def pause_writing(self) -> None:
        """The client reads too slowly: take no more from the target."""
        self.blocked = True
        self.unsent = self.transport.get_write_buffer_size()
        if self.exchange is not None and self.exchange.upstream is not None:
            self.exchange.upstream.pause()

    def resume_writing(self) -> None:
        """The client reads again."""
        self.blocked = False
        self.unsent = inf
        if self.exchange is not None and self.exchange.upstream is not None:
            self.exchange.upstream.resume()
        elif self.state == HEAD:
            self._go_on()

    # -- requests
    def _read_requests(self, data: bytes) -> None:
        """Take one request after another out of ``data``. A loop: answers given at once do not nest.

        Who asks and asks and reads no answer is asked to wait, or the answers would pile up here.
        """
        if self.blocked:
            self.buffer = data
            self.pause()
            return
        self.busy = True
        try:
            while data and self._on_head(data):
                if self.blocked or self.transport.is_closing():
                    self.pause()
                    break
                data, self.buffer = self.buffer, b""
        except Exception:
            self._fault()
        finally:
            self.busy = False

    def _on_head(self, data: bytes) -> bool:
        """Begin the request at the start of ``data``; whether it is over already and the next may follow."""
        hub = self.hub
        try:
            head = self.heads.parse(data, hub.settings.max_head)
        except BadHead as bad:
            self.refuse(_CODES.get(bad.status, "E400"), bad.why, bad.status)
            return False
        now = hub.now()
        if head is None:
            self.set_due(min(self.due, now + hub.settings.head_timeout))
            self.buffer = data
            return False
        end, length = head.end, head.length
        if head.chunked:
            self.state, self.chunks = CHUNKED, ChunkedBody()
        elif length and (head.expect or len(data) - end < length):
            self.state, self.left = COUNTED, length
        else:
            self.state = WAIT  # all of the request is here
            after = end + length if length else end
            self.buffer = data[after:] if after < len(data) else b""
        exchange = hub.open(self, head, now)
        if exchange is not None:
            self.exchange = exchange
            if self.state != WAIT:
                self._await_body(exchange, head, data, now)
            else:
                if length:
                    exchange.receive(data[end:after], now)
                if self.exchange is exchange:
                    exchange.complete(now)
        return self.state == HEAD

    def _await_body(self, exchange: Exchange | TxRequest, head: RequestHead, data: bytes, now: float) -> None:
        exchange.until = now + self.hub.settings.body_gap
        self.set_due(min(exchange.until, exchange.deadline))
        if head.expect:
            exchange.expected(now)
        if head.end < len(data) and self.exchange is exchange:
            self._on_body(data[head.end :])

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
        if self.exchange is not None:
            self.exchange.fail(code, why, CUT)
            return
        head, body = problem(code, why, status=status, close=True)
        self.state = LINGER
        self.hub.count_refused(code)
        self.reply(head, body, False)

    def _fault(self) -> None:
        if self.exchange is not None:
            self.exchange.fault()
        elif self.state not in (LINGER, CLOSED):
            log.exception("a client met a fault of the hub itself")
            self.refuse("E999", "the hub made a mistake; its log says where")

    # -- for the exchange
    def set_due(self, due: float) -> None:
        """When to look at this connection again."""
        self.hub.wheel.set(self, due)

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
        if self.buffer or self.paused:
            self._go_on()

    def _go_on(self) -> None:
        """Take up what came while an answer was on its way."""
        if self.paused:
            self.resume()
        if self.buffer and not self.busy:
            data, self.buffer = self.buffer, b""
            self._read_requests(data)
            if self.state == WAIT and len(self.buffer) > AHEAD:
                self.pause()
            if self.half_closed and not self.blocked and self.state in (HEAD, COUNTED, CHUNKED):
                self.transport.close()  # the rest of this request will never come

    def tunnel(self) -> None:
        """The protocol has been switched."""
        self.state = TUNNEL
        self.resume()
        if self.buffer:
            data, self.buffer = self.buffer, b""
            self._through_tunnel(data)

    def _through_tunnel(self, data: bytes) -> None:
        if isinstance(self.exchange, Exchange):
            self.exchange.through_tunnel(data)

    def taking(self) -> bool:
        """Whether there is something the client has yet to read, and it has read some since this was asked last."""
        before, self.unsent = self.unsent, self.transport.get_write_buffer_size()
        return 0 < self.unsent < before

    def cut(self, *, by_reset: bool) -> None:
        """Close in the middle of an answer. One that lasts until the connection ends looks whole but for a reset."""
        self.exchange = None
        if self.state != CLOSED:
            self.state = LINGER
            self.hub.wheel.drop(self)
            if by_reset:
                self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
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
        said_all = self.half_closed or (self.state == WAIT and not self.buffer)
        self.state = LINGER
        self.buffer = b""
        if said_all:
            self.transport.close()
        else:
            self.resume()
            self._say_end()
        self.unsent = inf
        self.set_due(self.hub.now() + (self.hub.settings.body_gap if self.taking() else LINGER_SECONDS))

    def _say_end(self) -> None:
        if not self.transport.is_closing():
            try:
                self.transport.write_eof()
            except OSError:
                pass  # the client has gone, and we are about to hear of it

    # -- time
    def on_due(self, now: float) -> None:
        """A limit may have passed: of the exchange, of a head on its way in, of an idle client."""
        if self.exchange is not None:
            try:
                self.exchange.on_due(now)
            except Exception:
                self._fault()
        elif self.state == HEAD and self.buffer and not self.blocked:
            self.refuse("E408", f"no whole request head within {self.hub.settings.head_timeout:g} s")
        elif self.taking():
            self.set_due(now + self.hub.settings.body_gap)
        else:
            self.transport.abort()  # close() would wait for ever for a client that does not read
