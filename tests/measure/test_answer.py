"""An answer is whole at its last byte, and says the same, however it is cut up; what is none is said to be none."""

from __future__ import annotations

import pytest

from seawall.measure.answer import BODY_KEPT, HEAD_LIMIT, Answer, BadAnswer

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: t\r\n\r\n"

WHOLE = [
    pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde", 200, b"abcde", id="counted"),
    pytest.param(b"HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n", 404, b"", id="empty"),
    pytest.param(CHUNKED, 200, b"abcde", id="chunked"),
    pytest.param(CHUNKED.replace(b"\r\n", b"\n"), 200, b"abcde", id="bare line feeds"),
    pytest.param(CHUNKED.replace(b"chunked", b"gzip, Chunked"), 200, b"abcde", id="chunked last"),
    pytest.param(CHUNKED.replace(b"\r\nTransfer", b"\r\nContent-Length: 2\r\nTransfer"), 200, b"abcde", id="both"),
    pytest.param(b"HTTP/1.1 204\r\n\r\n", 204, b"", id="no content"),
    pytest.param(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304, b"", id="not modified"),
    pytest.param(b"HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 103 Hints\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n.",
                 200, b".", id="interim"),
    pytest.param(b"HTTP/1.1 503 Busy\r\nContent-Length: 2\r\ncontent-length: 2\r\n\r\nno", 503, b"no", id="said twice"),
]


@pytest.mark.parametrize(("raw", "status", "body"), WHOLE)
@pytest.mark.parametrize("piece", [1, 2, 7, 1000])
def test_it_is_whole_with_its_last_byte(raw: bytes, status: int, body: bytes, piece: int) -> None:
    answer = Answer()
    for start in range(0, len(raw) - 1, piece):
        assert not answer.done
        answer.feed(raw[start:min(start + piece, len(raw) - 1)])
    assert not answer.done
    answer.feed(raw[-1:])
    assert answer.done
    assert (answer.status, bytes(answer.body), answer.body_bytes) == (status, body, len(body))


def test_an_answer_to_head_has_no_body() -> None:
    answer = Answer("HEAD")
    answer.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")
    assert answer.done


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n"])
def test_a_body_without_a_length_ends_with_the_connection(head: bytes) -> None:
    answer = Answer()
    answer.feed(head + b"\r\nabc")
    answer.feed(b"de")
    assert not answer.done
    answer.end()
    assert answer.done
    assert (bytes(answer.body), answer.body_bytes) == (b"abcde", 5)


def test_of_a_long_body_the_beginning_is_kept_and_the_rest_counted() -> None:
    answer = Answer()
    answer.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n")
    for _ in range(20):
        answer.feed(b"x" * 10_000)
    assert answer.done
    assert (len(answer.body), answer.body_bytes) == (BODY_KEPT, 200_000)


def test_headers_are_read_as_they_were_meant() -> None:
    answer = Answer()
    answer.feed(b"HTTP/1.1 429 Slow Down\r\nRetry-After:  7 \r\nX: a\r\nx: b\r\nLong: one\r\n two\r\n\r\n")
    assert answer.headers == {"retry-after": "7", "x": "a, b", "long": "one two"}


@pytest.mark.parametrize(("raw", "why"), [
    (b"SSH-2.0-OpenSSH_9\r\n", "no HTTP/1.1 answer, but b'SSH-2.0"),
    (b"\x15\x03\x01", "no HTTP/1.1 answer"),
    (b"HTTP/2 200\r\n\r\n", "no HTTP/1.1 answer"),
    (b"HTTP/1.1 2000 OK\r\n\r\n", "no HTTP/1.1 answer"),
    (b"HTTP/1.1 101 Switching\r\n\r\n", "another protocol"),
    (b"HTTP/1.1 200 OK\r\nno header\r\n\r\n", "no header"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n", "no Content-Length"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "no Content-Length"),
    (b"HTTP/1.1 200 OK\r\nA: " + b"x" * HEAD_LIMIT, "longer than 65536"),
    (b"HTTP/1.1 200 OK\r\n" + b"A:\r\n" * 1001 + b"\r\n", "more than 1000 lines"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "no size of a chunk"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 5000, "longer than 4096"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", "past its size"),
])
def test_what_is_no_answer_is_said_to_be_none(raw: bytes, why: str) -> None:
    with pytest.raises(BadAnswer) as bad:
        Answer().feed(raw)
    assert why in str(bad.value)


@pytest.mark.parametrize(("raw", "where"), [
    (b"", "without an answer"),
    (b"HTTP/1.1 200 OK\r\nConte", "in the middle of the head"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "after 3 of 9 bytes of the body"),
    (CHUNKED[:-8], "in the middle of a chunked body, after 5 bytes"),
])
def test_an_answer_that_is_broken_off_says_where(raw: bytes, where: str) -> None:
    answer = Answer()
    answer.feed(raw)
    with pytest.raises(BadAnswer, match=where):
        answer.end()
