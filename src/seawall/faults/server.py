"""What the servers that misbehave have in common: they listen, and know who is connected.

A connection works on one request at a time and answers in order; what a caller sends ahead waits in the reader. No
request makes a task: what takes time keeps one timer, and a caller that leaves cancels it.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from .wire import Answer, BadRequest, Request, RequestReader, render

if TYPE_CHECKING:
    import ssl

__all__ = ["Caller", "Server"]

AHEAD_LIMIT = 65536  # bytes read ahead while a request is worked on; reading on is how a caller that left is noticed
LINGER = 1.0  # s between the end of the last answer and the end of the connection, so that no reset overtakes it


class Server(ABC):
    """An HTTP server on one address.

    Args:
        name: What it is called in messages.
        host: The address it listens on. Anyone who can reach it can make it work, hence loopback by default.
        port: The TCP port; 0 lets the system choose one, which :attr:`port` then tells.
        tls: A server context: then it speaks HTTPS.
    """

    def __init__(self, name: str, *, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        self.name = name
        self.host = host
        self._port = port
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._callers: set[Caller] = set()

    @property
    def port(self) -> int:
        """The TCP port it listens on, once started."""
        return self._port

    @property
    def url(self) -> str:
        """Where to call it, without a path."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self._tls else 'http'}://{host}:{self._port}"

    @property
    @abstractmethod
    def greeting(self) -> str:
        """The line that says where it listens, and what can be asked there."""

    @abstractmethod
    def stats(self) -> dict[str, Any]:
        """What ``GET /_stats`` answers; a caller's own reading of it is counted nowhere."""

    @abstractmethod
    def _caller(self) -> Caller:
        """What serves a new connection."""

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: The address cannot be had: in use, not allowed, not of this machine.
        """
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._caller, self.host, self._port, ssl=self._tls, backlog=1024)
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening and end every connection at once; a second time does nothing."""
        if self._server is None:
            return
        server, self._server = self._server, None
        server.close()
        for caller in list(self._callers):
            caller.abort()
        await server.wait_closed()
        while self._callers:
            await asyncio.sleep(0)


class Caller(asyncio.Protocol, ABC):
    """One connection.

    ``request`` is the request in hand, until its answer is on its way or its caller has left. A server fills in how it
    is served: :meth:`serve` answers with :meth:`reply`, at once or by :meth:`later`, and says with :meth:`settled` that
    nothing is in hand any more.
    """

    def __init__(self, callers: set[Caller]) -> None:
        self._callers = callers
        self._reader = RequestReader()
        self._timer: asyncio.TimerHandle | None = None
        self._last = False  # the last answer is out: what still arrives is dropped
        self._room = True
        self._paused = False
        self._linger: asyncio.TimerHandle | None = None
        self.request: Request | None = None

    # -- what a server fills in

    @abstractmethod
    def serve(self, request: Request) -> None:
        """Answer it, or set :attr:`request` and answer later."""

    @abstractmethod
    def gone(self) -> None:
        """The caller left while a request was in hand."""

    @abstractmethod
    def refusal(self, error: BadRequest) -> Answer:
        """The answer to bytes that are no request."""

    # -- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody is there."""
        self.transport = cast(asyncio.Transport, transport)
        self.loop = asyncio.get_running_loop()
        self._callers.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is there any more: what is in hand is given up."""
        self._callers.discard(self)
        if self._linger is not None:
            self._linger.cancel()
        if self.request is not None:
            self.settled()
            self.gone()

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        if not self._last:
            self._reader.feed(data)
            self.go_on()

    def pause_writing(self) -> None:
        """The caller does not take its answers: no further request is served."""
        self._room = False

    def resume_writing(self) -> None:
        """It takes them again."""
        self._room = True
        self.go_on()

    # -- one request after another

    def go_on(self) -> None:
        """Serve what has been sent ahead, up to the first request that takes time."""
        while self.request is None and self._room and not self._last and not self.transport.is_closing():
            try:
                request = self._reader.take()
            except BadRequest as error:
                self.reply(self.refusal(error), keep_alive=False)
                break
            if request is None:
                if self._reader.wants_continue():
                    self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                break
            self.serve(request)
        self._read_ahead()

    def _read_ahead(self) -> None:
        full = not self._last and self._reader.buffered > AHEAD_LIMIT
        if full and not self._paused and (self.request is not None or not self._room):
            self._paused = True
            self.transport.pause_reading()
        elif self._paused and not full:
            self._paused = False
            self.transport.resume_reading()

    def later(self, when: float, call: Callable[..., object], *args: Any) -> None:
        """Go on with the request in hand at that time of the loop, unless its caller leaves before."""
        self._timer = self.loop.call_at(when, call, *args)

    def settled(self) -> None:
        """Nothing is in hand any more: a caller that leaves from here on has not left a request."""
        self.request = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- answers

    def rendered(self, answer: Answer, request: Request | None, keep_alive: bool = True) -> tuple[bytes, bytes]:
        """Head and body of an answer as they go on the wire; ``request`` decides on keep-alive where it is known."""
        body = json.dumps(answer.content).encode() + b"\n"
        if request is not None:
            keep_alive = request.keep_alive
        head_only = request is not None and request.method == "HEAD"
        return render(answer.status, body, keep_alive=keep_alive, head_only=head_only, headers=answer.headers)

    def reply(self, answer: Answer, request: Request | None = None, *, keep_alive: bool = True) -> None:
        """Send an answer whole."""
        self.transport.write(b"".join(self.rendered(answer, request, keep_alive)))
        if not (keep_alive if request is None else request.keep_alive):
            self.finish()

    def finish(self) -> None:
        """Nothing more is said: end our side, and the connection once the caller has ended its own.

        Closing while bytes of the caller are unread makes the system send a reset, which may overtake the answer.
        """
        self._last = True
        if self.transport.can_write_eof():
            self.transport.write_eof()
            self._linger = self.loop.call_later(LINGER, self.transport.abort)
        else:
            self.transport.close()

    def abort(self) -> None:
        """End the connection at once."""
        self._last = True
        self.transport.abort()
