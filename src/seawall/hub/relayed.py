"""The transparent door: ``ANY /{TARGET}/{path}``, passed on as it is, both ways, as it comes."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from ..outcome import SUCCESS
from . import again
from .chunks import ChunkedBody, Dechunker
from .codes import code_of_status, readable
from .exchange import HOLD, Exchange
from .forward import forwarded_head
from .ghost import Ghost
from .phases import STREAMING, TUNNEL
from .timing import server_timing

if TYPE_CHECKING:
    from .head import ResponseHead

__all__ = ["Relayed"]


class Relayed(Exchange):
    """A request whose answer is passed on as it comes. Success is settled at its head; a later break is another matter."""

    rechunk = False

    def request_head(self, now: float) -> bytes:
        """The client's request head, as the target is to have it."""
        request = self.request
        lines = forwarded_head(self, now, request.lines)
        if request.chunked:
            lines.append(b"Transfer-Encoding: chunked")
        if request.expect and not self.full:
            lines.append(b"Expect: 100-continue")
        if request.upgrade is not None:
            lines.append(b"Connection: upgrade\r\nUpgrade: " + request.upgrade)
        lines.append(b"\r\n")
        return b"\r\n".join(lines)

    # -- the answer
    def interim(self, head: ResponseHead) -> None:
        """A 1xx that is not the answer."""
        self.heard()
        if self.request.v11 and (head.status != 100 or self.request.expect):
            self.client.write(b"\r\n".join((head.line, *head.lines, b"\r\n")))

    def chunk_reader(self) -> ChunkedBody | Dechunker:
        """What follows a chunked answer: passed on as it is, or unwrapped for who knows no chunks."""
        return ChunkedBody() if self.request.v11 else Dechunker()

    def head(self, head: ResponseHead, body: bytes | memoryview, length: int | None) -> None:
        """The answer's head, and what came with it of a counted body."""
        request, client, status = self.request, self.client, head.status
        self.status = status
        if status < 400 and head.code is None:
            self.code = "0000"
            token = self.token
            if token is not None:
                self.token = None
                self.backend.breaker.settle(token, SUCCESS)
        elif self.kept is None:  # else it has been judged when it was kept
            self._judge(head)
            if self.backend.retry is not None and again.keeps(self, head):
                self.kept = again.Kept(head, body, length)
                self.heard()
                return
        self.started = True
        self.phase = STREAMING
        lines: list[bytes | memoryview] = [head.line, *head.lines]
        if status == 204:  # has neither length nor coding: RFC 9110 8.6, RFC 9112 6.1
            lines = [head.line, *(line for line in head.lines if line[:15].lower() != b"content-length:")]
        elif length is None and not request.v11:
            self.keep = False
        elif length is None or (head.chunked and request.v11):
            lines.append(b"Transfer-Encoding: chunked")
            self.rechunk = not head.chunked
        if not self.keep or not self.full or client.hub.draining:
            self.keep = False
            lines.append(b"Connection: close")
        elif not request.v11:
            lines.append(b"Connection: keep-alive")
        if self.backend.times and (self.timed or client.hub.times_all):
            lines += server_timing(self).splitlines()
        lines.append(b"")
        if len(body) > HOLD:
            lines.append(b"")
            client.write(b"\r\n".join(lines))
            client.write(body)
        else:
            lines.append(body)
            client.write(b"\r\n".join(lines))
        if length is None or len(body) < length:
            if isinstance(client, Ghost):
                client.enough()
                return
            if not self._covers_body():
                self.deadline = inf
            self.until = self.backend.clock() + self.backend.settings.body_gap
            self.arm()

    def _judge(self, head: ResponseHead) -> None:
        if head.code is not None:  # a hub further on has answered: whatever it says, that hub is alive
            self.code = readable(head.code.decode("latin-1"))
            self.settle(SUCCESS)
        else:
            self.code = code_of_status(head.status)
            self.settle(self.backend.judge(self.code), self.code)

    def _covers_body(self) -> bool:
        scope = self.backend.settings.budget_scope
        return scope == "all" or (scope == "auto" and not self.defaulted)

    def body(self, data: bytes) -> None:
        """A piece of the answer's body, or of a tunnel."""
        settings = self.backend.settings
        if self.phase == STREAMING:
            gap = settings.body_gap
        elif self.kept is not None:
            self._keep(self.kept, data)
            return
        else:
            gap = self.client.hub.settings.idle_timeout
        self.until = self.backend.clock() + gap  # later than what stands on the wheel: nothing to move there
        self.client.write(b"%x\r\n%b\r\n" % (len(data), data) if self.rechunk else data)

    def ended(self) -> None:
        """The answer has ended as it should."""
        if self.backend.retry is not None and self.kept is not None and self._ask_for_another(self.kept):
            return
        if self.rechunk:
            self.client.write(b"0\r\n\r\n")
        self.end_of_answer(self.keep)

    # -- an answer that is not passed on before it is known whether there will be another attempt
    def idempotent(self) -> bool:
        """By its method, or because the client has given it a key."""
        return self.request.method in again.IDEMPOTENT or self.request.idempotency_key

    def _keep(self, kept: again.Kept, data: bytes) -> None:
        kept.body += data
        if len(kept.body) > again.KEEP:
            self.give_up_keeping()
        else:
            self.heard()

    def _ask_for_another(self, kept: again.Kept) -> bool:
        self.kept = None
        if again.after(self, again.failed_answer(self, kept.head, self.code), answer=kept):
            return True
        self._pass_on(kept)
        return False

    def give_up_keeping(self) -> None:
        """Too long, or too slow: pass on what there is, and the rest as it comes."""
        kept, self.kept = self.kept, None
        if kept is not None:
            again.not_kept(self, kept.head)
            self._pass_on(kept)

    def answer_after_all(self, answer: again.Kept) -> None:
        """No other attempt has come of it: the client gets this one's answer."""
        self._pass_on(answer)
        self.ended()

    def _pass_on(self, kept: again.Kept) -> None:
        body = bytes(kept.body)
        self.kept = kept
        self.head(kept.head, b"" if kept.length is None else body, kept.length)
        self.kept = None
        if kept.length is None and body:
            self.body(body)

    def switched(self, head: ResponseHead, rest: bytes) -> None:
        """101: from here on bytes go both ways untouched."""
        self.status, self.code = 101, "0000"
        self.started = True
        self.phase = TUNNEL
        self.deadline = inf
        self.settle(SUCCESS)
        upgrade = head.upgrade or self.request.upgrade or b""
        self.client.write(b"\r\n".join((head.line, *head.lines, b"Connection: upgrade\r\nUpgrade: " + upgrade, b"\r\n")))
        self.until = self.backend.clock() + self.client.hub.settings.idle_timeout
        self.arm()
        if rest:
            self.client.write(rest)
        self.client.tunnel()

    def tunnel_ended(self) -> None:
        """The target closed the tunnel."""
        self.upstream = None
        self.end_of_answer(False)
