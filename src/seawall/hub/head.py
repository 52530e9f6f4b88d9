"""Heads of HTTP/1.1 messages: bytes in, a checked head out; nothing here waits, reads or writes.

A relay is attacked through what two parsers read differently, so this one is strict where RFC 9112 lets a recipient
be kind: one way to end a line, one way to frame a body, one Host. What it accepts may be sent on as it stands.

How a head is read, on the hot path of every exchange:

1. It is cut at the first empty line and split at CRLF.
2. One ``translate`` counts the control characters. Each line end accounts for two, so any more than that is a bare CR
   or LF, a NUL or another control character somewhere: one pass settles all of them.
3. Each line is cut at its first colon, and a memory of names already checked says what the name means here. Most mean
   nothing, and their lines pass on untouched; the few that do are put aside.
4. What was put aside is settled afterwards, so that a head pays only for what it carries.

A folded line, a space before the colon and an empty name all make a name that is no token: they need no rule of their
own. The seam is narrow on purpose: a compiled codec that gives the same heads may stand in for :func:`parse_request`
and :func:`parse_response`.
"""

from __future__ import annotations

import re
from typing import NoReturn

__all__ = ["HEAD_LIMIT", "BadHead", "RequestHead", "ResponseHead", "parse_request", "parse_response"]

HEAD_LIMIT = 65536
"""Bytes in a head, its empty line included. nginx allows 32 KiB beside the first line, HAProxy and Node.js 16 KiB."""

_EMPTY_LINES = 2  # forgiven before a request line; RFC 9112 2.2 asks for at least one
_LENGTH_DIGITS = 18  # as many as always fit a signed 64-bit integer
_NAMES_KEPT = 1024  # names remembered in each direction, and the longest, so that no sender can make the memory grow
_NAME_KEPT = 64

_END = b"\r\n\r\n"
_CONTROLS = bytes(set(range(32)) - {9}) + b"\x7f"
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HOST_BYTES = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-._~%!$&'()*+;=:[]"  # RFC 3986, no comma
_ABSOLUTE = re.compile(rb"(?i:https?)://([^/?#]+)(.*)")
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: (.*))?")
_METHODS = frozenset((b"GET", b"POST", b"PUT", b"DELETE", b"HEAD", b"OPTIONS", b"PATCH", b"TRACE"))

# What a header name means. PLAIN is the only false one; those from LENGTH on leave their line in place.
_PLAIN, _DROP, _HOST, _CONNECTION, _CODING, _EXPECT, _UPGRADE = range(7)
_BUDGET, _FORWARDED, _PROTO, _VIA, _REQUEST_ID = range(7, 12)
_LENGTH, _KEYED, _CODE, _RETRY_AFTER = range(12, 16)
_SLOTS = {_BUDGET: "budget", _FORWARDED: "forwarded", _PROTO: "proto", _VIA: "via", _REQUEST_ID: "request_id"}

_HOP = {
    b"connection": _CONNECTION, b"keep-alive": _DROP, b"proxy-connection": _DROP, b"te": _DROP,
    b"transfer-encoding": _CODING, b"upgrade": _UPGRADE, b"content-length": _LENGTH,
}  # fmt: skip
_OPTIONS = frozenset((b"close", b"keep-alive", b"upgrade", b""))


class BadHead(Exception):
    """A head that is not understood, or that must not be passed on.

    Attributes:
        status: What to answer: 400, 417, 431, 501 or 505 for a request, 502 for a response.
        why: One sentence for the client. It never repeats what was sent.
    """

    def __init__(self, status: int, why: str) -> None:
        super().__init__(status, why)
        self.status = status
        self.why = why


class _Names(dict[bytes, int]):
    """Header names already checked, with what they mean; a new one is checked when it is first looked up.

    When full it starts again: a sender of ever new names costs the others one check each, never their places.
    """

    def __init__(self, status: int, meanings: dict[bytes, int]) -> None:
        super().__init__()
        self.status = status
        self.meanings = meanings

    def __missing__(self, name: bytes) -> int:
        if not _TOKEN.fullmatch(name):
            self.refuse("A header name is empty or holds a character that is not allowed in it.")
        meaning = self.meanings.get(name.lower(), _PLAIN)
        if len(name) <= _NAME_KEPT:
            if len(self) >= _NAMES_KEPT:
                self.clear()
            self[name] = meaning
        return meaning

    def refuse(self, why: str) -> NoReturn:
        """Raise the error of this direction."""
        raise BadHead(self.status, why)

    def sort(self, lines: list[bytes]) -> tuple[list[bytes], dict[int, bytes]]:
        """Split header lines into those that pass on and the values of those that mean something."""
        passed: list[bytes] = []
        aside: dict[int, bytes] = {}
        keep = passed.append
        for line in lines:
            name, colon, value = line.partition(b":")
            meaning = self[name]
            if not colon:
                self.refuse("A header line has no colon.")
            if not meaning:
                keep(line)
            elif meaning != _DROP:
                value = value.strip(b" \t")
                if meaning not in aside:
                    aside[meaning] = value
                elif meaning == _HOST:
                    self.refuse("There are two Host headers.")
                elif meaning == _LENGTH:
                    self.refuse("There are two Content-Length headers.")
                else:
                    aside[meaning] += (b"," if meaning == _BUDGET else b", ") + value
                if meaning >= _LENGTH:
                    keep(line)
        return passed, aside


