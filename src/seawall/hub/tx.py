"""The transaction door: ``POST /tx`` with ``{"target": "CORE", ...}`` in, JSON with ``code`` out.

Both bodies are read whole, so that a target can be named in the one and a business refusal be seen in the other. What is
passed on, either way, is the original bytes.
"""

from __future__ import annotations

import json
import logging
from math import inf
from typing import TYPE_CHECKING, Any

from ..outcome import CODES, DISCARDED, SUCCESS, Outcome
from . import again
from .answers import CONTINUE, head_of, problem
from .budget import read_budgets
from .chunks import Dechunker
from .codes import code_of_status, readable
from .exchange import Exchange
from .forward import forwarded_head
from .timing import server_timing

if TYPE_CHECKING:
    from .client import Client
    from .head import RequestHead, ResponseHead
    from .server import Hub

__all__ = ["TxExchange", "TxRequest"]

log = logging.getLogger("seawall.hub")
LONGEST_ANSWER = 8 * 1024 * 1024  # bytes of a target's answer; read whole, so it must have an end
JSON = b"application/json"
_DROPPED = (b"content-type:", b"content-length:", b"accept-encoding:")  # we know it is JSON, and must read the answer
_OURS = b"Content-Type: application/json\r\nAccept-Encoding: identity\r\nContent-Length: %d\r\n\r\n"


class _Twice(dict[str, Any]):
    """An object in which ``target`` stands twice. Only of the outermost one does it matter."""


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs) and [name for name, _ in pairs].count("target") > 1:
        return _Twice(members)
    return members


class TxRequest:
    """A transaction whose body is on its way in: no target yet, so no policy has been asked."""

    __slots__ = ("began", "body", "client", "deadline", "dechunker", "request", "until")
    upstream = None
    started = False

    def __init__(self, client: Client, request: RequestHead, now: float) -> None:
        self.client, self.request, self.began = client, request, now
        self.body = bytearray()
        self.dechunker = Dechunker() if request.chunked else None
        self.until = now + client.hub.settings.body_gap
        self.deadline = inf
        if request.budgets is not None and client.heeds_budgets:  # what cannot be read is counted when the target is known
            seconds, _ = read_budgets(request.budgets)
            if seconds is not None:
                self.deadline = now + seconds

    def expected(self, now: float) -> None:
        """The client waits to be asked for the body."""
        if self.request.method != b"POST":
            self._refuse_method(keep=False)
        elif not self._too_large(self.request.length or 0):
            self.client.write(CONTINUE)

    def receive(self, piece: bytes, now: float) -> None:
        """A piece of the body."""
        self.body += self.dechunker.feed(piece) if self.dechunker is not None else piece
        self.until = now + self.client.hub.settings.body_gap
        self.client.set_due(min(self.until, self.deadline))
        self._too_large(max(len(self.body), self.request.length or 0))

    def complete(self, now: float) -> None:
        """The body is in: find the target, and go on as an exchange with it."""
        hub = self.client.hub
        if self.request.method != b"POST":
            self._refuse_method(keep=True)
            return
        try:
            name = _target_of(bytes(self.body), hub)
        except ValueError as bad:
            self._refuse("E400", str(bad))
            return
        backend = hub.backends.get(name)
        if backend is None:
            self._refuse("E404", f"there is no target {name[:64]!r}; there are {', '.join(hub.backends)}")
            return
        exchange = TxExchange(self.client, self.request, backend, backend.base + b"/tx", self.began)
        exchange.text = bytes(self.body)
        exchange.full = True
        self.client.exchange = exchange
        exchange.start(now)

    def on_due(self, now: float) -> None:
        """The client sends too slowly, for its own budget or for anyone's patience."""
        if now >= self.deadline:
            self.fail("E906", "the budget was spent before the transaction was in")
        elif now < self.until:
            self.client.set_due(min(self.until, self.deadline))
        else:
            gap = self.client.hub.settings.body_gap
            self.fail("E408", f"no more of the body within {gap:g} s")

    def client_gone(self) -> None:
        """Nothing has been begun for it."""
        self.client.hub.count_refused("C499")

    def fail(self, code: str, detail: str, outcome: Outcome = DISCARDED) -> None:
        """End with an answer of the hub's own, and the connection with it: the rest of the body is not waited for."""
        self._refuse(code, detail, keep=False)

    def fault(self) -> None:
        """A fault of the hub's own is being handled."""
        log.exception("a transaction met a fault of the hub itself")
        self.fail("E999", "the hub made a mistake; its log says where")

    def _too_large(self, size: int) -> bool:
        most = self.client.hub.settings.max_body_tx
        if size > most:
            self.fail("E413", f"a transaction has at most {most} bytes")
        return size > most

    def _refuse_method(self, keep: bool) -> None:
        self._refuse("E400", "a transaction is a POST", keep=keep, status=405, extra=b"Allow: POST\r\n")

    def _refuse(self, code: str, detail: str, *, keep: bool = True, **more: Any) -> None:
        self.client.hub.count_refused(code)
        keep = keep and self.request.keep_alive and self.request.v11 and not self.client.hub.draining
        head, body = problem(code, detail, request_id=self.request.request_id, close=not keep, **more)
        self.client.reply(head, b"" if self.request.method == b"HEAD" else body, keep)


