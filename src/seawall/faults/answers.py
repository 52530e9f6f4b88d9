"""What a fake target answers: the transaction, the mirror, the two doors of command. No sockets here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .modes import Mode, read_json
from .wire import BODY_KEPT, Answer, Request

if TYPE_CHECKING:
    from .target import FakeTarget

__all__ = ["commanded", "refusal", "work_answer"]


def refusal(target: FakeTarget, status: int, detail: str, allow: str = "") -> Answer:
    """An answer that says no, with the status as its code."""
    code = f"E{status}"
    return Answer(status, {"code": code, "target": target.name, "detail": detail}, (("Allow", allow),) if allow else ())


def _only(request: Request, target: FakeTarget, *methods: str) -> Answer | None:
    if request.method in methods:
        return None
    allow = ", ".join(methods)
    return refusal(target, 405, f"{request.path} takes {allow}, not {request.method}", allow)


def commanded(request: Request, target: FakeTarget) -> Answer:
    """The answer of ``/_ctl`` or ``/_stats``; the former has done what it was told."""
    if request.path == "/_stats":
        return _only(request, target, "GET", "HEAD") or Answer(200, target.stats())
    if refused := _only(request, target, "POST"):
        return refused
    try:
        return Answer(200, target.control(read_json(request.body)))
    except ValueError as error:
        return refusal(target, 400, str(error))


def _transaction(request: Request, target: FakeTarget) -> Answer:
    if refused := _only(request, target, "POST"):
        return refused
    if request.body_bytes > BODY_KEPT:
        return refusal(target, 413, f"a transaction is at most {BODY_KEPT} bytes, not {request.body_bytes}")
    if not request.body.strip():
        return refusal(target, 400, "not a transaction: the body is empty, not a JSON object")
    try:
        wish = read_json(request.body)
    except ValueError as error:
        return refusal(target, 400, f"not a transaction: {error}")
    amount = wish.get("amount", 0)
    if isinstance(amount, bool) or not isinstance(amount, (int, float)) or amount < 0:
        return refusal(target, 400, f"amount is a number from 0, not {amount!r}"[:200])
    covered = amount <= target.balance
    content: dict[str, Any] = {"code": "0000" if covered else "B201", "target": target.name}
    content |= {key: wish[key] for key in ("id", "amount") if key in wish}
    content |= {"balance": target.balance}
    return Answer(200, content if covered else content | {"detail": "insufficient funds"})


def _mirrored(request: Request, target: FakeTarget) -> Answer:
    content: dict[str, Any] = {"code": "0000", "target": target.name, "method": request.method, "path": request.target}
    return Answer(200, content | {"headers": request.headers, "body_bytes": request.body_bytes})


def work_answer(request: Request, target: FakeTarget, mode: Mode, status: int) -> Answer:
    """The answer to everything else, in that mode; when and how well it is sent is not decided here."""
    if mode is Mode.FAIL:
        return refusal(target, 500, "told to fail by POST /_ctl")
    if mode is Mode.STATUS and status >= 300:
        told = refusal(target, status, "told so by POST /_ctl")
        return told._replace(headers=(("Location", "/elsewhere"),)) if status < 400 else told
    answer = _transaction(request, target) if request.path == "/tx" else _mirrored(request, target)
    return answer._replace(status=status) if mode is Mode.STATUS else answer
