"""What a relay of HTTP is commonly measured by, on both ways in: by the target's name, and by default."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from tests.hub.bed import Caller, HubBed, RawConnection, RawServer, hub_bed, raw_server, talk
from tests.hub.framing import assert_one_framing

BIG = 64 << 20  # bytes; far more than all buffers on the way together

ANSWERS = {
    "/chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n",
    "/204": b"HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n",
    "/304": b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nContent-Length: 1234\r\n\r\n",
    "/103": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "/hop": b"HTTP/1.1 200 OK\r\nConnection: X-Secret\r\nX-Secret: 1\r\nKeep-Alive: timeout=9\r\nX-Open: 1\r\n"
            b"Content-Length: 2\r\n\r\nok",
    "/cookies": b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 2\r\n\r\nok",
    "/gzip": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x00\x01",
    "/head": b"HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n",
}

LAST_WORDS = {  # what the target says before it closes the connection
    "/eof": b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil the end",
    "/short": b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nonly this",
    "/both": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "/two": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nhello",
    "/stale": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
}


@dataclass
class Bench:
    """A hub before a target that answers by path. One for the whole file: a check must not disturb the next."""

    bed: HubBed
    server: RawServer
    go_on: threading.Event = field(default_factory=threading.Event)
    sent: int = 0

    @property
    def seen(self) -> bytes:
        """What the target got, one request behind the other."""
        return b"".join(self.server.requests)


@dataclass
class Way:
    """One of the two ways in: what stands before each path there."""

    bench: Bench
    prefix: str

    def request(self, path: str = "/", *lines: str, method: str = "GET", version: str = "1.1", host: str = "h") -> bytes:
        target = path.replace("http://h", "http://h" + self.prefix) if path.startswith("http") else self.prefix + path
        given = [f"{method} {target} HTTP/{version}", *([f"Host: {host}"] if host else []), *lines]
        return "\r\n".join([*given, "", ""]).encode("latin-1")

    def ask(self, path: str = "/", *lines: str, body: bytes = b"", method: str = "GET", version: str = "1.1",
            host: str = "h") -> bytes:
        """All the bytes that come back; the request asks for the connection to be closed."""
        closing = () if version == "1.0" else ("Connection: close",)
        raw = self.request(path, *lines, *closing, method=method, version=version, host=host)
        return talk(self.bench.bed.port, raw + body)


def _serve(bench: Bench) -> Callable[[RawConnection], None]:
    def script(connection: RawConnection) -> None:
        while _answer(bench, connection):
            pass

    return script


def _answer(bench: Bench, connection: RawConnection) -> bool:
    """Answer the next request; whether another may follow."""
    while b"\r\n\r\n" not in connection.rest:
        if not connection.more():
            return False
    if b"\r\nexpect:" in connection.rest.lower():
        connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    request = connection.read_request()
    path = request.split(b" ")[1].decode()
    if path in LAST_WORDS:
        connection.send(LAST_WORDS[path])
        return False
    if path == "/ws":
        connection.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")
        while connection.rest or connection.more():
            connection.send(b"<" + connection.rest + b">")
            connection.rest = b""
    elif path == "/big":
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % BIG)
        for _ in range(BIG >> 16):
            connection.send(b"z" * 65536)
            bench.sent += 65536
    elif path == "/drip":
        connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        assert bench.go_on.wait(20)
        connection.send(b"3\r\ntwo\r\n0\r\n\r\n")
    elif path in ANSWERS:
        connection.send(ANSWERS[path])
    else:
        body = said(request) or b"ok"
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    return True


def said(message: bytes) -> bytes:
    """The body of a message, unwrapped from its chunks; it must be whole."""
    head, _, body = message.partition(b"\r\n\r\n")
    if b"\r\ntransfer-encoding: chunked" not in head.lower():
        return body
    told = b""
    while True:
        line, _, body = body.partition(b"\r\n")
        size = int(line.split(b";")[0], 16)
        told, end, body = told + body[:size], body[size:size + 2], body[size + 2:]
        assert end == b"\r\n"
        if not size:
            assert body == b""
            return told


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    holder: list[Bench] = []
    with raw_server(lambda connection: _serve(holder[0])(connection)) as server:
        target = f"CORE={server.url},read=10,budget-ms=20000,fail-threshold=1000"
        with hub_bed(target, loop="uvloop", default="CORE") as bed:
            holder.append(Bench(bed, server))
            yield holder[0]


@pytest.fixture(params=["/CORE", ""], ids=["by name", "by default"])
def way(request: pytest.FixtureRequest, bench: Bench) -> Way:
    bench.server.requests.clear()
    bench.go_on.clear()
    return Way(bench, request.param)


# -- what passes, and how

def test_headers_for_this_hop_alone_go_no_further(way: Way) -> None:
    talked = talk(way.bench.bed.port, way.request("/", "Connection: X-Hop, close", "X-Hop: 1", "Keep-Alive: timeout=5",
                                                  "TE: trailers", "Proxy-Connection: keep-alive", "X-Fine: 1"))
    assert talked.startswith(b"HTTP/1.1 200 ")
    seen = way.bench.seen.lower()
    assert b"\r\nx-fine: 1\r\n" in seen
    assert [name for name in (b"x-hop", b"keep-alive", b"te", b"proxy-connection") if b"\r\n" + name + b":" in seen] == []


def test_headers_for_that_hop_alone_come_no_further(way: Way) -> None:
    head = way.ask("/hop").lower()
    assert b"\r\nx-open: 1\r\n" in head
    assert b"x-secret" not in head
    assert b"timeout=9" not in head


def test_a_header_given_twice_comes_twice(way: Way) -> None:
    assert way.ask("/cookies").count(b"\r\nSet-Cookie: ") == 2


def test_the_path_is_passed_on_byte_for_byte(way: Way) -> None:
    way.ask("/a%2Fb/..%2f?x=%20%41&y=a+b")
    assert way.bench.seen.startswith(b"GET /a%2Fb/..%2f?x=%20%41&y=a+b HTTP/1.1\r\n")


def test_the_path_of_a_url_is_passed_on_and_its_host_counts(way: Way) -> None:
    assert way.ask("http://h/abs?q=1").startswith(b"HTTP/1.1 200 ")
    assert way.bench.seen.startswith(b"GET /abs?q=1 HTTP/1.1\r\n")


def test_a_header_of_6_kB_is_passed_on(way: Way) -> None:
    assert way.ask("/", "X-Long: " + "a" * 6000).startswith(b"HTTP/1.1 200 ")
    assert b"a" * 6000 in way.bench.seen


@pytest.mark.parametrize(("path", "body"), [
    ("/chunked", b"hello world"), ("/eof", b"until the end"), ("/gzip", b"\x1f\x8b\x00\x01"), ("/", b"ok"),
])
def test_a_body_comes_whole_however_it_is_framed(path: str, body: bytes, way: Way) -> None:
    answer = way.ask(path)
    assert_one_framing(answer)
    assert said(answer) == body


@pytest.mark.parametrize(("lines", "body"), [
    (["Transfer-Encoding: chunked"], b"5\r\nhello\r\n1;ext=1\r\n!\r\n0\r\n\r\n"),
    (["Content-Length: 6"], b"hello!"),
])
def test_a_request_body_arrives_whole_however_it_is_framed(lines: list[str], body: bytes, way: Way) -> None:
    assert said(way.ask("/", *lines, body=body, method="POST")) == b"hello!"
    assert_one_framing(way.bench.seen)
    assert said(way.bench.seen) == b"hello!"


def test_an_answer_to_head_says_the_length_and_has_no_body(way: Way) -> None:
    answer = way.ask("/head", method="HEAD")
    assert b"\r\nContent-Length: 77\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("status", [204, 304])
def test_a_status_without_body_has_none(status: int, way: Way) -> None:
    answer = way.ask(f"/{status}")
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert answer.endswith(b"\r\n\r\n")
    assert b"transfer-encoding" not in answer.lower()
    assert (b"content-length" in answer.lower()) == (status == 304)


def test_early_hints_come_before_the_answer(way: Way) -> None:
    hints, _, answer = way.ask("/103").partition(b"\r\n\r\n")
    assert hints == b"HTTP/1.1 103 Early Hints\r\nLink: </a>"
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert said(answer) == b"ok"


def test_who_expects_a_100_gets_it_and_then_sends_the_body(way: Way) -> None:
    with Caller(way.bench.bed.port) as caller:
        caller.send(way.request("/", "Expect: 100-continue", "Content-Length: 5", method="POST"))
        assert caller.upto(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        caller.send(b"hello")
        assert caller.answer().body == b"hello"
    assert said(way.bench.seen) == b"hello"


def test_after_an_upgrade_bytes_go_both_ways(way: Way) -> None:
    with Caller(way.bench.bed.port) as caller:
        caller.send(way.request("/ws", "Connection: Upgrade", "Upgrade: echo"))
        assert b"\r\nUpgrade: echo\r\n" in caller.upto(b"\r\n\r\n")
        for word in (b"ping", b"\0\r\n\r\n\xff"):
            caller.send(word)
            assert caller.exactly(len(word) + 2) == b"<" + word + b">"


def test_the_beginning_of_a_slow_answer_is_passed_on_at_once(way: Way) -> None:
    with Caller(way.bench.bed.port) as caller:
        caller.send(way.request("/drip"))
        caller.upto(b"one")  # the target sends no more before this has come
        way.bench.go_on.set()
        caller.upto(b"two")


# -- HTTP/1.0

def test_a_client_of_1_0_is_answered_and_the_connection_closed(way: Way) -> None:
    assert said(way.ask("/", version="1.0")) == b"ok"


def test_a_client_of_1_0_that_wants_to_go_on_is_told_that_it_may(way: Way) -> None:
    with Caller(way.bench.bed.port) as caller:
        for _ in range(2):
            caller.send(way.request("/", "Connection: keep-alive", version="1.0"))
            answer = caller.answer()
            assert (answer.body, answer.headers["connection"]) == (b"ok", "keep-alive")


def test_a_client_of_1_0_gets_no_chunks(way: Way) -> None:
    answer = way.ask("/chunked", version="1.0")
    assert b"transfer-encoding" not in answer.lower()
    assert said(answer) == b"hello world"


# -- connections

def test_three_requests_at_once_have_three_answers(way: Way) -> None:
    with Caller(way.bench.bed.port) as caller:
        caller.send(b"".join(way.request(path) for path in ("/chunked", "/gzip", "/")))
        assert [caller.answer().body for _ in range(3)] == [b"hello world", b"\x1f\x8b\x00\x01", b"ok"]


def test_connections_that_the_target_closes_without_a_word_cost_no_answer(way: Way) -> None:
    for _ in range(6):
        assert said(way.ask("/stale")) == b"ok"


def test_a_client_that_reads_nothing_stops_the_target(way: Way) -> None:
    bench = way.bench
    bench.sent = 0
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        sock.connect(("127.0.0.1", bench.bed.port))
        sock.sendall(way.request("/big"))
        stopped = False
        while not stopped:  # until a fifth of a second has brought no more
            before = bench.sent
            stopped = not threading.Event().wait(0.2) and before == bench.sent and before > 0
        assert bench.sent < BIG // 2


def test_an_answer_that_breaks_off_never_looks_whole(way: Way) -> None:
    answer = way.ask("/short")
    assert b"\r\nContent-Length: 50\r\n" in answer
    assert answer.endswith(b"only this")


@pytest.mark.parametrize("path", ["/both", "/two"])
def test_an_answer_whose_end_cannot_be_told_is_not_passed_on(path: str, way: Way) -> None:
    answer = way.ask(path)
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert b"\r\nX-Seawall-Code: E903\r\n" in answer
    assert_one_framing(answer)


# -- what is refused, so that nobody behind reads it otherwise

AMBIGUOUS = {
    "length and chunks": (["Content-Length: 5", "Transfer-Encoding: chunked"], b"0\r\n\r\n"),
    "two lengths": (["Content-Length: 5", "Content-Length: 6"], b"hello!"),
    "a length with a sign": (["Content-Length: +5"], b"hello"),
    "a list of lengths": (["Content-Length: 5, 5"], b"hello"),
    "a length in hexadecimal": (["Content-Length: 0x5"], b"hello"),
    "an unknown coding": (["Transfer-Encoding: xchunked"], b"0\r\n\r\n"),
    "chunked, but not last": (["Transfer-Encoding: chunked, identity"], b"0\r\n\r\n"),
    "two codings": (["Transfer-Encoding: chunked", "Transfer-Encoding: identity"], b"0\r\n\r\n"),
    "a space before the colon": (["Content-Length : 5"], b"hello"),
    "a folded line": (["X-A: 1\r\n folded", "Content-Length: 5"], b"hello"),
    "a bare LF": (["X-A: 1\nX-B: 2", "Content-Length: 0"], b""),
    "a bare CR": (["X-A: 1\rX-B: 2", "Content-Length: 0"], b""),
    "a NUL": (["X-A: 1\0", "Content-Length: 0"], b""),
    "a name that is none": (["X(A): 1", "Content-Length: 0"], b""),
    "a chunk size with a sign": (["Transfer-Encoding: chunked"], b"+5\r\nhello\r\n0\r\n\r\n"),
    "a chunk size ended by LF": (["Transfer-Encoding: chunked"], b"5\nhello\r\n0\r\n\r\n"),
    "a chunk longer than its size": (["Transfer-Encoding: chunked"], b"5\r\nhelloXX0\r\n\r\n"),
    "a chunk size of 17 digits": (["Transfer-Encoding: chunked"], b"fffffffffffffffff\r\nhello\r\n0\r\n\r\n"),
    "a second host": (["Host: other", "Content-Length: 0"], b""),
}


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_what_can_be_read_in_two_ways_is_refused_and_reaches_nobody(case: str, way: Way) -> None:
    lines, body = AMBIGUOUS[case]
    answer = way.ask("/", *lines, body=body, method="POST")
    assert re.match(rb"HTTP/1\.1 (400|501) ", answer), answer
    assert b"\r\nX-Seawall-Code: E400\r\n" in answer
    assert way.bench.seen == b""


@pytest.mark.parametrize(("version", "host", "lines", "status"), [
    ("1.1", "", [], 400), ("1.2", "h", [], 505), ("1.0", "h", ["Transfer-Encoding: chunked"], 400),
], ids=["no host", "a version not spoken", "chunks in 1.0"])
def test_a_request_that_its_version_does_not_allow_is_refused(
    version: str, host: str, lines: list[str], status: int, way: Way
) -> None:
    answer = way.ask("/", *lines, body=b"0\r\n\r\n" if lines else b"", version=version, host=host)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert way.bench.seen == b""


def test_no_second_request_is_smuggled_behind_an_ambiguous_one(way: Way) -> None:
    first = way.request("/", "Content-Length: 5", "Transfer-Encoding: chunked", method="POST")
    answer = talk(way.bench.bed.port, first + b"0\r\n\r\n" + way.request("/smuggled"))
    assert answer.count(b"HTTP/1.1 ") == 1
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert way.bench.seen == b""
