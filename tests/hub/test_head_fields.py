"""How a body is framed, what stays between two neighbours and what passes on: a row of a table for each rule."""

from __future__ import annotations

import pytest

from seawall.hub.head import BadHead
from tests.heads import old, request, response

BAD_LENGTHS = [b"", b"+5", b"-5", b"5, 5", b"5,", b"0x5", b"5 5", b"5.", b"1e1", b"\xb2", b"1" * 19, b"_5", b"1_0"]


@pytest.mark.parametrize("value", BAD_LENGTHS)
def test_a_content_length_is_one_number_of_digits(value: bytes) -> None:
    with pytest.raises(BadHead, match="400"):
        request(b"Content-Length: " + value + b"\r\n")
    with pytest.raises(BadHead, match="502"):
        response(b"Content-Length: " + value + b"\r\n")


@pytest.mark.parametrize(("value", "length"), [(b"0", 0), (b" 5\t", 5), (b"007", 7), (b"9" * 18, 10**18 - 1)])
def test_a_content_length_stays_in_the_lines(value: bytes, length: int) -> None:
    line = b"content-length:" + value
    for head in (request(line + b"\r\n"), old(line + b"\r\n"), response(line + b"\r\n")):
        assert (head.length, head.chunked, head.lines) == (length, False, [line])


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (b"Content-Length: 5\r\nContent-Length: 5\r\n", 400), (b"Content-Length: 5\r\ncontent-length: 6\r\n", 400),
        (b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", 400),
        (b"Transfer-Encoding: x\r\nContent-Length: 5\r\n", 400),
        (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 501),
        (b"Transfer-Encoding: gzip, chunked\r\n", 501),
        (b"Transfer-Encoding: chunked, chunked\r\n", 501), (b"Transfer-Encoding: xchunked\r\n", 501),
        (b"Transfer-Encoding: chunked;q=1\r\n", 501), (b"Transfer-Encoding: identity\r\n", 501),
        (b"Transfer-Encoding:\r\n", 501), (b'Transfer-Encoding: "chunked"\r\n', 501),
        (b"Transfer-Encoding: chunked,\r\n", 501),
        (b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", 501),
        (b"Transfer-Encoding: chunked\xa0\r\n", 501),
    ],
)  # fmt: skip
def test_a_body_is_framed_in_one_way_or_refused(lines: bytes, status: int) -> None:
    with pytest.raises(BadHead) as refusal:
        request(lines)
    assert refusal.value.status == status
    with pytest.raises(BadHead) as refusal:
        response(lines)
    assert refusal.value.status == 502


def test_chunked_is_taken_out_of_the_lines_and_does_not_exist_in_http_1_0() -> None:
    for value in (b"chunked", b"\tChUnKeD ", b"CHUNKED"):
        line = b"transfer-Encoding:" + value + b"\r\n"
        for head in (request(line), response(line)):
            assert (head.length, head.chunked, head.lines) == (None, True, [])
        with pytest.raises(BadHead, match="400"):
            old(line)
        with pytest.raises(BadHead, match="502"):
            response(line, b"HTTP/1.0 200 OK")


@pytest.mark.parametrize(
    ("connection", "in_11", "in_10"),
    [
        (b"", True, False), (b"Connection: close\r\n", False, False), (b"Connection: keep-alive\r\n", True, True),
        (b"Connection: Keep-Alive\r\n", True, True), (b"Connection: keep-alive, Close\r\n", False, False),
        (b"Connection: x\r\nconnection:\tCLOSE\t\r\n", False, False), (b"Connection: x,,keep-alive\r\n", True, True),
        (b"Connection: closed\r\n", True, False), (b"Connection: \r\n", True, False),
        (b"Proxy-Connection: close\r\n", True, False),
    ],
)  # fmt: skip
def test_who_wants_to_go_on(connection: bytes, in_11: bool, in_10: bool) -> None:
    assert (request(connection).keep_alive, old(connection).keep_alive) == (in_11, in_10)
    assert response(connection).keep_alive == in_11
    assert response(connection, b"HTTP/1.0 200 OK").keep_alive == in_10


