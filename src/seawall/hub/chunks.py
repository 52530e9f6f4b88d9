"""Chunked bodies (RFC 9112 7.1): followed to their end while they are passed on, or unwrapped.

The two share one machine. It checks every size line and every line end, since what two parsers read differently here is
a request smuggled: no bare LF, no sign, no sixteenth digit, no trailer line that is none.
"""

from __future__ import annotations

import re

__all__ = ["BadChunk", "ChunkedBody", "Dechunker"]

LINE_LIMIT = 8192  # bytes in a size line, extensions included; those that sign each chunk need about a hundred
TRAILER_LIMIT = 16384  # bytes in all trailers
_SIZE = re.compile(rb"([0-9a-fA-F]{1,15})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?\r\n")
_TRAILER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[\t\x20-\x7e\x80-\xff]*\r\n")
_NOT_IN_TRAILERS = frozenset((b"content-length", b"transfer-encoding", b"host"))  # RFC 9110 6.5.1


class BadChunk(Exception):
    """What came is no chunked body; where the message ends cannot be told any more."""


class ChunkedBody:
    """Follows a chunked body without copying it."""

    __slots__ = ("_left", "_line", "_payload", "_trailers", "done")

    def __init__(self) -> None:
        self.done = False
        self._left = 0  # bytes of the present chunk still to come, its CRLF included
        self._line = b""  # the beginning of a size or trailer line whose end has not come yet
        self._trailers = -1  # bytes of trailers so far; -1 before the last chunk
        self._payload: list[bytes] | None = None

    def feed(self, data: bytes) -> int:
        """Follow ``data``.

        Returns:
            How many of its bytes belong to this body: all, unless it is :attr:`done`; then none of what follows.

        Raises:
            BadChunk: It is no chunked body.
        """
        if self.done:
            return 0
        at, size = 0, len(data)
        while at < size:
            if self._left:
                at = self._follow_chunk(data, at, min(self._left, size - at))
                continue
            end = data.find(b"\n", at) + 1
            if not end:
                self._line += data[at:]
                self._check_length(len(self._line))
                return size
            line = self._line + data[at:end]
            self._line = b""
            self._check_length(len(line))
            at = end
            if self._trailers < 0:
                self._on_size(line)
            elif line == b"\r\n":
                self.done = True
                return at
            else:
                self._on_trailer(line)
        return size

    def _follow_chunk(self, data: bytes, at: int, step: int) -> int:
        payload = max(0, min(step, self._left - 2))  # the last two bytes are the CRLF behind the chunk
        if self._payload is not None and payload:
            self._payload.append(data[at : at + payload])
        tail = data[at + payload : at + step]
        if tail:
            gone = 2 - min(self._left, 2)
            if tail != b"\r\n"[gone : gone + len(tail)]:
                raise BadChunk("a chunk does not end where its size says")
        self._left -= step
        return at + step

    def _on_size(self, line: bytes) -> None:
        match = _SIZE.fullmatch(line)
        if match is None:
            raise BadChunk("a chunk does not begin with its size")
        length = int(match[1], 16)
        if length:
            self._left = length + 2
        else:
            self._trailers = 0

    def _on_trailer(self, line: bytes) -> None:
        self._trailers += len(line)
        if self._trailers > TRAILER_LIMIT:
            raise BadChunk(f"the trailers are longer than {TRAILER_LIMIT} bytes")
        match = _TRAILER.fullmatch(line)
        if match is None:
            raise BadChunk("a trailer line is no header")
        if match[1].lower() in _NOT_IN_TRAILERS:
            raise BadChunk("a trailer says how to read the message it stands behind")

    def _check_length(self, length: int) -> None:
        if length > LINE_LIMIT:
            raise BadChunk(f"a line between chunks is longer than {LINE_LIMIT} bytes")


class Dechunker:
    """Takes the payload out of a chunked body; trailers are dropped."""

    __slots__ = ("_body", "consumed")

    def __init__(self) -> None:
        self._body = ChunkedBody()
        self.consumed = 0

    @property
    def done(self) -> bool:
        """The body has ended."""
        return self._body.done

    def feed(self, data: bytes) -> bytes:
        """The payload in ``data``; :attr:`consumed` says how many of its bytes belonged to the body."""
        pieces: list[bytes] = []
        self._body._payload = pieces
        self.consumed = self._body.feed(data)
        return b"".join(pieces)
