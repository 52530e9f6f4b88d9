"""A server for the adapters' conformance suite: plain sockets, a thread a connection, misbehaves by path."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

REASONS = {200: "OK", 302: "Found", 404: "Not Found", 429: "Too Many Requests", 503: "Service Unavailable"}


@dataclass
class Asked:
    """One request as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int


@dataclass
class Served:
    """The server of one test."""

    url: str
    host: str
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    stop: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)  # a client went away in the middle of an answer
    go: threading.Event = field(default_factory=threading.Event)    # lets /gate answer

    def paths(self) -> list[str]:
        """What was asked for, without queries."""
        return [asked.path.partition("?")[0] for asked in self.asked]


class _Connection:
    def __init__(self, served: Served, sock: socket.socket, number: int) -> None:
        self.served, self.sock, self.number = served, sock, number
        self.file = sock.makefile("rb")

    def run(self) -> None:
        with contextlib.suppress(OSError, ValueError), self.sock, self.file:
            while self._one():
                pass

    def _one(self) -> bool:
        line = self.file.readline().decode("latin-1")
        if not line:
            return False
        method, path, _ = line.split(" ", 2)
        headers: dict[str, str] = {}
        while (line := self.file.readline().decode("latin-1").strip()) != "":
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        self.served.asked.append(Asked(method, path, headers, self._body(headers), self.number))
        place = urlsplit(path)
        return bool(getattr(self, "do_" + place.path.strip("/"))(dict(parse_qsl(place.query)), self.served.asked[-1]))

    def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") != "chunked":
            return self.file.read(int(headers.get("content-length", 0)))
        body = b""
        while size := int(self.file.readline(), 16):
            body += self.file.read(size)
            self.file.readline()
        self.file.readline()
        return body

    def _send(self, data: bytes) -> None:
        try:
            self.sock.sendall(data)
        except OSError:
            self.served.left.set()
            raise

    def _wait(self, ms: float) -> None:
        """Wait so long, or until the client goes away."""
        self.sock.settimeout(ms / 1000)
        try:
            gone = self.sock.recv(1, socket.MSG_PEEK) == b""
        except TimeoutError:
            gone = False
        except OSError:
            gone = True
        self.sock.settimeout(None)
        if gone:
            self.served.left.set()
            raise OSError("the client is gone")

    def _head(self, status: int, length: int | None, **more: Any) -> None:
        lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Other')}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in more.items()]
        lines.append("Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}")
        self._send(("\r\n".join(lines) + "\r\n\r\n").encode())

    def do_ok(self, query: dict[str, str], asked: Asked) -> bool:
        body = b"x" * int(query.get("bytes", 2))
        self._head(200, len(body))
        self._send(body)
        return True

    def do_status(self, query: dict[str, str], asked: Asked) -> bool:
        more = {} if "retry_after" not in query else {"Retry_After": query["retry_after"]}
        if "code" in query:
            more["X_Seawall_Code"] = query["code"]
        body = b"e" * int(query.get("bytes", 4))
        self._head(int(query["is"]), len(body), **more)
        self._send(body)
        return True

    def do_flaky(self, query: dict[str, str], asked: Asked) -> bool:
        before = [other for other in self.served.asked if other.path == asked.path]
        good = len(before) > int(query["fail"])
        if not good and query.get("how") == "reset":
            return False
        return self.do_ok({}, asked) if good else self.do_status({"is": "503", **query}, asked)

    def do_slow(self, query: dict[str, str], asked: Asked) -> bool:
        self._wait(float(query["ms"]))
        return self.do_ok({}, asked)

    def do_hang(self, query: dict[str, str], asked: Asked) -> bool:
        self._wait(60_000)
        return False

    def do_gate(self, query: dict[str, str], asked: Asked) -> bool:
        self.served.go.wait(30)
        return self.do_ok({}, asked)

    def do_drip(self, query: dict[str, str], asked: Asked) -> bool:
        parts = int(query.get("parts", 10_000))
        self._head(200, None if "chunked" in query else parts)
        for _ in range(parts):
            self._send(b"1\r\nx\r\n" if "chunked" in query else b"x")
            self._wait(float(query["ms"]))
        if "chunked" in query:
            self._send(b"0\r\n\r\n")
        return True

    def do_pause(self, query: dict[str, str], asked: Asked) -> bool:
        """The first part at once, the second after a while."""
        self._head(200, 8)
        self._send(b"half")
        self._wait(float(query["ms"]))
        self._send(b"done")
        return True

    def do_driphead(self, query: dict[str, str], asked: Asked) -> bool:
        self._send(b"HTTP/1.1 200 OK\r\nX-Long: ")
        for _ in range(10_000):
            self._send(b"x")
            self._wait(float(query["ms"]))
        return False

    def do_break(self, query: dict[str, str], asked: Asked) -> bool:
        self._head(200, None if "chunked" in query else 100)
        self._send(b"5\r\nhello\r\n" if "chunked" in query else b"hello")
        return False

    def do_reset(self, query: dict[str, str], asked: Asked) -> bool:
        return False

    def do_garbage(self, query: dict[str, str], asked: Asked) -> bool:
        self._send(b"this is not HTTP\r\n\r\n")
        return False

    def do_redirect(self, query: dict[str, str], asked: Asked) -> bool:
        self._head(302, 0, Location=query["to"])
        return True

    def do_echo(self, query: dict[str, str], asked: Asked) -> bool:
        body = json.dumps({"method": asked.method, "headers": asked.headers, "body": asked.body.decode()}).encode()
        self._head(200, len(body), Content_Type="application/json")
        self._send(body)
        return True


@contextlib.contextmanager
def serving() -> Iterator[Served]:
    """A server for as long as the block lasts."""
    listener = socket.create_server(("127.0.0.1", 0))
    place = f"127.0.0.1:{listener.getsockname()[1]}"
    served = Served(f"http://{place}", place)
    sockets: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def accept() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            if served.stop.is_set():
                sock.close()
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sockets.append(sock)
            served.connections += 1
            threads.append(threading.Thread(target=_Connection(served, sock, served.connections).run, daemon=True))
            threads[-1].start()

    acceptor = threading.Thread(target=accept, daemon=True)
    acceptor.start()
    try:
        yield served
    finally:
        served.stop.set()
        served.go.set()
        with contextlib.suppress(OSError):
            socket.create_connection(listener.getsockname(), timeout=5).close()
        acceptor.join(10)
        listener.close()
        for sock in sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(10)
