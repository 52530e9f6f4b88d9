"""Recognises a head that is all but the same as the one before it on its connection.

Theory of operation
-------------------
On one connection heads repeat: the same names in the same order, most lines the same byte for byte; what changes is the
first line and an id, a date, a length. A line that stands where the same line stood has been checked already. So a new
head is compared with the last one, line by line, and only what differs is looked at: it must be a header of the same
name, without a control character, and of a kind whose value decides nothing about the others. Whatever does not fit,
in number, order, name or kind, goes the whole way through :mod:`seawall.hub.head`, and is the new pattern.

A head that is the same byte for byte, as those of pollers, health checks and answers within one second are, is the last
head itself.

The result is the same as the whole way gives, and a test compares the two over any sequence of heads. A connection whose
heads never repeat is not compared any more after a few tries.

Heads are never changed once they are made: the next one is the last one, or is copied from it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress, count
from operator import itemgetter, ne
from typing import Generic, TypeVar

from .fields import BUDGET, DROP, END, ENVOY, GRPC, KEYED, LENGTH, LENGTH_DIGITS, PLAIN, REQUEST_ID, SEEN, Names
from .head import (
    HEAD_LIMIT,
    METHODS,
    REQUEST_NAMES,
    RESPONSE_NAMES,
    Budgets,
    RequestHead,
    ResponseHead,
    parse_request,
    parse_response,
    status_of,
)

__all__ = ["RequestRecall", "ResponseRecall"]

TRIES = 8  # heads in a row that are unlike the one before, until a connection is no longer compared
NEVER = b"\0"  # begins no header line: what must stay as it is
_MAY_CHANGE = (PLAIN, REQUEST_ID, BUDGET, GRPC, ENVOY, LENGTH, KEYED)

H = TypeVar("H", RequestHead, ResponseHead)


class _Pattern:
    """The last head of a connection as lines: which may differ in the next one, and which pass on."""

    __slots__ = ("_pick", "fits", "kinds", "lines", "marks")

    def __init__(self, raw: bytes, names: Names, passed: list[bytes]) -> None:
        self.lines = raw.split(b"\r\n")
        self.marks = [NEVER]
        self.kinds = [PLAIN]
        kept = []
        for i, line in enumerate(self.lines[1:], 1):
            name = line.partition(b":")[0]
            kind = names.known.get(name, DROP)
            self.kinds.append(kind)
            self.marks.append(name + b":" if kind in _MAY_CHANGE else NEVER)
            if kind == PLAIN or kind >= LENGTH:
                kept.append(i)
        special = [kind for kind in self.kinds if kind not in (PLAIN, DROP)]
        # Not one of a kind: their values are joined. Not all kept: Connection names some. Neither repeats often.
        self.fits = len(set(special)) == len(special) and [self.lines[i] for i in kept] == passed and len(kept) > 1
        self._pick: Callable[[list[bytes]], tuple[bytes, ...]] = itemgetter(*kept, 0) if kept else itemgetter(0, 0)

    def changes(self, lines: list[bytes]) -> list[int] | None:
        """Which lines differ, by number; ``None`` where that is not all that differs."""
        old, marks = self.lines, self.marks
        if len(lines) != len(old):
            return None
        changed = list(compress(count(), map(ne, lines, old)))
        for i in changed:
            line = lines[i]
            if (i and not line.startswith(marks[i])) or line.translate(SEEN) != line:
                return None
        return changed

    def value(self, i: int, lines: list[bytes]) -> bytes:
        """The value of header line ``i``."""
        return lines[i][len(self.marks[i]) :].strip(b" \t")

    def length(self, i: int, lines: list[bytes]) -> int | None:
        """Content-Length in line ``i``; ``None`` where the whole way has to say what is wrong with it."""
        value = self.value(i, lines)
        return int(value) if value.isdigit() and len(value) <= LENGTH_DIGITS else None

    def take(self, lines: list[bytes]) -> list[bytes]:
        """The lines that pass on; what is compared next are these."""
        self.lines = lines
        return list(self._pick(lines)[:-1])


class _Recall(Generic[H]):
    """What both directions share: when to compare, and when to give it up."""

    __slots__ = ("_head", "_known", "_misses", "_pattern", "_studied")
    names: Names

    def __init__(self) -> None:
        self._head: H | None = None
        self._known = b""  # the bytes of the last head, its empty line included
        self._pattern: _Pattern | None = None
        self._studied = False
        self._misses = 0

    def parse(self, data: bytes, limit: int = HEAD_LIMIT) -> H | None:
        """The head at the start of ``data``, exactly as the whole way gives it; ``None`` while it is not whole."""
        old = self._head
        if old is not None:
            if data.startswith(self._known):  # byte for byte the same: so is the head, which nobody changes
                self._misses = 0
                return old
            head = self._compared(old, data, limit)
            if head is not None:
                return head
        head = self._whole(data, limit)
        if head is not None:
            self._remember(head, data)
        return head

    def _compared(self, old: H, data: bytes, limit: int) -> H | None:
        if not self._studied:  # only now: a connection of one request, or of equal ones, needs no pattern
            self._studied = True
            pattern = _Pattern(self._known[:-4], self.names, old.lines)
            self._pattern = pattern if pattern.fits else None
        if self._pattern is None:
            return None
        end = data.find(END, 0, limit)
        if end <= 0:
            return None
        head = self._again(old, self._pattern, data[:end].split(b"\r\n"))
        if head is not None:
            head.end = end + 4
            self._head, self._known, self._misses = head, data[: end + 4], 0
        return head

    def _remember(self, head: H, data: bytes) -> None:
        self._pattern, self._studied, self._head, self._known = None, False, None, b""
        if self._misses < TRIES:
            self._misses += 1
            known = data[: head.end]
            if self._usual(head, known):
                self._head, self._known = head, known

    def _whole(self, data: bytes, limit: int) -> H | None:
        raise NotImplementedError

    def _usual(self, head: H, raw: bytes) -> bool:
        raise NotImplementedError

    def _again(self, old: H, pattern: _Pattern, lines: list[bytes]) -> H | None:
        raise NotImplementedError


class RequestRecall(_Recall[RequestHead]):
    """:func:`~seawall.hub.head.parse_request` for the requests of one connection."""

    __slots__ = ()
    names = REQUEST_NAMES

    def _whole(self, data: bytes, limit: int) -> RequestHead | None:
        return parse_request(data, limit)

    def _usual(self, head: RequestHead, raw: bytes) -> bool:
        """In origin form, so that the host is what Host says; and with nothing before the request line."""
        return raw.startswith(b"%b %b " % (head.method, head.target)) and head.target[:1] == b"/"

    def _again(self, old: RequestHead, pattern: _Pattern, lines: list[bytes]) -> RequestHead | None:
        changed = pattern.changes(lines)
        if changed is None:
            return None
        head = RequestHead()
        head.method, head.target = old.method, old.target
        head.v11, head.host, head.keep_alive, head.chunked = old.v11, old.host, old.keep_alive, old.chunked
        head.length, head.expect, head.upgrade, head.budgets = old.length, old.expect, old.upgrade, old.budgets
        head.forwarded, head.proto, head.via = old.forwarded, old.proto, old.via
        head.request_id, head.idempotency_key = old.request_id, old.idempotency_key
        for i in changed:
            kind = pattern.kinds[i]
            if not i:
                if not _other_request_line(head, lines[0], pattern.lines[0]):
                    return None
            elif kind == REQUEST_ID:
                head.request_id = pattern.value(i, lines)
            elif BUDGET <= kind <= ENVOY:
                head.budgets = _other_budget(head.budgets, kind - BUDGET, pattern.value(i, lines))
            elif kind == LENGTH:
                head.length = pattern.length(i, lines)
                if head.length is None:
                    return None
        head.lines = pattern.take(lines)
        return head


def _other_budget(old: Budgets | None, place: int, value: bytes) -> Budgets:
    budget, grpc, envoy = [value if i == place else before for i, before in enumerate(old or (None, None, None))]
    return budget, grpc, envoy


def _other_request_line(head: RequestHead, line: bytes, old: bytes) -> bool:
    """Take method and target from ``line``, if all else about it is usual and the version is that of ``old``."""
    try:
        method, target, version = line.split(b" ")
    except ValueError:
        return False
    if method not in METHODS or version != old[-8:] or target[:1] != b"/" or not target.isascii() or b"\t" in target:
        return False
    head.method, head.target = method, target
    return True


class ResponseRecall(_Recall[ResponseHead]):
    """:func:`~seawall.hub.head.parse_response` for the answers of one connection."""

    __slots__ = ()
    names = RESPONSE_NAMES

    def _whole(self, data: bytes, limit: int) -> ResponseHead | None:
        return parse_response(data, limit)

    def _usual(self, head: ResponseHead, raw: bytes) -> bool:
        return head.status >= 200

    def _again(self, old: ResponseHead, pattern: _Pattern, lines: list[bytes]) -> ResponseHead | None:
        changed = pattern.changes(lines)
        if changed is None:
            return None
        head = ResponseHead()
        head.status, head.line, head.length, head.chunked = old.status, old.line, old.length, old.chunked
        head.keep_alive, head.upgrade, head.code, head.retry_after = (
            old.keep_alive, old.upgrade, old.code, old.retry_after
        )  # fmt: skip
        for i in changed:
            if not i:
                if lines[0][:9] != pattern.lines[0][:9]:  # another version
                    return None
                head.status, _, head.line = status_of(lines[0])
            elif pattern.kinds[i] == LENGTH:
                head.length = pattern.length(i, lines)
                if head.length is None:
                    return None
        head.lines = pattern.take(lines)
        return head
