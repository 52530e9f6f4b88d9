"""Answers of HTTP/1.1 out of bytes, for one call: no sockets here, and no time.

A caller that measures is kind where a relay must be strict: what can be understood is understood, for its reader wants to
know how the call ended. Nothing is passed on, so no second parser can be led astray.
"""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["BODY_KEPT", "HEAD_LIMIT", "Answer", "BadAnswer"]

HEAD_LIMIT = 65536  # bytes in a head, or in all trailers
MOST_LINES = 1000  # lines in a head
LINE_LIMIT = 4096  # bytes in the line before a chunk
BODY_KEPT = 65536  # bytes of a body that are kept; the rest is counted and dropped

_STATUS_LINE = re.compile(rb"HTTP/1\.[0-9] +([1-5][0-9][0-9])(?: .*)?")
_HEAD_END = re.compile(rb"\n\r?\n")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?")


class BadAnswer(Exception):
    """What came is no HTTP answer, or is broken off; the text says what it is."""


class Answer:
    """Takes what arrives, piece by piece, until the answer is whole.

    Which bytes are looked at next is kept in ``_step``, one method a part of the message; each says whether it got on, or
    needs more bytes.

    Args:
        method: Of the request: an answer to HEAD has no body.

    Attributes:
        status: HTTP status; ``None`` until the head of the final answer is in.
        headers: Names in lower case; values of a repeated one joined by a comma.
        body: The first ``BODY_KEPT`` bytes of it.
        body_bytes: How long it is so far.
        begun: Whether a byte has come.
        done: Whether all of it is in.
    """

    def __init__(self, method: str = "GET") -> None:
        self.method = method
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.body = bytearray()
        self.body_bytes = 0
        self.begun = self.done = False
        self._bytes = bytearray()
        self._looked = 0  # bytes of the head in which its end is not
        self._left = 0  # bytes of the body, or of the chunk, that are to come
        self._step: Callable[[], bool] = self._head

    def feed(self, data: bytes) -> None:
        """Take what arrived.

        Raises:
            BadAnswer: It is no HTTP.
        """
        self.begun = True
        self._bytes += data
        while not self.done and self._step():
            pass

    def end(self) -> None:
        """The connection has ended in order.

        Raises:
            BadAnswer: The answer is not whole.
        """
        if self._step == self._to_the_end:
            self.done = True
        if not self.done:
            raise BadAnswer(f"the connection was closed {self._where()}")

    @property
    def ends_with_the_connection(self) -> bool:
        """Whether only the end of the connection tells that the body is whole."""
        return self._step == self._to_the_end

    def _where(self) -> str:
        if self._step == self._head:
            return "in the middle of the head" if self._bytes else "without an answer"
        if self._step == self._counted:
            return f"after {self.body_bytes} of {self.body_bytes + self._left} bytes of the body"
        return f"in the middle of a chunked body, after {self.body_bytes} bytes"

    # -- the parts
    def _head(self) -> bool:
        raw = self._bytes
        if not raw.startswith(b"HTTP/1."[: len(raw)]):
            raise BadAnswer(f"no HTTP/1.1 answer, but {bytes(raw[:24])!r}")
        match = _HEAD_END.search(raw, max(0, self._looked - 2))
        if match is None or match.end() > HEAD_LIMIT:
            self._looked = len(raw)
            if len(raw) > HEAD_LIMIT:
                raise BadAnswer(f"the head is longer than {HEAD_LIMIT} bytes")
            return False
        head = bytes(raw[: match.start()])
        del raw[: match.end()]
        self._looked = 0
        self._read_head(head)
        return True

    def _read_head(self, head: bytes) -> None:
        first, *lines = [line.rstrip(b"\r") for line in head.split(b"\n", MOST_LINES)]
        match = _STATUS_LINE.fullmatch(first)
        if match is None:
            raise BadAnswer(f"no HTTP/1.1 answer, but {first[:60]!r}")
        status = int(match[1])
        if status == 101:
            raise BadAnswer("it switched to another protocol, unasked")
        if status < 200:
            return  # an interim answer: the next head follows
        if len(lines) == MOST_LINES:
            raise BadAnswer(f"the head has more than {MOST_LINES} lines")
        self.status, self.headers = status, _fields(lines)
        self._frame()

    def _frame(self) -> None:
        if self.method == "HEAD" or self.status in (204, 304):
            self.done = True
            return
        coding = self.headers.get("transfer-encoding", "")
        length = self.headers.get("content-length")
        if coding:
            self._step = self._size if coding.lower().rpartition(",")[2].strip() == "chunked" else self._to_the_end
        elif length is None:
            self._step = self._to_the_end
        else:
            self._left = _length(length)
            self._step = self._counted
            self.done = self._left == 0

    def _counted(self) -> bool:
        self._take(self._left)
        self.done = self._left == 0
        return False

    def _to_the_end(self) -> bool:
        self._left = len(self._bytes)
        self._take(self._left)
        return False

    def _size(self) -> bool:
        line = self._line(LINE_LIMIT)
        if line is None:
            return False
        match = _SIZE.fullmatch(line)
        if match is None:
            raise BadAnswer(f"no size of a chunk, but {line[:24]!r}")
        self._left = int(match[1], 16)
        self._step = self._chunk if self._left else self._trailer
        return True

    def _chunk(self) -> bool:
        self._take(self._left)
        if self._left == 0:
            self._step = self._chunk_end
        return self._left == 0

    def _chunk_end(self) -> bool:
        line = self._line(LINE_LIMIT)
        if line:
            raise BadAnswer(f"a chunk goes on past its size, with {line[:24]!r}")
        self._step = self._size if line is not None else self._chunk_end
        return line is not None

    def _trailer(self) -> bool:
        line = self._line(HEAD_LIMIT)
        self.done = line == b""
        return bool(line)

    def _take(self, most: int) -> None:
        piece = self._bytes[:most]
        del self._bytes[:most]
        self._left -= len(piece)
        self.body_bytes += len(piece)
        self.body += piece[: max(0, BODY_KEPT - len(self.body))]

    def _line(self, limit: int) -> bytes | None:
        end = self._bytes.find(b"\n")
        if end < 0:
            if len(self._bytes) > limit:
                raise BadAnswer(f"a line of a chunked body is longer than {limit} bytes")
            return None
        line = bytes(self._bytes[:end]).rstrip(b"\r")
        del self._bytes[: end + 1]
        return line


def _fields(lines: list[bytes]) -> dict[str, str]:
    fields: dict[str, str] = {}
    name = ""
    for line in lines:
        said = line.decode("latin-1")
        if line[:1] in (b" ", b"\t") and name:  # folded, as was once allowed
            fields[name] += f" {said.strip()}"
            continue
        name, colon, value = said.partition(":")
        if not colon:
            raise BadAnswer(f"no header, but {line[:60]!r}")
        name, value = name.strip().lower(), value.strip()
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return fields


def _length(text: str) -> int:
    values = {value.strip() for value in text.split(",")}
    value = values.pop()
    if values or not re.fullmatch(r"[0-9]{1,18}", value):
        raise BadAnswer(f"no Content-Length, but {text[:60]!r}")
    return int(value)
