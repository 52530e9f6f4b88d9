"""A request straight to a target and the same through the hub have the same answer."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from seawall.faults.running import running_target
from tests.hub.bed import LOOPS, Caller, RawConnection, hub_bed, raw_server

HOP = ("connection", "keep-alive", "transfer-encoding", "proxy-connection")
ADDED = ("host", "via", "x-budget-ms", "x-forwarded-for", "x-forwarded-proto", "x-request-id", *HOP)
BYTES = bytes(range(256)) * 300


@dataclass(frozen=True)
class Asked:
    """A request, and how its body is framed."""

    path: str
    method: str = "GET"
    body: bytes | None = None
    lines: tuple[str, ...] = ()
    chunked: bool = False
    version: str = "1.1"

    def raw(self, prefix: str) -> bytes:
        lines = [f"{self.method} {prefix}{self.path} HTTP/{self.version}", "Host: hub.test", *self.lines]
        body = b"" if self.body is None else self.body
        if self.chunked:
            lines.append("Transfer-Encoding: chunked")
            pieces = [body[at : at + 1000] for at in range(0, len(body), 1000)]
            body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
        elif self.body is not None:
            lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


ANSWERS = {
    "/plain": b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nplain",
    "/empty": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "/created": b"HTTP/1.1 201 Created\r\nLocation: /made/1\r\nContent-Length: 2\r\n\r\nid",
    "/none": b"HTTP/1.1 204 No Content\r\nX-Why: done\r\n\r\n",
    "/part": b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-3/9\r\nContent-Length: 4\r\n\r\npart",
    "/moved": b"HTTP/1.1 302 Found\r\nLocation: http://elsewhere.test/a?b=c\r\nContent-Length: 0\r\n\r\n",
    "/same": b"HTTP/1.1 304 Not Modified\r\nETag: W/\"1\"\r\nContent-Length: 500\r\n\r\n",
    "/login": b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"a, b\"\r\nContent-Length: 2\r\n\r\nno",
    "/slow-down": b"HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nwait",
    "/broken": b"HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\noops",
    "/full": b"HTTP/1.1 507 Insufficient Storage\r\nContent-Length: 1\r\n\r\n.",
    "/odd": b"HTTP/1.1 299 \r\nContent-Length: 3\r\n\r\nodd",
    "/nameless": b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok",
    "/cookies": b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Path=/\r\nSet-Cookie: b=2, c\r\nContent-Length: 2\r\n\r\nok",
    "/many": b"HTTP/1.1 200 OK\r\n%bContent-Length: 2\r\n\r\nok" % b"".join(b"X-%d: %d\r\n" % (i, i) for i in range(150)),
    "/bytes": b"HTTP/1.1 200 OK\r\nX-Latin: \xe9\xff\r\nContent-Length: %d\r\n\r\n" % len(BYTES) + BYTES,
    "/gzip": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nVary: Accept-Encoding\r\nContent-Length: 4\r\n\r\n\x1f\x8b\0\1",
    "/chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n1\r\n!\r\n0\r\n\r\n",
    "/trailers": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\n\r\n2\r\nok\r\n0\r\nT: 1\r\n\r\n",
    "/no-chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "/hints": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "/old": b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nold",
    "/goodbye": b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbye",
    "/to-the-end": b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil it ends",
}

ASKED = [
    *(Asked(path) for path in ANSWERS),
    *(Asked(path, "HEAD") for path in ("/plain", "/chunks", "/same", "/broken", "/none")),
    Asked("/echo", "POST", b"a body"), Asked("/echo", "POST", b""), Asked("/echo", "PUT", BYTES),
    Asked("/echo", "POST", b"in chunks", chunked=True), Asked("/echo", "PATCH", BYTES, chunked=True),
    Asked("/echo", "POST", b"", chunked=True), Asked("/echo", "DELETE"), Asked("/echo", "GET", b"unusual"),
    Asked("/echo", "OPTIONS"), Asked("/echo", "PROPFIND", b"<a/>"), Asked("/echo", "TRACE"),
    Asked("/echo?a=b&c=%20%2F;d//e", "POST", b"q"), Asked("/echo/%e2%82%ac/../x", "POST", b"p"),
    Asked("/echo", "POST", b"x", ("Content-Type: a/b; charset=\"c\"", "Cookie: d=e", "Cookie: f=g", "X-Empty:")),
    Asked("/echo", "POST", b"y", ("Authorization: Basic eDp5", "Range: bytes=0-1", "If-None-Match: \"z\"")),
    Asked("/plain", version="1.0"), Asked("/chunks", version="1.1", lines=("Accept-Encoding: gzip, br",)),
]


def script(connection: RawConnection) -> None:
    while request := connection.read_request():
        method, target, _ = request.split(b"\r\n", 1)[0].split(b" ")
        path = target.decode().partition("?")[0]
        body = request.partition(b"\r\n\r\n")[2]
        if path not in ANSWERS:
            body = method + b" " + target + b"\n" + (said(body) if b"\r\nTransfer-Encoding:" in request else body)
            connection.send(b"HTTP/1.1 200 OK\r\nX-Echo: yes\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            continue
        answer = ANSWERS[path]
        connection.send(answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if method == b"HEAD" else answer)
        if path in ("/goodbye", "/to-the-end") or b" HTTP/1.0\r\n" in request:
            return


def said(chunks: bytes) -> bytes:
    told = b""
    while size := int(chunks.partition(b"\r\n")[0], 16):
        start = chunks.index(b"\r\n") + 2
        told, chunks = told + chunks[start : start + size], chunks[start + size + 2 :]
    return told


def answer_to(caller: Caller, asked: Asked, prefix: str) -> tuple[int, dict[str, str], bytes, list[int]]:
    """Status, end-to-end headers, body and interim answers."""
    caller.send(asked.raw(prefix))
    answer = caller.answer(asked.method)
    return answer.status, {k: v for k, v in answer.headers.items() if k not in HOP}, answer.body, answer.interim


@pytest.mark.parametrize("loop", LOOPS)
def test_the_answer_is_the_same_with_and_without_the_hub(loop: str) -> None:
    """Each on a connection of its own."""
    with raw_server(script) as server, hub_bed(f"CORE={server.url},fail-threshold=1000", loop=loop) as bed:
        for asked in ASKED:
            with Caller(server.port) as straight, Caller(bed.port) as through:
                expected = answer_to(straight, asked, "")
                assert answer_to(through, asked, "/CORE") == expected, asked
        assert expected[0] == 200


@pytest.mark.parametrize("loop", LOOPS)
def test_nor_does_it_depend_on_what_was_asked_before(loop: str) -> None:
    """All on one connection, again and again in another order: the hub remembers heads, and must not mix them up."""
    staying = [asked for asked in ASKED if asked.version == "1.1"]
    with raw_server(script) as server, hub_bed(f"CORE={server.url},fail-threshold=1000", loop=loop) as bed:
        expected = {}
        for asked in staying:
            with Caller(server.port) as straight:
                expected[asked] = answer_to(straight, asked, "")
        with Caller(bed.port) as through:
            for step in (1, 3, 7, 11):
                for asked in staying[::step] + staying[step::2]:
                    assert answer_to(through, asked, "/CORE") == expected[asked], asked


def test_the_target_sees_the_same_request_but_for_what_the_hub_adds() -> None:
    asked = [
        Asked("/a?b=c", "PUT", b"12345", ("X-One: 1", "X-Two: a, b", "Content-Type: text/plain", "Accept: */*")),
        Asked("/d", "POST", b"678", chunked=True), Asked("/e", lines=("User-Agent: test/1",)),
    ]
    with running_target() as core, hub_bed(f"CORE={core.url}", loop="uvloop") as bed:
        port = int(core.url.rpartition(":")[2])
        for request in asked:
            seen = []
            for where, prefix in ((port, ""), (bed.port, "/CORE")):
                with Caller(where) as caller:
                    caller.send(request.raw(prefix))
                    seen.append(caller.answer().json())
            straight, through = seen
            for mirrored in seen:
                mirrored["headers"] = {k: v for k, v in mirrored["headers"].items() if k not in ADDED}
            assert through == straight
