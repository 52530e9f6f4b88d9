"""A chunked body ends where a slow and obvious reader says it ends, however it is cut, or it is refused."""

from __future__ import annotations

import re
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seawall.hub.chunks import LINE_LIMIT, TRAILER_LIMIT, BadChunk, ChunkedBody, Dechunker

REFUSED = "refused"
Reading = tuple[bytes, int] | str | None
"""The payload and where the body ends; refused; or ``None``: more is to come."""


def slow(data: bytes) -> Reading:
    """The whole body at once, by the grammar of RFC 9112 7.1."""
    at, payload = 0, b""
    while True:
        line, end, _ = data[at:].partition(b"\n")
        if not end:
            return None
        at += len(line) + 1
        size = re.fullmatch(rb"([0-9A-Fa-f]{1,15})([ \t]*;[^\x00-\x08\x0a-\x1f\x7f]*)?\r", line)
        if size is None:
            return REFUSED
        length = int(size[1], 16)
        if not length:
            break
        payload += data[at : at + length]
        tail = data[at + length : at + length + 2]
        if tail != b"\r\n"[: len(tail)]:
            return REFUSED
        if len(tail) < 2:
            return None
        at += length + 2
    while True:
        line, end, _ = data[at:].partition(b"\n")
        if not end:
            return None
        at += len(line) + 1
        if line == b"\r":
            return payload, at
        if not re.fullmatch(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\x00-\x08\x0a-\x1f\x7f]*\r", line):
            return REFUSED


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def follow(parts: list[bytes]) -> Reading:
    body, used = ChunkedBody(), 0
    for part in parts:
        try:
            taken = body.feed(part)
        except BadChunk:
            return REFUSED
        used += taken
        assert body.done or taken == len(part)
    return (b"", used) if body.done else None


def unwrap(parts: list[bytes]) -> Reading:
    body, used, payload = Dechunker(), 0, b""
    for part in parts:
        try:
            payload += body.feed(part)
        except BadChunk:
            return REFUSED
        used += body.consumed
    return (payload, used) if body.done else None


def check(data: bytes, cuts: list[int]) -> Reading:
    expected = slow(data)
    parts = pieces(data, cuts)
    assert unwrap(parts) == expected
    followed = follow(parts)
    assert followed == ((b"", expected[1]) if isinstance(expected, tuple) else expected)
    return expected


EXTENSIONS = st.sampled_from([b"", b"", b"", b";a", b" \t;a=b", b';a="\xff;"', b";"])
TRAILERS = st.lists(st.sampled_from([b"A: b\r\n", b"a:\r\n", b"x-y:\t\xff\r\n"]), max_size=2).map(b"".join)


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """A well-formed body, its payload full of what looks like its frame."""
    data = b""
    for size in draw(st.lists(st.integers(1, 40), max_size=5)):
        payload = draw(st.lists(st.sampled_from([b"\r\n", b"0", b"\r", b"\n", b"a"]), min_size=size, max_size=size))
        inside = b"".join(payload)
        written = draw(st.sampled_from([b"%x", b"%X", b"000%x"])) % len(inside)
        data += written + draw(EXTENSIONS) + b"\r\n" + inside + b"\r\n"
    return data + draw(st.sampled_from([b"0", b"000"])) + draw(EXTENSIONS) + b"\r\n" + draw(TRAILERS) + b"\r\n"


CUTS = st.lists(st.integers(0, 400), max_size=8)


@given(bodies(), st.sampled_from([b"", b"0\r\n\r\n", b"GET / HTTP/1.1\r\n"]), CUTS)
def test_a_well_formed_body_is_followed_to_its_end_however_it_is_cut(
    body: bytes, after: bytes, cuts: list[int]
) -> None:
    reading = check(body + after, cuts)
    assert isinstance(reading, tuple)
    assert reading[1] == len(body)
    assert check(body[:-1], cuts) is None


JUNK = st.sampled_from([b"\r\n", *(bytes([byte]) for byte in b"\r\n \t0ag-+_x;:\0\xff")])


@given(bodies(), CUTS, st.lists(st.tuples(st.integers(0, 400), JUNK, st.integers(0, 3)), min_size=1, max_size=3))
@example(b"5\r\nhello\r\n0\r\n\r\n", [0], [(8, b"\n", 1)])
def test_a_damaged_body_is_read_or_refused_as_the_grammar_says(
    body: bytes, cuts: list[int], damage: list[tuple[int, bytes, int]]
) -> None:
    for at, junk, gone in damage:
        start = at % (len(body) + 1)
        body = body[:start] + junk + body[start + gone :]
    check(body, cuts)


