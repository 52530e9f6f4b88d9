"""A head recognised by the one before it on its connection is the same as one read the whole way."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.hub import recall
from seawall.hub.head import BadHead, parse_request, parse_response
from seawall.hub.recall import TRIES, RequestRecall, ResponseRecall

LINES = [
    b"Host: a", b"Host: b", b"Host : a", b"Connection: keep-alive", b"Connection: close", b"Connection: X-A, close",
    b"X-A: 1", b"X-A: 2", b"X-B: 1", b"X-Request-Id: 1", b"X-Request-Id: 22", b"X-Budget-Ms: 100", b"X-Budget-Ms: 7",
    b"grpc-timeout: 5S", b"grpc-timeout: 6S", b"X-Envoy-Expected-Rq-Timeout-Ms: 9",
    b"Content-Length: 5", b"Content-Length: 0", b"Content-Length: +5", b"Content-Length:", b"Transfer-Encoding: chunked",
    b"Expect: 100-continue", b"Expect: more", b"Upgrade: x", b"Connection: upgrade", b"Idempotency-Key: 1", b"TE: x",
    b"Idempotency-Key: 2", b"X-Forwarded-For: 1.1.1.1", b"Via: 1.1 a", b"X-A: a\rb", b"X-A: a\0", b"nonsense", b"",
    b" X-A: folded", b"x-a: lower", b"X-Seawall-Code: E904", b"Retry-After: 3", b"Retry-After: 4", b"X-A:\xff",
]  # fmt: skip
FIRST = [
    b"GET / HTTP/1.1", b"GET /b HTTP/1.1", b"POST / HTTP/1.1", b"HEAD / HTTP/1.0", b"GET / HTTP/1.0",
    b"GET http://h/c HTTP/1.1",
    b"BREW / HTTP/1.1", b"GET  / HTTP/1.1", b"GET /\xff HTTP/1.1", b"OPTIONS * HTTP/1.1", b"GET / HTTP/1.2",
    b"CONNECT h:1 HTTP/1.1",
]  # fmt: skip
STATUS = [
    b"HTTP/1.1 200 OK", b"HTTP/1.1 404 No", b"HTTP/1.0 200 OK", b"HTTP/1.1 100 Continue", b"HTTP/1.1 200", b"HTTP/1.1 2 x",
]  # fmt: skip


def view(parse: Any, data: bytes) -> object:
    try:
        head = parse(data)
    except BadHead as bad:
        return ("bad", bad.status, bad.why)
    return None if head is None else {name: getattr(head, name) for name in head.__slots__}


def one_of_each(first: list[bytes]) -> st.SearchStrategy[list[bytes]]:
    """Sequences of heads, each a small change of the one before: what a connection sees, and what an attacker tries."""

    @st.composite
    def heads(draw: st.DrawFn) -> list[bytes]:
        lines = draw(st.lists(st.sampled_from(LINES), min_size=1, max_size=7))
        head = [draw(st.sampled_from(first)), *lines]
        out = []
        for _ in range(draw(st.integers(2, 8))):
            out.append(b"\r\n".join(head) + b"\r\n\r\n" + draw(st.sampled_from([b"", b"body", b"GET / HTTP/1.1\r\n\r\n"])))
            for _ in range(draw(st.integers(0, 2))):
                place = draw(st.integers(0, len(head) - 1))
                pool = first if place == 0 else LINES
                head[place] = draw(st.sampled_from(pool))
            if draw(st.booleans()) and len(head) > 2:
                head.pop(draw(st.integers(1, len(head) - 1)))
        return out

    return heads()


@given(one_of_each(FIRST))
def test_requests_are_read_as_the_whole_way_reads_them(heads: list[bytes]) -> None:
    connection = RequestRecall()
    for data in heads:
        assert view(connection.parse, data) == view(parse_request, data)


@given(one_of_each(STATUS))
def test_answers_are_read_as_the_whole_way_reads_them(heads: list[bytes]) -> None:
    connection = ResponseRecall()
    for data in heads:
        assert view(connection.parse, data) == view(parse_response, data)


def test_mutated_heads_in_long_sequences_are_read_the_same() -> None:
    dice = random.Random(20261129)
    for _ in range(400):
        connection, lines = RequestRecall(), [b"GET /%d HTTP/1.1", b"Host: h", b"Accept: */*", b"X-Request-Id: %d", b"A: b"]
        for n in range(12):
            data = bytearray(b"\r\n".join(line % n if b"%d" in line else line for line in lines) + b"\r\n\r\n")
            if dice.random() < 0.3:
                data[dice.randrange(len(data))] = dice.randrange(256)
            assert view(connection.parse, bytes(data)) == view(parse_request, bytes(data))


@pytest.mark.parametrize("names", [
    (b"X-Request-Id", b"X-Request-Id"), (b"X-Request-Id", b"x-request-id"), (b"X-Budget-Ms", b"X-Budget-Ms"),
    (b"grpc-timeout", b"GRPC-Timeout"),
])
@pytest.mark.parametrize("place", [0, 1])
def test_of_two_lines_of_one_kind_neither_stands_for_both(place: int, names: tuple[bytes, bytes]) -> None:
    """Their values are joined: where one line changes, what the other says still counts."""
    connection = RequestRecall()
    for n in range(3):
        values = [b"100", b"100"]
        values[place] = b"%d" % n
        twice = [b"%b: %b" % pair for pair in zip(names, values, strict=True)]
        data = b"\r\n".join([b"GET / HTTP/1.1", b"Host: h", b"A: b", b"B: c", *twice]) + b"\r\n\r\n"
        assert view(connection.parse, data) == view(parse_request, data)


def test_what_repeats_is_compared_and_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []

    def counting(data: bytes, limit: int) -> Any:
        parsed.append(data)
        return parse_request(data, limit)

    monkeypatch.setattr(recall, "parse_request", counting)
    connection = RequestRecall()
    for n in range(20):
        head = connection.parse(b"GET /%d HTTP/1.1\r\nHost: h\r\nX-Request-Id: %d\r\nA: b\r\nB: c\r\n\r\n" % (n, n))
        assert head is not None
        assert (head.target, head.request_id) == (b"/%d" % n, b"%d" % n)
    assert len(parsed) == 1


def test_a_connection_whose_heads_never_repeat_is_compared_no_more() -> None:
    connection = RequestRecall()
    for n in range(TRIES + 2):
        connection.parse(b"GET / HTTP/1.1\r\nHost: h\r\n" + b"A: b\r\n" * (n % 2 + 1) + b"C: d\r\n\r\n")
    assert connection._head is None


def test_a_head_is_never_changed_by_the_next_one() -> None:
    connection = RequestRecall()
    first = connection.parse(b"GET /1 HTTP/1.1\r\nHost: h\r\nA: 1\r\nB: 1\r\n\r\n")
    second = connection.parse(b"GET /2 HTTP/1.1\r\nHost: h\r\nA: 2\r\nB: 1\r\n\r\n")
    third = connection.parse(b"GET /3 HTTP/1.1\r\nHost: h\r\nA: 3\r\nB: 1\r\n\r\n")
    assert first is not None
    assert second is not None
    assert third is not None
    assert [(head.target, head.lines) for head in (first, second, third)] == [
        (b"/1", [b"A: 1", b"B: 1"]), (b"/2", [b"A: 2", b"B: 1"]), (b"/3", [b"A: 3", b"B: 1"]),
    ]  # fmt: skip
