"""The answers the hub makes itself: ``application/problem+json`` (RFC 9457), the code in a header as well."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from ..problem import problem as described

__all__ = ["CONTINUE", "head_of", "problem"]

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_REASONS = {status.value: status.phrase for status in HTTPStatus}


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
    said = described(code, detail, status=status, target=target, retry_after=retry_after)
    if said.retry_after is not None:
        extra += b"Retry-After: %d\r\n" % said.retry_after
    if request_id is not None:
        extra += b"X-Request-Id: %b\r\n" % request_id
    body = json.dumps(said.members | more).encode() + b"\n"
    extra += b"X-Seawall-Code: %b\r\n" % code.encode()
    return head_of(said.status, len(body), b"application/problem+json", extra, close=close), body
