"""Header lines, the same for requests and responses: checked, sorted by what they mean, framed, and taken out.

The two directions differ in which names mean something and in the status of what is refused; :class:`Names` holds both.
"""

from __future__ import annotations

import re
from typing import NoReturn

__all__ = ["BadHead", "Names", "framing", "options_of", "read", "without"]

LENGTH_DIGITS = 18  # as many as always fit a signed 64-bit integer
_NAMES_KEPT = 1024  # names remembered in each direction, and the longest, so that no sender can make the memory grow
_NAME_KEPT = 64

END = b"\r\n\r\n"
TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
SEEN = bytes(byte if byte == 9 or 32 <= byte != 127 else 32 for byte in range(256))  # controls become spaces
_OPTIONS = frozenset((b"close", b"keep-alive", b"upgrade", b""))

# What a header name means, and where its value stands in what read() gives. PLAIN is the only false one; those from
# LENGTH on leave their line in place.
PLAIN, DROP, HOST, CONNECTION, CODING, EXPECT, UPGRADE = range(7)
BUDGET, GRPC, ENVOY, FORWARDED, PROTO, VIA, REQUEST_ID = range(7, 14)  # the first three as in seawall.headers.FORMS
LENGTH, KEYED, CODE, RETRY_AFTER = range(14, 18)
_MEANINGS = 18

HOP = {
    b"connection": CONNECTION, b"keep-alive": DROP, b"proxy-connection": DROP, b"te": DROP,
    b"transfer-encoding": CODING, b"upgrade": UPGRADE, b"content-length": LENGTH,
}  # fmt: skip


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


class Names:
    """What header names mean in one direction.

    Attributes:
        status: What to answer when a head of this direction is malformed.
        ours: Lower-case names with a meaning. Connection cannot name them away: a hub that has read Idempotency-Key
            or X-Seawall-Code and then lost the line would say one thing and do another.
        known: Names already checked, as they were written. When full it starts again: a sender of ever new names
            costs the others one check each, never their places.
    """

    __slots__ = ("known", "ours", "status")

    def __init__(self, status: int, ours: dict[bytes, int]) -> None:
        self.status = status
        self.ours = ours
        self.known: dict[bytes, int] = {}

    def learn(self, name: bytes) -> int:
        """Check a name that is not known yet, and say what it means."""
        if not TOKEN.fullmatch(name):
            self.refuse("A header name is empty or holds a character that is not allowed in it.")
        meaning = self.ours.get(name.lower(), PLAIN)
        if len(name) <= _NAME_KEPT:
            if len(self.known) >= _NAMES_KEPT:
                self.known.clear()
            self.known[name] = meaning
        return meaning

    def refuse(self, why: str) -> NoReturn:
        """Raise the error of this direction."""
        raise BadHead(self.status, why)


def read(head: bytes, names: Names) -> tuple[bytes, list[bytes], list[bytes | None]]:
    """Take a head apart: its first line, the lines that pass on, and the values of those that mean something.

    The values stand in the order of the meanings, ``None`` where there is no such header. Several of one name are
    joined by a comma, but there is only one Host and one Content-Length.

    Splitting at CRLF leaves a bare CR or LF inside a line, so one pass over the lines finds those and every other
    control character. ``translate`` without deletions is the fastest pass there is: it gives its argument back.
    """
    lines = head.split(b"\r\n")
    text = b"".join(lines)
    if text.translate(SEEN) != text:
        names.refuse("The head holds a control character, or a line that does not end in CR LF.")
    first = lines.pop(0)
    passed: list[bytes] = []
    values: list[bytes | None] = [None] * _MEANINGS
    keep, known = passed.append, names.known
    for line in lines:
        name, colon, value = line.partition(b":")
        try:
            meaning = known[name]
        except KeyError:
            meaning = names.learn(name)
        if not colon:
            names.refuse("A header line has no colon.")
        if not meaning:
            keep(line)
            continue
        before = values[meaning]
        if before is None:
            values[meaning] = value.strip(b" \t")
        elif meaning != DROP:
            values[meaning] = _join(before, meaning, value.strip(b" \t"), names)
        if meaning >= LENGTH:
            keep(line)
    return first, passed, values


def _join(before: bytes, meaning: int, value: bytes, names: Names) -> bytes:
    if meaning == HOST:
        names.refuse("There are two Host headers.")
    if meaning == LENGTH:
        names.refuse("There are two Content-Length headers.")
    return before + b", " + value


def framing(length: bytes | None, coding: bytes | None, v11: bool, names: Names) -> tuple[int | None, bool]:
    """Content-Length, and whether the body is chunked: one way to frame it, or none."""
    if length is not None and not (length.isdigit() and len(length) <= LENGTH_DIGITS):
        names.refuse("Content-Length is not one number of digits.")
    if coding is None:
        return None if length is None else int(length), False
    if length is not None:
        names.refuse("Content-Length and Transfer-Encoding stand together: where the body ends cannot be told.")
    if not v11:
        names.refuse("Transfer-Encoding does not exist in HTTP/1.0.")
    if coding.lower() != b"chunked":
        status = 501 if names.status == 400 else names.status
        raise BadHead(status, "The only transfer coding understood is chunked, once.")
    return None, True


def options_of(connection: bytes) -> frozenset[bytes]:
    """The options in a Connection header, in lower case."""
    return frozenset(option.strip(b" \t") for option in connection.lower().split(b","))


def without(lines: list[bytes], options: frozenset[bytes], names: Names) -> list[bytes]:
    """Drop what Connection names (RFC 9110 7.6.1), but never what the relay itself goes by."""
    listed = options - _OPTIONS - names.ours.keys()
    return [line for line in lines if line.partition(b":")[0].lower() not in listed] if listed else lines