_REQUEST = _Names(
    400,
    {
        **_HOP, b"proxy-authorization": _DROP, b"host": _HOST, b"expect": _EXPECT, b"x-budget-ms": _BUDGET,
        b"x-forwarded-for": _FORWARDED, b"x-forwarded-proto": _PROTO, b"via": _VIA, b"x-request-id": _REQUEST_ID,
        b"idempotency-key": _KEYED,
    },
)  # fmt: skip
_RESPONSE = _Names(502, {**_HOP, b"x-seawall-code": _CODE, b"retry-after": _RETRY_AFTER})


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
        budget, forwarded, proto, via, request_id: Values of X-Budget-Ms, X-Forwarded-For, X-Forwarded-Proto, Via and
            X-Request-Id; several of one joined by commas.
        idempotency_key: The header is there; its line stays in ``lines``.
    """

    __slots__ = (
        "budget", "chunked", "end", "expect", "forwarded", "host", "idempotency_key", "keep_alive", "length", "lines",
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
    budget: bytes | None
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
        limit: Bytes a head may have.

    Raises:
        BadHead: It is not understood, or must not be passed on. Everything behind it is lost as well.

    Source: RFC 9112 (syntax, framing), RFC 9110 7.6.1 (what is not passed on).
    """
    start = 0
    if data[:1] in (b"\r", b"\n"):
        while start < 2 * _EMPTY_LINES and data[start : start + 2] == b"\r\n":
            start += 2
        data = data[start:]
    end = _end_of_head(data, limit, 431)
    if end < 0:
        return None
    first, *rest = _lines(data, end, _REQUEST)
    lines, aside = _REQUEST.sort(rest)
    try:
        method, target, version = first.split(b" ")
    except ValueError:
        raise BadHead(400, "The request line is not METHOD TARGET VERSION.") from None
    head = RequestHead()
    head.end = start + end + 4
    head.method, head.target, head.lines = method, target, lines
    if version == b"HTTP/1.1":
        v11 = True
    elif version == b"HTTP/1.0":
        v11 = False
    elif version[:5] == b"HTTP/":
        raise BadHead(505, "Only HTTP/1.1 and HTTP/1.0 are spoken here.")
    else:
        raise BadHead(400, "The request line is not METHOD TARGET VERSION.")
    head.v11 = head.keep_alive = v11
    if method not in _METHODS and not _TOKEN.fullmatch(method):
        raise BadHead(400, "The method is no token.")
    get = aside.get
    head.host = get(_HOST)
    if target[:1] != b"/" or not target.isascii() or b"\t" in target:
        _settle_target(head)
    if head.host is None:
        if v11:
            raise BadHead(400, "There is no Host header.")
    elif head.host.translate(None, _HOST_BYTES):
        raise BadHead(400, "The Host header holds a character that is not allowed in it.")
    head.budget, head.forwarded, head.proto = get(_BUDGET), get(_FORWARDED), get(_PROTO)
    head.via, head.request_id, head.idempotency_key = get(_VIA), get(_REQUEST_ID), _KEYED in aside
    head.expect, head.upgrade = False, None
    head.length, head.chunked = _framing(aside, v11, _REQUEST) if _LENGTH in aside or _CODING in aside else (None, False)
    if _EXPECT in aside:
        if aside[_EXPECT].lower() != b"100-continue":
            raise BadHead(417, "Only 100-continue can be expected of this server.")
        head.expect = v11  # a 1.0 client cannot mean it: RFC 9110 10.1.1
    connection = get(_CONNECTION)
    if connection is not None and connection != b"keep-alive":
        options = _options(connection)
        head.keep_alive = b"close" not in options if v11 else b"keep-alive" in options and b"close" not in options
        head.upgrade = get(_UPGRADE) if v11 and b"upgrade" in options else None
        head.lines = _without(lines, options, _REQUEST)
    elif connection is not None:
        head.keep_alive = True
    return head


