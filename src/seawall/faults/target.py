"""A target that misbehaves on command: ``seawall target``, or inside a test.

It answers ``POST /tx`` like a core-banking system that has one account, and everything else like a mirror. How is set
at ``POST /_ctl``, what happened is read at ``GET /_stats``; the two always behave and are counted nowhere.

A connection works on one request at a time and answers in order; what a caller sends ahead waits in the reader. No
request makes a task: a mode that takes time keeps one timer, and a caller that leaves cancels it.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from .answers import Answer, commanded, refusal, work_answer
from .modes import Control, Mode, Tally
from .wire import BadRequest, Request, RequestReader, render

if TYPE_CHECKING:
    import ssl

__all__ = ["FakeTarget"]

AHEAD_LIMIT = 65536  # bytes read ahead while a request is worked on; reading on is how a caller that left is noticed
LINGER = 1.0  # s between the end of the last answer and the end of the connection, so that no reset overtakes it
GARBAGE = b"\x16\x03\x01 these bytes are no HTTP\r\n\r\n"
_NO_LINGER = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 s: closing sends a reset


class FakeTarget:
    """An HTTP server on loopback that answers, fails, hangs or breaks as it is told.

    Args:
        name: What its answers say in ``target``.
        host: The address it listens on. Anyone who can reach it can also command it, hence loopback by default.
        port: The TCP port; 0 lets the system choose one, which :attr:`port` then tells.
        balance: What a transaction may spend at most; it is never drawn down, so that a demo can be repeated.
        tls: A server context: then it speaks HTTPS.
    """

    def __init__(
        self,
        name: str = "CORE",
        *,
        host: str = "127.0.0.1",
        port: int = 9201,
        balance: int = 1000,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.name = name
        self.host = host
        self.balance = balance
        self._port = port
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._control = Control()
        self._tally = Tally()
        self._callers: set[_Caller] = set()

    @property
    def port(self) -> int:
        """The TCP port it listens on, once started."""
        return self._port

    @property
    def url(self) -> str:
        """Where to call it, without a path."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self._tls else 'http'}://{host}:{self._port}"

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: The address cannot be had: in use, not allowed, not of this machine.
        """
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Caller(self), self.host, self._port, ssl=self._tls, backlog=1024
        )
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

    def control(self, wish: Mapping[str, Any]) -> dict[str, Any]:
        """Do what ``POST /_ctl`` does; see :class:`~seawall.faults.modes.Control` for the keys.

        Returns:
            The state that results, as :meth:`stats` gives it.

        Raises:
            ValueError: An unknown key or value; nothing has changed.
        """
        if self._control.apply(wish):
            self._tally.reset()
        return self.stats()

    def stats(self) -> dict[str, Any]:
        """What ``GET /_stats`` answers; a caller's own reading of it is counted nowhere."""
        tally = self._tally
        return {
            "name": self.name,
            "mode": self._control.mode.value,
            "delay_ms": self._control.delay_ms,
            "status": self._control.status,
            "calls": tally.calls,
            "other": tally.other,
            "in_flight": tally.in_flight,
            "max_inflight": tally.max_inflight,
            "left": tally.left,
            "by_code": dict(sorted(tally.by_code.items())),
        }


class _Work:
    """The request in hand on one connection, until its answer is on its way or its caller has left."""

    __slots__ = ("era", "is_tx", "request", "timer")

    def __init__(self, request: Request, era: object, is_tx: bool) -> None:
        self.request = request
        self.era = era
        self.is_tx = is_tx
        self.timer: asyncio.TimerHandle | None = None