def _target_of(body: bytes, hub: Hub) -> str:
    try:
        members = json.loads(body, object_pairs_hook=_members)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the body is not JSON: {str(error)[:200]}") from None
    if not isinstance(members, dict):
        raise ValueError('the body is not a JSON object: {"target": "NAME", ...} is expected')
    if isinstance(members, _Twice):
        raise ValueError('the key "target" stands twice in the body: which one is meant cannot be told')
    name = members.get("target", hub.settings.default)
    if not isinstance(name, str):
        raise ValueError(f'the body names no target: {{"target": NAME}} with one of {", ".join(hub.backends)}')
    return name


class TxExchange(Exchange):
    """A transaction with its target known. Attempt limit and budget cover the whole answer."""

    whole = True
    may_switch = False
    text: bytes
    answer: bytearray
    answer_head: ResponseHead

    # -- out
    def request_head(self, now: float) -> bytes:
        """Head and body in one. The body is the client's, byte for byte, and is known to be JSON."""
        request = self.request
        lines = forwarded_head(self, now, [line for line in request.lines if not line.lower().startswith(_DROPPED)])
        lines.append(_OURS % len(self.text))
        return b"\r\n".join(lines) + self.text

    # -- back
    def chunk_reader(self) -> Dechunker:
        """The answer is read, not passed on."""
        return Dechunker()

    def interim(self, head: ResponseHead) -> None:
        """A 1xx: of no use to who waits for a code."""
        self.heard()

    def head(self, head: ResponseHead, body: bytes | memoryview, length: int | None) -> None:
        """The answer has begun; it is judged at its end."""
        self.answer_head, self.answer = head, bytearray(body)
        self.status = head.status
        if length is None or len(body) < length:
            self.heard()

    def body(self, data: bytes) -> None:
        """A piece of the answer."""
        self.answer += data
        if len(self.answer) > LONGEST_ANSWER:
            self.broken(f"its answer is longer than {LONGEST_ANSWER} bytes")
        else:
            self.heard()

    def ended(self) -> None:
        """The answer is in: its code, its meaning for the breaker, and what the client gets."""
        answer = code, _, _ = self._read_answer()
        head = self.answer_head
        if head.code is not None:
            self.settle(SUCCESS)
        else:
            self.settle(self.backend.judge(code), code)
        failed = self.backend.retry is not None and again.is_failure(head)
        if not failed or not again.after(self, again.failed_answer(self, head, code), answer=answer):
            self.answer_after_all(answer)

    def idempotent(self) -> bool:
        """Only the target can say so of its transactions."""
        return self.backend.settings.idempotent

    def answer_after_all(self, answer: tuple[str, int, bytes]) -> None:
        """Code, status and body for the client; the head of the target's answer is still at hand."""
        code, status, body = answer
        self.code, self.status = code, status
        self.keep = self.keep and self.request.v11 and not self.client.hub.draining
        extra = b"X-Seawall-Code: %b\r\n" % code.encode()
        if self.backend.times and (self.timed or self.client.hub.times_all):
            extra += server_timing(self)
        if self.request_id is not None:
            extra += b"X-Request-Id: %b\r\n" % self.request_id
        if self.answer_head.retry_after is not None:
            extra += b"Retry-After: %b\r\n" % self.answer_head.retry_after
        content_type = JSON if status < 400 else b"application/problem+json"
        self.client.write(head_of(status, len(body), content_type, extra, close=not self.keep) + body)
        self.end_of_answer(self.keep)

    def _read_answer(self) -> tuple[str, int, bytes]:
        head, raw = self.answer_head, bytes(self.answer)
        if head.code is not None:
            return readable(head.code.decode("latin-1")), head.status if raw or head.status >= 400 else 200, raw
        if head.status >= 300:
            code = code_of_status(head.status)
            status = CODES["E500"].status if head.status < 400 or head.status >= 500 else 200
            members = {
                "code": code, "detail": f"{self.backend.name} answered {head.status}", "target": self.backend.name,
                "target_status": head.status, "answer": _shown(raw),
            }  # fmt: skip
            if code == "E500":
                members = {"title": CODES[code].meaning, "status": status, **members}
            return code, status, json.dumps(members).encode() + b"\n"
        answer = _shown(raw)
        if not isinstance(answer, dict):
            wrapped = {"code": "0000", "target": self.backend.name, "answer": answer}
            return "0000", 200, json.dumps(wrapped).encode() + b"\n"
        if "code" in answer:
            return readable(answer["code"]), 200, raw
        return "0000", 200, b'{"code": "0000"' + (b", " if answer else b"") + raw.lstrip()[1:].lstrip()


def _shown(raw: bytes) -> object:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return raw.decode("utf-8", "replace")