def test_hop_by_hop_headers_and_those_connection_names_do_not_pass() -> None:
    lines = (
        b"A: 1\r\nConnection: x-gone, X-Gone2\r\nKeep-Alive: 5\r\nProxy-Connection: a\r\nTE: trailers\r\nTE: x\r\n"
        b"X-GONE: 1\r\nUpgrade: h2c\r\nProxy-Authorization: Basic x\r\nX-Gone2: 2\r\nX-Gone: 3\r\n"
        b"connection: x-gone3\r\nx-gone3: 1\r\nB: 2\r\n"
    )
    assert request(lines).lines == [b"A: 1", b"B: 2"]
    assert response(lines).lines == [b"A: 1", b"Proxy-Authorization: Basic x", b"B: 2"]


def test_connection_cannot_name_away_what_the_hub_goes_by() -> None:
    head = request(
        b"Connection: host, content-length, idempotency-key, x-budget-ms, x-forwarded-for, via, close\r\n"
        b"Content-Length: 3\r\nIdempotency-Key: k\r\nX-Budget-Ms: 9\r\nX-Forwarded-For: a\r\nVia: v\r\n"
    )
    assert head.lines == [b"Content-Length: 3", b"Idempotency-Key: k"]
    assert (head.host, head.length, head.idempotency_key, head.budgets) == (b"h", 3, True, (b"9", None, None))
    assert (head.forwarded, head.via, head.keep_alive) == (b"a", b"v", False)
    answer = b"Content-Length: 3\r\nX-Seawall-Code: E904\r\nRetry-After: 5\r\n"
    kept = response(b"Connection: content-length, x-seawall-code, retry-after\r\n" + answer)
    assert kept.lines == answer.split(b"\r\n")[:-1]
    with pytest.raises(BadHead, match="400"):
        request(b"Connection: transfer-encoding\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n")


def test_upgrade_counts_only_when_connection_lists_it_in_http_1_1() -> None:
    lines = b"Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
    assert (request(lines).upgrade, request(lines).lines) == (b"websocket", [])
    assert (old(lines).upgrade, old(lines).lines) == (None, [])
    assert request(b"Upgrade: websocket\r\n").upgrade is None
    assert request(b"Connection: upgrade\r\n").upgrade is None
    assert request(b"Connection: upgrade\r\nUpgrade:\r\n").upgrade is None
    assert request(b"Connection: upgrade\r\nUpgrade: a\r\nupgrade: b\r\n").upgrade == b"a, b"
    assert response(lines, b"HTTP/1.1 101 Switching").upgrade == b"websocket"
    assert response(lines, b"HTTP/1.0 101 Switching").upgrade is None


def test_only_100_continue_may_be_expected() -> None:
    assert request(b"Expect: 100-Continue\r\n").expect
    assert request(b"Expect: 100-continue\r\n").lines == []
    assert not old(b"Expect: 100-continue\r\n").expect
    for value in (b"", b"200-ok", b"100-continue, x"):
        with pytest.raises(BadHead, match="417"):
            request(b"Expect: " + value + b"\r\n")
    assert response(b"Expect: x\r\n").lines == [b"Expect: x"]


def test_what_the_hub_writes_itself_is_taken_out_and_several_are_joined() -> None:
    twice = request(
        b"X-Budget-Ms: 5\r\nx-budget-ms: 7\r\nGRPC-Timeout: 3S\r\nX-Envoy-Expected-Rq-Timeout-Ms: 9\r\n"
        b"X-Forwarded-For: a\r\nX-Forwarded-For:\tb, c\r\n"
        b"X-Forwarded-Proto: http\r\nVia: 1.0 a\r\nVIA: 1.1 b \r\nX-Request-Id: i\r\n"
        b"Idempotency-Key: k\r\nX-Seawall-Code: x\r\n"
    )
    assert (twice.budgets, twice.forwarded, twice.proto) == ((b"5, 7", b"3S", b"9"), b"a, b, c", b"http")
    assert (twice.via, twice.request_id, twice.idempotency_key) == (b"1.0 a, 1.1 b", b"i", True)
    assert twice.lines == [b"Idempotency-Key: k", b"X-Seawall-Code: x"]


@pytest.mark.fault("F52")
def test_an_answer_keeps_the_code_of_a_hub_further_on() -> None:
    lines = [b"X-Seawall-Code: E904", b"retry-after:  7 ", b"Via: 1.1 b", b"X-Request-Id: i", b"Host: x"]
    head = response(b"\r\n".join(lines) + b"\r\n")
    assert (head.code, head.retry_after, head.lines) == (b"E904", b"7", lines)