@pytest.mark.parametrize(
    "data",
    [
        b"5\nhello\r\n", b"+5\r\n", b"-5\r\n", b"0x5\r\n", b"5_0\r\n", b" 5\r\n", b"5 \r\n", b"\r\n", b";a\r\n",
        b"g\r\n", b"1234567890abcdef\r\n", b"0000000000000000\r\n", b"5;a\0\r\n", b"5;a\rb\r\n", b"5;a\n",
        b"5,\r\n", b"\xb2\r\n", b"5\r\nhello!\r\n", b"5\r\nhello\n", b"5\r\nhello\rx",
        b"5\r\nhello0\r\n", b"2\r\nab\r\n\r\n",
        b"0\n", b"0\r\n\n", b"0\r\nA: b\n", b"0\r\nA\r\n", b"0\r\nA : b\r\n", b"0\r\n A: b\r\n", b"0\r\n: b\r\n",
        b"0\r\nA: b\r\n c\r\n", b"0\r\nA: \0\r\n", b"0\r\nA: b\rc\r\n", b"0\r\nContent-Length: 5\r\n",
        b"0\r\nA: b\r\ntransfer-encoding:chunked\r\n", b"0\r\nHOST: h\r\n",
    ],
)  # fmt: skip
def test_what_two_parsers_could_read_differently_is_refused_at_every_cut(data: bytes) -> None:
    for cut in range(len(data) + 1):
        assert follow(pieces(data, [cut])) == REFUSED
        assert unwrap(pieces(data, [cut])) == REFUSED


@pytest.mark.parametrize(
    ("data", "payload"),
    [
        (b"0\r\n\r\n", b""), (b"5\r\nhello\r\n0\r\n\r\n", b"hello"),
        (b"A;x=1\r\n0123456789\r\n0\r\n\r\n", b"0123456789"),
        (b"1\r\n\r\r\n1\r\n\n\r\n000;e\r\nA: b\r\nC:\r\n\r\n", b"\r\n"), (b"4 ;\r\n\r\n\r\n\r\n0\r\n\r\n", b"\r\n\r\n"),
    ],
)  # fmt: skip
def test_a_good_body_is_read_the_same_at_every_cut_and_byte_by_byte(data: bytes, payload: bytes) -> None:
    for cut in range(len(data) + 1):
        assert unwrap(pieces(data + b"next", [cut])) == (payload, len(data))
        assert follow(pieces(data + b"next", [cut])) == (b"", len(data))
    every = list(range(len(data)))
    assert unwrap(pieces(data, every)) == (payload, len(data))
    assert follow(pieces(data[:-1], every)) is None


def test_after_its_end_a_body_takes_nothing_more() -> None:
    body, taker = ChunkedBody(), Dechunker()
    assert body.feed(b"0\r\n\r\n0\r\n\r\n") == 5
    assert (body.feed(b"0\r\n\r\n"), body.feed(b"garbage\n"), body.done) == (0, 0, True)
    assert taker.feed(b"1\r\na\r\n0\r\n\r\nrest") == b"a"
    assert (taker.consumed, taker.feed(b"more\n"), taker.consumed) == (11, b"", 0)


def test_consumed_counts_the_bytes_of_the_last_piece() -> None:
    taker = Dechunker()
    assert (taker.feed(b"3\r\nab"), taker.consumed, taker.done) == (b"ab", 5, False)
    assert (taker.feed(b"c\r\n0\r\n\r\nGET"), taker.consumed, taker.done) == (b"c", 8, True)


@pytest.mark.parametrize("step", [1, 1000, 1 << 20])
def test_a_size_line_and_the_trailers_are_bounded_however_they_come(step: int) -> None:
    def read(data: bytes) -> Reading:
        return follow([data[at : at + step] for at in range(0, len(data), step)])

    longest = b"1;" + b"x" * (LINE_LIMIT - 4) + b"\r\n"
    assert len(longest) == LINE_LIMIT
    assert read(longest + b"a\r\n0\r\n\r\n") == (b"", LINE_LIMIT + 8)
    assert read(b"1;" + b"x" * (LINE_LIMIT - 3) + b"\r\n") == REFUSED
    assert read(b"1;" + b"x" * (LINE_LIMIT - 1)) == REFUSED
    assert read(b"1;" + b"x" * (LINE_LIMIT - 2)) is None
    trailer = b"A:" + b"x" * 1020 + b"\r\n"
    most = TRAILER_LIMIT // len(trailer)
    assert read(b"0\r\n" + trailer * most + b"\r\n") == (b"", 5 + TRAILER_LIMIT)
    assert read(b"0\r\n" + trailer * most + b"A:\r\n") == REFUSED


def test_a_large_chunk_is_followed_without_being_copied() -> None:
    body, size = ChunkedBody(), 0x100000
    assert body.feed(b"%x\r\n" % size) == 8
    first, last = b"x" * 65536, b"x" * (size - 65536) + b"\r\n0\r\n\r\n"
    tracemalloc.start()
    try:
        assert (body.feed(first), body.feed(last)) == (len(first), len(last))
        assert tracemalloc.get_traced_memory()[1] < 16384
    finally:
        tracemalloc.stop()
    assert body.done
