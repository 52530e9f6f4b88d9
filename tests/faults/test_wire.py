"""The fake servers' HTTP reader: however the bytes are cut, the same requests come out; ambiguity is refused."""

from __future__ import annotations

import pytest

from seawall.faults.wire import BODY_KEPT, BadRequest, Request, RequestReader, render

HEAD = b"Host: x\r\n"
PIPELINE = (
    b"\r\nPOST /tx?a=1 HTTP/1.1\r\n" + HEAD + b"Content-Length: 5\r\nX-A: 1\r\nx-a: 2\r\n\r\nhello"
    b"POST /c HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: Chunked\r\n\r\n"
    b"3;q=1\r\nabc\r\n0A\r\n0123456789\r\n0\r\nT: 1\r\n\r\n"
    b"GET http://x:1/abs?q HTTP/1.0\r\n\r\n"
)


def taken(reader: RequestReader) -> list[Request]:
    found = []
    while (request := reader.take()) is not None:
        found.append(request)
    return found


@pytest.mark.parametrize("step", [1, 2, 3, 7, 50, len(PIPELINE)])
def test_pipelined_requests_come_out_whole_however_the_bytes_are_cut(step: int) -> None:
    reader, found = RequestReader(), []
    for i in range(0, len(PIPELINE), step):
        reader.feed(PIPELINE[i:i + step])
        found += taken(reader)
    assert [(r.method, r.path, r.body, r.body_bytes, r.keep_alive) for r in found] == [
        ("POST", "/tx", b"hello", 5, True), ("POST", "/c", b"abc0123456789", 13, True), ("GET", "/abs", b"", 0, False)]
    assert [(r.query, r.minor) for r in found] == [("a=1", 1), ("", 1), ("q", 0)]
    assert found[0].headers == {"host": "x", "content-length": "5", "x-a": "1, 2"}
    assert reader.buffered == 0


@pytest.mark.parametrize(("raw", "status"), [
    (b"\x16\x03\x01\r\n\r\n", 400),
    (b"GET /\r\n\r\n", 400),
    (b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505),
    (b"GET / HTTP/1.1\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nHost: x\r\nA: b\nC: d\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
    (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0x3\r\n", 400),
    (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n", 400),
    (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 2000, 400),
    (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nbad\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nX: " + b"a" * 65536, 431),
])
def test_what_is_no_request_is_refused_with_its_status(raw: bytes, status: int) -> None:
    reader = RequestReader()
    reader.feed(raw)
    with pytest.raises(BadRequest) as refused:
        taken(reader)
    assert refused.value.status == status


def test_a_long_body_is_counted_whole_and_kept_in_part() -> None:
    reader = RequestReader()
    size = BODY_KEPT + 10_000
    reader.feed(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size)
    for _ in range(0, size, 10_000):
        reader.feed(b"x" * 10_000)
        assert reader.buffered <= 10_000 or reader.take() is None
    [request] = taken(reader)
    assert (request.body_bytes, len(request.body)) == (size, BODY_KEPT)


def test_a_sender_that_waits_for_100_continue_is_told_once() -> None:
    reader = RequestReader()
    reader.feed(b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    assert reader.take() is None
    assert [reader.wants_continue(), reader.wants_continue()] == [True, False]
    reader.feed(b"ok")
    assert reader.take() is not None
    assert not reader.wants_continue()


@pytest.mark.parametrize(("status", "head", "body"), [
    (200, b"200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n", b"{}"),
    (204, b"204 No Content\r\n", b""),
    (205, b"205 Reset Content\r\nContent-Length: 0\r\n", b""),
    (599, b"599 Unknown\r\nContent-Type: application/json\r\nContent-Length: 2\r\n", b"{}"),
])
def test_an_answer_has_the_framing_its_status_asks_for(status: int, head: bytes, body: bytes) -> None:
    expected = b"HTTP/1.1 " + head + b"Connection: keep-alive\r\n\r\n"
    assert render(status, b"{}", keep_alive=True) == (expected, body)
    assert render(status, b"{}", keep_alive=True, head_only=True) == (expected, b"")
