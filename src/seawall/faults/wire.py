"""The HTTP/1.1 of the servers that misbehave: requests out of bytes, answers into bytes; no sockets here.

It has its own reader on purpose. The hub is tested against these servers, and two ends that shared one parser would
share its mistakes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

__all__ = ["BODY_KEPT", "Answer", "BadRequest", "Request", "RequestReader", "interim", "render"]

HEAD_LIMIT = 65536  # bytes; the hub's own limit, so that whatever it lets through is understood here
LINE_LIMIT = 1024  # bytes of one chunk-size line, extensions included
TRAILER_LIMIT = 16384  # bytes of all trailers
BODY_KEPT = 1 << 20  # bytes of a body that are kept; the rest is counted and dropped

_REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e]+) HTTP/(\d)\.(\d)")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\x00-\x08\x0a-\x1f\x7f]*)?")
_REASONS = {status.value: status.phrase for status in HTTPStatus}
_ABSOLUTE = re.compile(r"(?i:https?)://[^/?#]*")


class BadRequest(Exception):
    """Bytes that are no request this server understands: answered with ``status``, then the connection closes."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class Request(NamedTuple):
    """One request, its body read to the end."""

    method: str
    target: str
    headers: dict[str, str]
    """Names in lower case; what came several times is joined with a comma."""
    body: bytes
    """At most the first ``BODY_KEPT`` bytes."""
    body_bytes: int
    """How long the body was, whatever was kept of it."""
    keep_alive: bool
    minor: int = 1
    """0 for HTTP/1.0."""

    @property
    def path(self) -> str:
        """The target without scheme, host and query: what routes it."""
        return _ABSOLUTE.sub("", self.target, count=1).partition("?")[0] or "/"

    @property
    def query(self) -> str:
        """What stands behind the first question mark, as it came."""
        return self.target.partition("?")[2]


class Answer(NamedTuple):
    """A status, the JSON object to send with it, and further headers."""

    status: int
    content: Mapping[str, Any]
    headers: tuple[tuple[str, str], ...] = ()


