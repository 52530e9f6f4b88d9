"""A connection to a target: takes answers apart, and passes them on."""

from __future__ import annotations

import asyncio
import ssl
from math import inf
from typing import TYPE_CHECKING, Any

from .chunks import BadChunk, ChunkedBody, Dechunker
from .head import BadHead, ResponseHead
from .pausing import Pausing
from .recall import ResponseRecall

if TYPE_CHECKING:
    from .backend import Backend
    from .exchange import Exchange

__all__ = ["Upstream"]

HEAD, COUNTED, CHUNKED, TO_THE_END, AT_THE_END, TUNNEL = range(6)
FLUSH = 2.0  # s for the rest of a request that has been answered already, or of a tunnel that has ended
MOST_INTERIMS = 1000  # 1xx before an answer; a thousand in a packet would otherwise keep the loop busy
SPLIT = 16384  # bytes; a longer piece of a body is written by itself, since joining it to the head would copy it


class Upstream(asyncio.Protocol, Pausing):
    """One connection to a target, idle in its backend's stack or at work for one exchange."""

    __slots__ = (
        "alive", "backend", "buffer", "chunks", "exchange", "heads", "idle_until", "keep", "left", "paused",
        "reused", "state", "transport", "write",
    )  # fmt: skip
    transport: asyncio.Transport
    chunks: ChunkedBody | Dechunker

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.exchange: Exchange | None = None
        self.alive = False
        self.heads = ResponseRecall()
        self.buffer = b""
        self.state = HEAD
        self.left = 0
        self.keep = self.reused = self.paused = False
        self.idle_until = inf

    # -- what asyncio calls
    def connection_made(self, transport: Any) -> None:
        """The connection stands."""
        self.transport = transport
        self.write = transport.write
        self.alive = True
        self.backend.connections += 1

    def connection_lost(self, error: Exception | None) -> None:
        """The connection has ended, from whichever side."""
        self.backend.lost(self)
        exchange, self.exchange = self.exchange, None
        if exchange is None:
            return
        if self.state == AT_THE_END and error is None:
            exchange.ended()
        elif self.state == TUNNEL:
            exchange.tunnel_ended()
        else:
            exchange.broken("the target closed the connection in the middle of its answer" if exchange.started
                            else "the target closed the connection without an answer")  # fmt: skip

    def eof_received(self) -> bool:
        """The target says no more: a whole answer, or a broken one; either way the connection ends."""
        if self.state == TO_THE_END and _says_so(self.transport.get_extra_info("ssl_object")):
            self.state = AT_THE_END
        return False

    def data_received(self, data: bytes) -> None:
        """A piece of an answer."""
        exchange = self.exchange
        if exchange is None:
            self.transport.abort()  # nobody asked: what comes unasked could be taken for the next answer
            return
        state = self.state
        try:
            if state == HEAD:
                self.reused = False  # whatever happens from here on, it happens to an answer that has begun
                if self.buffer:
                    data = self.buffer + data
                    self.buffer = b""
                self._on_head(exchange, data)
            elif state == COUNTED:
                self._on_counted(exchange, data)
            elif state == CHUNKED:
                self._on_chunks(exchange, data)
            else:
                exchange.body(data)
        except Exception:
            exchange.fault()

    def pause_writing(self) -> None:
        """The target reads too slowly: take no more from the client."""
        if self.exchange is not None:
            self.exchange.client.pause()

    def resume_writing(self) -> None:
        """The target reads again."""
        if self.exchange is not None:
            self.exchange.client.resume()

    # -- for the exchange
    def begin(self, exchange: Exchange, head: bytes, pieces: list[bytes] | None) -> None:
        """Send a request: its head, and what has come of its body so far."""
        self.exchange = exchange
        self.state = HEAD
        if not pieces:
            self.write(head)
        elif exchange.size <= SPLIT:
            self.write(b"".join((head, *pieces)))
        else:
            self.transport.writelines([head, *pieces])

    def end_writing(self) -> bool:
        """Say in a tunnel that the client says no more; ``False`` where that cannot be said."""
        if not self.transport.can_write_eof():
            return False
        try:
            self.transport.write_eof()
        except OSError:
            return False  # the target has gone, and we are about to hear of it
        return True

    def drop(self) -> None:
        """End the connection in the middle of an answer."""
        self.exchange = None
        self.transport.abort()

    def release(self, now: float) -> None:
        """The answer has ended: keep the connection if both sides may go on with it."""
        self.exchange = None
        if self.keep and not self.transport.is_closing():
            if self.paused:
                self.resume()
            self.reused = True
            self.backend.put_back(self, now)
        else:
            unsent = self.transport.get_write_buffer_size()
            self.transport.close()
            if unsent:  # for a target that takes no more it would wait for ever
                self.backend.loop.call_later(FLUSH, self.transport.abort)

    # -- answers
    def _on_head(self, exchange: Exchange, data: bytes) -> None:
        try:
            head = self.heads.parse(data)
            while head is not None and head.status < 200 and head.status != 101:
                exchange.interims += 1
                if exchange.interims > MOST_INTERIMS:
                    raise BadHead(502, f"More than {MOST_INTERIMS} interim answers are no answer.")
                exchange.interim(head)
                data = data[head.end :]
                if not data:
                    return
                head = self.heads.parse(data)
        except BadHead as bad:
            exchange.broken(f"the target does not speak HTTP: {bad.why}")
            return
        if head is None:
            self.buffer = data
            exchange.heard()
        elif head.status == 101:
            self._switch(exchange, head, data)
        else:
            self._final(exchange, head, data)

    def _final(self, exchange: Exchange, head: ResponseHead, data: bytes) -> None:
        self.keep = head.keep_alive
        end, status, length = head.end, head.status, head.length
        if status == 204 or status == 304 or exchange.bodiless:
            self.keep = self.keep and len(data) == end
            exchange.head(head, b"", 0)
            exchange.ended()
        elif length is not None:
            size = len(data) - end
            body: bytes | memoryview = data[end:] if size <= SPLIT else memoryview(data)[end:]
            if size > length:
                body = body[:length]
                self.keep = False
            exchange.head(head, body, length)
            if size >= length:
                exchange.ended()
            else:
                self.state, self.left = COUNTED, length - size
        else:
            self._unmeasured(exchange, head, data[end:])

    def _unmeasured(self, exchange: Exchange, head: ResponseHead, body: bytes) -> None:
        """A body whose length nobody has said: chunked, or until the connection ends."""
        if head.chunked:
            self.state, self.chunks = CHUNKED, exchange.chunk_reader()
        else:
            self.state, self.keep = TO_THE_END, False
        exchange.head(head, b"", None)
        if body and self.exchange is exchange:
            if head.chunked:
                self._on_chunks(exchange, body)
            else:
                exchange.body(body)

    def _on_counted(self, exchange: Exchange, data: bytes) -> None:
        size, left = len(data), self.left
        if size < left:
            self.left = left - size
            exchange.body(data)
            return
        if size > left:
            data = data[:left]
            self.keep = False
        exchange.body(data)
        if self.exchange is exchange:
            exchange.ended()

    def _on_chunks(self, exchange: Exchange, data: bytes) -> None:
        chunks = self.chunks
        try:
            if isinstance(chunks, Dechunker):
                payload, used = chunks.feed(data), chunks.consumed
            else:
                used = chunks.feed(data)
                payload = data if used == len(data) else data[:used]
        except BadChunk as bad:
            exchange.broken(f"the target's answer is broken: {bad}")
            return
        if payload:
            exchange.body(payload)
        if chunks.done and self.exchange is exchange:
            if used != len(data):
                self.keep = False
            exchange.ended()

    def _switch(self, exchange: Exchange, head: ResponseHead, data: bytes) -> None:
        self.keep = False
        if exchange.request.upgrade is None or not exchange.may_switch:
            exchange.broken("the target switched protocols without having been asked to")
            return
        self.state = TUNNEL
        exchange.switched(head, data[head.end :])


def _says_so(tls: ssl.SSLObject | None) -> bool:
    """Whether it is the target that ends: anyone on the way can end a TCP connection, but no TLS session.

    At a bare end of TCP uvloop says nothing to the protocol, and asyncio what it says at the end of a session too.
    """
    try:
        return tls is None or not tls.read(1)
    except ssl.SSLError:
        return False
