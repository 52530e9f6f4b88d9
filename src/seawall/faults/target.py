"""A target that misbehaves on command: ``seawall target``, or inside a test.

It answers ``POST /tx`` like a core-banking system that has one account, and everything else like a mirror. How is set
at ``POST /_ctl``, what happened is read at ``GET /_stats``; the two always behave and are counted nowhere.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .answers import commanded, refusal, work_answer
from .modes import Control, Mode, Tally
from .server import Caller, Server
from .wire import Answer, BadRequest, Request

if TYPE_CHECKING:
    import ssl

__all__ = ["FakeTarget"]

GARBAGE = b"\x16\x03\x01 these bytes are no HTTP\r\n\r\n"
_NO_LINGER = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 s: closing sends a reset


class FakeTarget(Server):
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
        super().__init__(name, host=host, port=port, tls=tls)
        self.balance = balance
        self._control = Control()
        self._tally = Tally()

    @property
    def greeting(self) -> str:
        """The line that says where it listens, and which doors it has."""
        doors = "POST /tx, POST /_ctl, GET /_stats"
        return f"target {self.name} listening on {self.url} (balance {self.balance}); {doors}"

    def _caller(self) -> Caller:
        return _Caller(self, self._callers)

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


class _Caller(Caller):
    """One connection."""

    def __init__(self, target: FakeTarget, callers: set[Caller]) -> None:
        super().__init__(callers)
        self._target = target
        self._era: object = None
        self._is_tx = False

    def gone(self) -> None:
        """The caller left while a request was in hand."""
        self._target._tally.gone(self._era)

    def refusal(self, error: BadRequest) -> Answer:
        """The answer to bytes that are no request."""
        return refusal(self._target, error.status, error.detail)

    def serve(self, request: Request) -> None:
        """Obey at once, or do as the mode says."""
        target = self._target
        if request.path in ("/_ctl", "/_stats"):
            self.reply(commanded(request, target), request)
            return
        self.request, self._is_tx = request, request.path == "/tx"
        self._era = target._tally.began(self._is_tx)
        mode = target._control.mode
        self._misbehave(mode, request, work_answer(request, target, mode, target._control.status))

    def _misbehave(self, mode: Mode, request: Request, answer: Answer) -> None:
        delay = self._target._control.delay_ms / 1000
        match mode:
            case Mode.HANG:
                pass
            case Mode.SLOW:
                self.later(self.loop.time() + delay, self._answer_late, request, answer)
            case Mode.DRIP | Mode.DRIP_HEAD:
                head, body = self.rendered(answer, request)
                if mode is Mode.DRIP:
                    self.transport.write(head)
                self._drip(body if mode is Mode.DRIP else head + body, 0, delay, answer)
            case Mode.RESET | Mode.GARBAGE | Mode.CUT:
                self._break_off(mode, answer, request)
            case _:
                self._end(str(answer.content["code"]))
                self.reply(answer, request)

    def _end(self, code: str) -> None:
        """The request in hand is settled, so that a caller that leaves from here on has not left it."""
        self.settled()
        self._target._tally.ended(self._era, self._is_tx, code)

    def _answer_late(self, request: Request, answer: Answer) -> None:
        self._end(str(answer.content["code"]))
        self.reply(answer, request)
        self.go_on()

    def _drip(self, data: bytes, sent: int, delay: float, answer: Answer) -> None:
        self.transport.write(data[sent : sent + 1])
        if sent + 1 < len(data):
            self.later(self.loop.time() + delay, self._drip, data, sent + 1, delay, answer)
            return
        assert self.request is not None
        keep_alive = self.request.keep_alive
        self._end(str(answer.content["code"]))
        if not keep_alive:
            self.finish()
        self.loop.call_soon(self.go_on)

    def _break_off(self, mode: Mode, answer: Answer, request: Request) -> None:
        self._end(mode.value)
        if mode is Mode.RESET:
            sock: socket.socket = self.transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            self.abort()
            return
        head, body = self.rendered(answer, request)
        self.transport.write(GARBAGE if mode is Mode.GARBAGE else head + body[: len(body) // 2])
        self.finish()
