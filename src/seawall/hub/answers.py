"""The answers the hub makes itself: ``application/problem+json`` (RFC 9457), the code in a header as well."""

from __future__ import annotations

import json
from http import HTTPStatus
from math import ceil
from typing import Any

from ..outcome import CODES

__all__ = ["CONTINUE", "head_of", "problem"]

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_REASONS = {status.value: status.phrase for status in HTTPStatus}
_WAITING_CODES = frozenset({"E904", "E907"})  # always say when to come back


def head_of(status: int, length: int, content_type: bytes, extra: bytes = b"", *, close: bool = False) -> bytes:
    """A response head; ``extra`` is whole header lines, each with its CRLF."""
    return b"HTTP/1.1 %d %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n%b%b\r\n" % (
        status,
        _REASONS.get(status, "Status").encode(),
        content_type,
        length,
        extra,
        b"Connection: close\r\n" if close else b"",
    )


def problem(
    code: str,
    detail: str,
    *,
    target: str = "",
    retry_after: float | None = None,
    request_id: bytes | None = None,
    status: int | None = None,
    extra: bytes = b"",
    close: bool = False,
    **more: Any,
) -> tuple[bytes, bytes]:
    """The hub's own answer: head and body.

    Args:
        code: One of :data:`~seawall.outcome.CODES`.
        detail: One sentence: what happened, with its number.
        target: The target's name, where one was found.
        retry_after: Seconds until asking again makes sense; the header is in whole seconds, rounded up, at least 1.
        request_id: Echoed, so that the caller can quote it.
        status: Instead of the code's own.
        extra: Further whole header lines.
        close: Say that the connection ends with this answer.
        more: Further members of the body.
    """
    row = CODES[code]
    status = status or row.status
    members: dict[str, Any] = {"code": code, "title": row.meaning, "status": status, "detail": detail}
    if target:
        members["target"] = target
    if retry_after is None and code in _WAITING_CODES:
        retry_after = 1.0
    if retry_after is not None:
        members["retry_after_ms"] = max(0, ceil(retry_after * 1000))
        extra += b"Retry-After: %d\r\n" % max(1, ceil(retry_after))
    if request_id is not None:
        extra += b"X-Request-Id: %b\r\n" % request_id
    members.update(more)
    body = json.dumps(members).encode() + b"\n"
    extra += b"X-Seawall-Code: %b\r\n" % code.encode()
    return head_of(status, len(body), b"application/problem+json", extra, close=close), body