def parse_response(data: bytes, limit: int = HEAD_LIMIT) -> ResponseHead | None:
    """The response head at the start of ``data``; ``None`` while it is not whole.

    Raises:
        BadHead: It is no HTTP, or its framing is ambiguous; ``status`` is 502.
    """
    if data[:5] != b"HTTP/"[: len(data)]:
        raise BadHead(502, "It does not begin like HTTP.")
    end = _end_of_head(data, limit, 502)
    if end < 0:
        return None
    first, *rest = _lines(data, end, _RESPONSE)
    lines, aside = _RESPONSE.sort(rest)
    match = _STATUS_LINE.fullmatch(first)
    if match is None:
        raise BadHead(502, "The status line is not HTTP/1.x STATUS REASON.")
    v11 = match[1] == b"1"
    head = ResponseHead()
    head.end, head.status, head.lines = end + 4, int(match[2]), lines
    head.line = first if v11 else b"HTTP/1.1" + first[8:]
    head.keep_alive, head.upgrade = v11, None
    get = aside.get
    head.code, head.retry_after = get(_CODE), get(_RETRY_AFTER)
    head.length, head.chunked = _framing(aside, v11, _RESPONSE) if _LENGTH in aside or _CODING in aside else (None, False)
    connection = get(_CONNECTION)
    if connection is not None and connection != b"keep-alive":
        options = _options(connection)
        head.keep_alive = b"close" not in options and (v11 or b"keep-alive" in options)
        head.upgrade = get(_UPGRADE) if b"upgrade" in options else None
        head.lines = _without(lines, options, _RESPONSE)
    elif connection is not None:
        head.keep_alive = True
    return head


def _end_of_head(data: bytes, limit: int, status: int) -> int:
    """Where the empty line begins; -1 while there is none."""
    end = data.find(_END, 0, limit)
    if end < 0 and len(data) >= limit:
        raise BadHead(status, f"The head is longer than {limit} bytes.")
    return end


def _lines(data: bytes, end: int, names: _Names) -> list[bytes]:
    """The lines of the head, none of them with a control character inside."""
    head = data[:end]
    lines = head.split(b"\r\n")
    if len(head) - len(head.translate(None, _CONTROLS)) != 2 * (len(lines) - 1):
        names.refuse("The head holds a control character, or a line that does not end in CR LF.")
    return lines


def _settle_target(head: RequestHead) -> None:
    """Any form of target but the usual one."""
    target = head.target
    if not target.isascii() or b"\t" in target:
        raise BadHead(400, "The target holds a tab, or a byte that is not ASCII.")
    if head.method == b"CONNECT":
        raise BadHead(501, "CONNECT is not offered: this is no forward proxy.")
    if target == b"*":
        if head.method != b"OPTIONS":
            raise BadHead(400, "The target * is for OPTIONS only.")
        return
    match = _ABSOLUTE.fullmatch(target)
    if match is None:
        raise BadHead(400, "The target is neither a path nor an http URL.")
    head.host = match[1]
    path = match[2].partition(b"#")[0]
    head.target = path if path[:1] == b"/" else b"/" + path


def _framing(aside: dict[int, bytes], v11: bool, names: _Names) -> tuple[int | None, bool]:
    """Content-Length and whether it is chunked: one way to frame a body, or none."""
    length = aside.get(_LENGTH)
    coding = aside.get(_CODING)
    if length is not None and not (length.isdigit() and len(length) <= _LENGTH_DIGITS):
        names.refuse("Content-Length is not one number of digits.")
    if coding is None:
        return int(length or b"0"), False
    if length is not None:
        names.refuse("Content-Length and Transfer-Encoding stand together: where the body ends cannot be told.")
    if not v11:
        names.refuse("Transfer-Encoding does not exist in HTTP/1.0.")
    if coding.lower() != b"chunked":
        raise BadHead(501 if names is _REQUEST else 502, "The only transfer coding understood is chunked, once.")
    return None, True


def _options(connection: bytes) -> frozenset[bytes]:
    return frozenset(option.strip(b" \t") for option in connection.lower().split(b","))


def _without(lines: list[bytes], options: frozenset[bytes], names: _Names) -> list[bytes]:
    """Drop what Connection names (RFC 9110 7.6.1), but never what frames the body, whoever names it."""
    listed = options - _OPTIONS - {b"content-length"}
    return [line for line in lines if line.partition(b":")[0].lower() not in listed] if listed else lines
