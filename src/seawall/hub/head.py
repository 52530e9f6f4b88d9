"""Heads of HTTP/1.1 messages: bytes in, a checked head out; nothing here waits, reads or writes.

A relay is attacked through what two parsers read differently, so this one is strict where RFC 9112 lets a recipient
be kind: one way to end a line, one way to frame a body, one Host. What it accepts may be sent on as it stands.

How a head is read, on the hot path of every exchange:

1. It is cut at the first empty line and split at CRLF.
2. One ``translate`` over what is left shows whether a control character is in it: a bare CR or LF, a NUL or another.
3. Each line is cut at its first colon, and a memory of names already checked says what the name means here. Most mean
   nothing, and their lines pass on untouched; the few that do are put aside.
4. What was put aside is settled afterwards, so that a head pays only for what it carries.

A folded line, a space before the colon and an empty name all make a name that is no token: they need no rule of their
own. The seam is narrow on purpose: a compiled codec that gives the same heads may stand in for :func:`parse_request`
and :func:`parse_response`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeAlias

from .fields import (
    BUDGET,
    CODE,
    DROP,
    END,
    ENVOY,
    EXPECT,
    FORWARDED,
    GRPC,
    HOP,
    HOST,
    KEYED,
    PROTO,
    REQUEST_ID,
    RETRY_AFTER,
    TOKEN,
    VIA,
    BadHead,
    Names,
    framing,
    options_of,
    read,
    without,
)

__all__ = ["HEAD_LIMIT", "BadHead", "Budgets", "RequestHead", "ResponseHead", "parse_request", "parse_response"]

Budgets: TypeAlias = "tuple[bytes | None, bytes | None, bytes | None]"
"""Values of the headers that say a budget, in the order of :data:`seawall.headers.FORMS`."""

HEAD_LIMIT = 65536
"""Bytes in a head, its empty line included. nginx allows 32 KiB beside the first line, HAProxy and Node.js 16 KiB."""

_STATUS_KEPT = 64  # bytes of the longest status line that is remembered
_HOST_BYTES = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-._~%!$&'()*+;=:[]"  # RFC 3986, no comma
_ABSOLUTE = re.compile(rb"(?i:https?)://([^/?#]+)(.*)")
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: (.*))?")
METHODS = frozenset((b"GET", b"POST", b"PUT", b"DELETE", b"HEAD", b"OPTIONS", b"PATCH", b"TRACE"))

REQUEST_NAMES = Names(
    400,
    {
        **HOP, b"proxy-authorization": DROP, b"host": HOST, b"expect": EXPECT, b"x-budget-ms": BUDGET,
        b"grpc-timeout": GRPC, b"x-envoy-expected-rq-timeout-ms": ENVOY,
        b"x-forwarded-for": FORWARDED, b"x-forwarded-proto": PROTO, b"via": VIA, b"x-request-id": REQUEST_ID,
        b"idempotency-key": KEYED,
    },
)  # fmt: skip
RESPONSE_NAMES = Names(502, {**HOP, b"x-seawall-code": CODE, b"retry-after": RETRY_AFTER})


class RequestHead:
    """A request head. ``lines`` pass on as they are; what the relay writes itself has been taken out of them.

    Attributes:
        end: Offset in the given data of the first byte after the head.
        method: As sent.
        target: Origin form as sent, byte for byte, or ``*``.
        v11: HTTP/1.1, else 1.0.
        host: Value of Host, or the authority of an absolute-form target, which wins (RFC 9112 3.2.2).
        lines: Header lines in order, without hop-by-hop headers and without those that have a slot here.
        length: Content-Length; its line stays in ``lines``.
        chunked: The body is chunked.
        keep_alive: The client wants to go on after this request.
        expect: It waits for a 100 before it sends the body.
        upgrade: What it offers to switch to.
        budgets: What it says of its budget; ``None`` where it says nothing.
        forwarded, proto, via, request_id: Values of X-Forwarded-For, X-Forwarded-Proto, Via and X-Request-Id; several of
            one joined by commas.
        idempotency_key: The header is there; its line stays in ``lines``.
    """

    __slots__ = (
        "budgets", "chunked", "end", "expect", "forwarded", "host", "idempotency_key", "keep_alive", "length", "lines",
        "method", "proto", "request_id", "target", "upgrade", "v11", "via",
    )  # fmt: skip
    end: int
    method: bytes
    target: bytes
    v11: bool
    host: bytes | None
    lines: list[bytes]
    length: int | None
    chunked: bool
    keep_alive: bool
    expect: bool
    upgrade: bytes | None
    budgets: Budgets | None
    forwarded: bytes | None
    proto: bytes | None
    via: bytes | None
    request_id: bytes | None
    idempotency_key: bool


class ResponseHead:
    """A response head. ``line`` and ``lines`` pass on as they are.

    Attributes:
        end: Offset in the given data of the first byte after the head.
        status: 100 to 599.
        line: The status line, normalised to HTTP/1.1.
        lines: Header lines in order, without hop-by-hop headers.
        length, chunked: How the body is framed; with neither it lasts until the connection ends.
        keep_alive: The connection may be used again.
        upgrade: What was switched to.
        code, retry_after: Values of X-Seawall-Code and Retry-After; their lines stay in ``lines``.
    """

    __slots__ = ("chunked", "code", "end", "keep_alive", "length", "line", "lines", "retry_after", "status", "upgrade")
    end: int
    status: int
    line: bytes
    lines: list[bytes]
    length: int | None
    chunked: bool
    keep_alive: bool
    upgrade: bytes | None
    code: bytes | None
    retry_after: bytes | None


def parse_request(data: bytes, limit: int = HEAD_LIMIT) -> RequestHead | None:
    """The request head at the start of ``data``; ``None`` while it is not whole.

    Args:
        data: From the first byte of the request on; more than the head is fine.
        limit: Bytes a head may have, empty lines before it not counted.

    Raises:
        BadHead: It is not understood, or must not be passed on. Everything behind it is lost as well.

    Source: RFC 9112 (syntax, framing), RFC 9110 7.6.1 (what is not passed on).
    """
    start = 0
    if data[:2] == b"\r\n":
        start = 4 if data[2:4] == b"\r\n" else 2  # RFC 9112 2.2 forgives at least one; a third is no request line
        data = data[start:]
    end = data.find(END, 0, limit)
    if end < 0:
        if len(data) < limit:
            return None
        raise BadHead(431, f"The head is longer than {limit} bytes.")
    head = RequestHead()
    first, head.lines, values = read(data[:end], REQUEST_NAMES)
    (
        _, _, host, connection, coding, expect, upgrade, budget, grpc, envoy, head.forwarded, head.proto, head.via,
        head.request_id, length, key, _, _,
    ) = values  # fmt: skip
    try:
        method, target, version = first.split(b" ")
    except ValueError:
        raise BadHead(400, "The request line is not METHOD TARGET VERSION.") from None
    v11 = version == b"HTTP/1.1"
    if not v11 and version != b"HTTP/1.0":
        raise _other_version(version)
    if method not in METHODS and not TOKEN.fullmatch(method):
        raise BadHead(400, "The method is no token.")
    if host is None:
        if v11:
            raise BadHead(400, "There is no Host header.")
    elif host.translate(None, _HOST_BYTES):
        raise BadHead(400, "The Host header holds a character that is not allowed in it.")
    if target[:1] != b"/" or not target.isascii() or b"\t" in target:
        host, target = _other_target(method, target, host)
    head.end = start + end + 4
    head.method, head.target, head.host = method, target, host
    head.v11 = head.keep_alive = v11
    head.idempotency_key = key is not None
    head.expect = expect is not None and _is_continue(expect, v11)
    head.length, head.chunked, head.upgrade, head.budgets = None, False, None, None
    if budget is not None or grpc is not None or envoy is not None:
        head.budgets = (budget, grpc, envoy)
    if length is not None or coding is not None:
        head.length, head.chunked = framing(length, coding, v11, REQUEST_NAMES)
    if connection == b"keep-alive":
        head.keep_alive = True
    elif connection is not None:
        _settle_connection(head, connection, upgrade if v11 else None, REQUEST_NAMES)
    return head


def parse_response(data: bytes, limit: int = HEAD_LIMIT) -> ResponseHead | None:
    """The response head at the start of ``data``; ``None`` while it is not whole.

    Raises:
        BadHead: It is no HTTP, or its framing is ambiguous; ``status`` is 502.
    """
    end = data.find(END, 0, limit)
    if end < 0:
        if data[:5] != b"HTTP/"[: len(data)]:  # what speaks another protocol may never send an empty line
            raise BadHead(502, "It does not begin like HTTP.")
        if len(data) < limit:
            return None
        raise BadHead(502, f"The head is longer than {limit} bytes.")
    head = ResponseHead()
    first, head.lines, values = read(data[:end], RESPONSE_NAMES)
    _, _, _, connection, coding, _, upgrade, _, _, _, _, _, _, _, length, _, head.code, head.retry_after = values
    head.status, v11, head.line = (status_of if len(first) <= _STATUS_KEPT else status_of.__wrapped__)(first)
    head.end = end + 4
    head.keep_alive, head.upgrade = v11, None
    head.length, head.chunked = framing(length, coding, v11, RESPONSE_NAMES)
    if connection == b"keep-alive":
        head.keep_alive = True
    elif connection is not None:
        _settle_connection(head, connection, upgrade if v11 else None, RESPONSE_NAMES)
    return head


def _other_version(version: bytes) -> BadHead:
    if version[:5] == b"HTTP/":
        return BadHead(505, "Only HTTP/1.1 and HTTP/1.0 are spoken here.")
    return BadHead(400, "The request line is not METHOD TARGET VERSION.")


def _other_target(method: bytes, target: bytes, host: bytes | None) -> tuple[bytes | None, bytes]:
    """Host and target, from any form of target but the usual one."""
    if not target.isascii() or b"\t" in target:
        raise BadHead(400, "The target holds a tab, or a byte that is not ASCII.")
    if method == b"CONNECT":
        raise BadHead(501, "CONNECT is not offered: this is no forward proxy.")
    if target == b"*":
        if method != b"OPTIONS":
            raise BadHead(400, "The target * is for OPTIONS only.")
        return host, target
    match = _ABSOLUTE.fullmatch(target)
    if match is None:
        raise BadHead(400, "The target is neither a path nor an http URL.")
    if match[1].translate(None, _HOST_BYTES):
        raise BadHead(400, "The host in the target holds a character that is not allowed in it.")
    path = match[2].partition(b"#")[0]
    if not path and method == b"OPTIONS":
        return match[1], b"*"  # RFC 9112 3.2.4
    return match[1], path if path[:1] == b"/" else b"/" + path


def _is_continue(expected: bytes, v11: bool) -> bool:
    if expected.lower() != b"100-continue":
        raise BadHead(417, "Only 100-continue can be expected of this server.")
    return v11  # a 1.0 client cannot mean it: RFC 9110 10.1.1


def _settle_connection(
    head: RequestHead | ResponseHead, connection: bytes, upgrade: bytes | None, names: Names
) -> None:
    options = options_of(connection)
    head.keep_alive = b"close" not in options and (head.keep_alive or b"keep-alive" in options)
    head.upgrade = (upgrade or None) if b"upgrade" in options else None
    head.lines = without(head.lines, options, names)


@lru_cache(256)
def status_of(line: bytes) -> tuple[int, bool, bytes]:
    """Status, whether it is HTTP/1.1, and the line as it is passed on; remembered, since a target has a handful."""
    match = _STATUS_LINE.fullmatch(line)
    if match is None:
        raise BadHead(502, "The status line is not HTTP/1.x STATUS REASON.")
    return int(match[2]), match[1] == b"1", b"HTTP/1.1" + line[8:]