class _Caller(asyncio.Protocol):
    """One connection."""

    def __init__(self, target: FakeTarget) -> None:
        self._target = target
        self._reader = RequestReader()
        self._work: _Work | None = None
        self._last = False  # the last answer is out: what still arrives is dropped
        self._room = True
        self._paused = False
        self._linger: asyncio.TimerHandle | None = None

    # -- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._loop = asyncio.get_running_loop()
        self._target._callers.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._target._callers.discard(self)
        if self._linger is not None:
            self._linger.cancel()
        work, self._work = self._work, None
        if work is not None:
            if work.timer is not None:
                work.timer.cancel()
            self._target._tally.gone(work.era)

    def data_received(self, data: bytes) -> None:
        if not self._last:
            self._reader.feed(data)
            self._go_on()

    def pause_writing(self) -> None:
        self._room = False

    def resume_writing(self) -> None:
        self._room = True
        self._go_on()

    def abort(self) -> None:
        """End the connection at once."""
        self._transport.abort()

    # -- one request after another

    def _go_on(self) -> None:
        while self._work is None and self._room and not self._last and not self._transport.is_closing():
            try:
                request = self._reader.take()
            except BadRequest as error:
                self._reply(refusal(self._target, error.status, error.detail), keep_alive=False)
                break
            if request is None:
                if self._reader.wants_continue():
                    self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                break
            self._serve(request)
        self._read_ahead()

    def _read_ahead(self) -> None:
        full = not self._last and self._reader.buffered > AHEAD_LIMIT
        if full and not self._paused and (self._work is not None or not self._room):
            self._paused = True
            self._transport.pause_reading()
        elif self._paused and not full:
            self._paused = False
            self._transport.resume_reading()

    def _serve(self, request: Request) -> None:
        target = self._target
        if request.path in ("/_ctl", "/_stats"):
            self._reply(commanded(request, target), request)
            return
        is_tx = request.path == "/tx"
        work = self._work = _Work(request, target._tally.began(is_tx), is_tx)
        mode, delay = target._control.mode, target._control.delay_ms / 1000
        answer = work_answer(request, target, mode, target._control.status)
        match mode:
            case Mode.HANG:
                pass
            case Mode.SLOW:
                work.timer = self._loop.call_later(delay, self._answer_late, answer)
            case Mode.DRIP | Mode.DRIP_HEAD:
                head, body = self._rendered(answer, request)
                if mode is Mode.DRIP:
                    self._transport.write(head)
                self._drip(body if mode is Mode.DRIP else head + body, 0, delay, answer)
            case Mode.RESET | Mode.GARBAGE | Mode.CUT:
                self._break_off(mode, answer, request)
            case _:
                self._end(str(answer.content["code"]))
                self._reply(answer, request)

    def _end(self, code: str) -> None:
        """The request in hand is settled, so that a caller that leaves from here on has not left it."""
        work, self._work = self._work, None
        assert work is not None
        self._target._tally.ended(work.era, work.is_tx, code)

    def _answer_late(self, answer: Answer) -> None:
        assert self._work is not None
        request = self._work.request
        self._end(str(answer.content["code"]))
        self._reply(answer, request)
        self._go_on()

    def _drip(self, data: bytes, sent: int, delay: float, answer: Answer) -> None:
        work = self._work
        assert work is not None
        self._transport.write(data[sent : sent + 1])
        if sent + 1 < len(data):
            work.timer = self._loop.call_later(delay, self._drip, data, sent + 1, delay, answer)
            return
        self._end(str(answer.content["code"]))
        if not work.request.keep_alive:
            self._finish()
        self._loop.call_soon(self._go_on)

    def _break_off(self, mode: Mode, answer: Answer, request: Request) -> None:
        self._end(mode.value)
        if mode is Mode.RESET:
            sock: socket.socket = self._transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            self._last = True
            self._transport.abort()
            return
        head, body = self._rendered(answer, request)
        self._transport.write(GARBAGE if mode is Mode.GARBAGE else head + body[: len(body) // 2])
        self._finish()

    # -- answers

    def _rendered(self, answer: Answer, request: Request | None, keep_alive: bool = True) -> tuple[bytes, bytes]:
        body = json.dumps(answer.content).encode() + b"\n"
        if request is not None:
            keep_alive = request.keep_alive
        head_only = request is not None and request.method == "HEAD"
        return render(answer.status, body, keep_alive=keep_alive, head_only=head_only, headers=answer.headers)

    def _reply(self, answer: Answer, request: Request | None = None, *, keep_alive: bool = True) -> None:
        self._transport.write(b"".join(self._rendered(answer, request, keep_alive)))
        if not (keep_alive if request is None else request.keep_alive):
            self._finish()

    def _finish(self) -> None:
        """Nothing more is said: end our side, and the connection once the caller has ended its own.

        Closing while bytes of the caller are unread makes the system send a reset, which may overtake the answer.
        """
        self._last = True
        if self._transport.can_write_eof():
            self._transport.write_eof()
            self._linger = self._loop.call_later(LINGER, self._transport.abort)
        else:
            self._transport.close()