class RequestReader:
    """Takes bytes as they come and gives requests, one after another.

    ``feed`` what arrived, then call ``take`` until it gives ``None``. Which bytes are looked at next is kept in
    ``_step``, one method a part of the message; each says whether it got on, or needs more bytes.
    """

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._ready: Request | None = None
        self._begin()

    def _begin(self) -> None:
        self._step = self._head
        self._method = self._target = ""
        self._headers: dict[str, str] = {}
        self._keep_alive = True
        self._minor = 1
        self._body = bytearray()
        self._body_bytes = 0
        self._left = 0
        self._trailers = 0
        self._says_continue = False

    @property
    def buffered(self) -> int:
        """Bytes that wait to be looked at."""
        return len(self._bytes)

    def feed(self, data: bytes) -> None:
        """Add what arrived."""
        self._bytes += data

    def take(self) -> Request | None:
        """The next whole request; ``None`` when more bytes are needed.

        Raises:
            BadRequest: What arrived is no request. The reader is of no use any more.
        """
        while self._step():
            if self._ready is not None:
                request, self._ready = self._ready, None
                return request
        return None

    def wants_continue(self) -> bool:
        """Whether the sender waits for ``100 Continue`` before it sends the body; true once a request."""
        wants = self._says_continue and not self._body_bytes and not self._bytes
        if wants:
            self._says_continue = False
        return wants

    def _head(self) -> bool:
        while self._bytes.startswith(b"\r\n"):  # RFC 9112 2.2: empty lines before a request are forgiven
            del self._bytes[:2]
        end = self._bytes.find(b"\r\n\r\n", 0, HEAD_LIMIT)
        if end < 0:
            if len(self._bytes) >= HEAD_LIMIT:
                raise BadRequest(431, f"the head is longer than {HEAD_LIMIT} bytes")
            return False
        line, *fields = bytes(self._bytes[:end]).split(b"\r\n")
        del self._bytes[: end + 4]
        self._minor = self._request_line(line)
        self._fields(fields)
        self._framing(self._minor)
        return True

    def _request_line(self, line: bytes) -> int:
        match = _REQUEST_LINE.fullmatch(line)
        if match is None:
            raise BadRequest(400, "the first line is not METHOD TARGET HTTP/1.1")
        method, target, major, minor = match.groups()
        if major != b"1":
            raise BadRequest(505, "only HTTP/1.0 and HTTP/1.1 are spoken here")
        self._method, self._target = method.decode(), target.decode()
        return int(minor)

    def _fields(self, fields: list[bytes]) -> None:
        for field in fields:
            match = _FIELD.fullmatch(field)
            if match is None:
                raise BadRequest(400, f"a header line is not NAME: VALUE: {field[:40].decode('latin-1')!r}")
            name, value = match[1].decode().lower(), match[2].rstrip(b" \t").decode("latin-1")
            if name in self._headers:
                if name in ("host", "content-length", "transfer-encoding"):
                    raise BadRequest(400, f"{name} is given twice")
                value = f"{self._headers[name]}, {value}"
            self._headers[name] = value

    def _framing(self, minor: int) -> None:
        headers = self._headers
        if minor and "host" not in headers:
            raise BadRequest(400, "HTTP/1.1 needs a Host header")
        options = {option.strip().lower() for option in headers.get("connection", "").split(",")}
        self._keep_alive = "close" not in options and (minor >= 1 or "keep-alive" in options)
        self._says_continue = bool(minor) and headers.get("expect", "").lower() == "100-continue"
        coding, length = headers.get("transfer-encoding"), headers.get("content-length")
        if coding is not None:
            if length is not None or not minor:
                raise BadRequest(400, "Transfer-Encoding with Content-Length, or in HTTP/1.0, has no safe reading")
            if coding.lower() != "chunked":
                raise BadRequest(501, "the only transfer coding known here is chunked")
            self._step = self._size
        elif length is not None:
            if not (length.isascii() and length.isdigit() and len(length) <= 18):
                raise BadRequest(400, "Content-Length is not a number")
            self._left = int(length)
            self._step = self._counted
        else:
            self._finish()

    def _finish(self) -> None:
        self._ready = Request(
            self._method,
            self._target,
            self._headers,
            bytes(self._body),
            self._body_bytes,
            self._keep_alive,
            self._minor,
        )
        self._begin()

    def _counted(self) -> bool:
        self._swallow()
        if self._left:
            return False
        self._finish()
        return True

    def _swallow(self) -> None:
        """Take what is there of the ``_left`` bytes of body that come now."""
        here = min(self._left, len(self._bytes))
        self._body += self._bytes[: min(here, BODY_KEPT - len(self._body))]
        del self._bytes[:here]
        self._body_bytes += here
        self._left -= here

    def _line(self, limit: int) -> bytes | None:
        end = self._bytes.find(b"\r\n", 0, limit + 2)
        if end < 0:
            if len(self._bytes) > limit:
                raise BadRequest(400, f"a line of the chunked body is longer than {limit} bytes")
            return None
        line = bytes(self._bytes[:end])
        del self._bytes[: end + 2]
        return line

    def _size(self) -> bool:
        line = self._line(LINE_LIMIT)
        if line is None:
            return False
        match = _SIZE.fullmatch(line)
        if match is None:
            raise BadRequest(400, f"not the size of a chunk: {line[:40].decode('latin-1')!r}")
        self._left = int(match[1], 16)
        self._step = self._chunk if self._left else self._trailer
        return True

    def _chunk(self) -> bool:
        self._swallow()
        if self._left or len(self._bytes) < 2:
            return False
        if self._bytes[:2] != b"\r\n":
            raise BadRequest(400, "a chunk is longer than its size says")
        del self._bytes[:2]
        self._step = self._size
        return True

    def _trailer(self) -> bool:
        line = self._line(TRAILER_LIMIT - self._trailers)
        if line is None:
            return False
        self._trailers += len(line) + 2
        if not line:
            self._finish()
        elif _FIELD.fullmatch(line) is None:
            raise BadRequest(400, "a trailer line is not NAME: VALUE")
        return True


def interim(status: int) -> bytes:
    """An answer that another follows: 100 to 199."""
    return f"HTTP/1.1 {status} {_REASONS.get(status, 'Unknown')}\r\n\r\n".encode()


def render(
    status: int,
    body: bytes,
    *,
    keep_alive: bool,
    head_only: bool = False,
    headers: tuple[tuple[str, str], ...] = (),
    content_type: str = "application/json",
) -> tuple[bytes, bytes]:
    """Head and body of an answer, as they go on the wire.

    Args:
        status: The HTTP status.
        body: The JSON text, or what ``content_type`` says.
        keep_alive: Whether the connection stays open.
        head_only: For ``HEAD``: the head of the answer, without its body.
        headers: Further headers.
        content_type: Of the body.
    """
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Unknown')}"]
    if status < 200 or status in (204, 205, 304):  # these have no body; 205 has to say so
        body = b""
        lines += ["Content-Length: 0"] if status == 205 else []
    else:
        lines += [f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers]
    lines.append(f"Connection: {'keep-alive' if keep_alive else 'close'}")
    head = "\r\n".join([*lines, "", ""]).encode("latin-1")
    return head, b"" if head_only else body
