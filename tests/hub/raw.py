"""Plain sockets for the tests of the hub: targets that do exactly what a script says, and clients that read strictly."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "PATIENCE", "Answer", "Caller", "RawConnection", "RawServer", "Script", "answering", "ask", "black_hole", "raw_server",
    "refusing", "response", "talk",
]  # fmt: skip

PATIENCE = 20.0  # s; longer than anything here takes on a loaded machine, short enough not to hang a suite


@dataclass
class Answer:
    """A response as it came; header names in lower case, values of a repeated one joined by a comma."""

    status: int
    headers: dict[str, str]
    body: bytes
    interim: list[int] = field(default_factory=list)

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str | None:
        """What ``X-Seawall-Code`` says."""
        return self.headers.get("x-seawall-code")


class Wire:
    """One socket, read by messages. What has arrived and belongs to the next message is kept in ``rest``."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.rest = b""
        sock.settimeout(PATIENCE)

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def drip(self, data: bytes, gap: float) -> None:
        """One byte each ``gap`` seconds; ends quietly when the other side has gone."""
        for byte in data:
            try:
                self.sock.sendall(bytes([byte]))
            except OSError:
                return
            time.sleep(gap)

    def reset(self) -> None:
        """End the connection with a TCP reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self) -> None:
        """End the connection in order, at once: what other threads wait for on it ends as well."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()

    def hang(self) -> None:
        """Say nothing until the other side ends the connection."""
        with contextlib.suppress(OSError):
            while self.sock.recv(65536):
                pass

    def more(self) -> bool:
        """Read a piece; ``False`` at the end of the connection."""
        piece = self.sock.recv(65536)
        self.rest += piece
        return bool(piece)

    def ended(self) -> bool:
        """Whether the connection ends, in order or by a reset, without another byte."""
        try:
            return not self.rest and not self.more()
        except ConnectionError:
            return True

    def upto(self, mark: bytes) -> bytes:
        """Through the next ``mark``; ``EOFError`` if the connection ends before it."""
        while mark not in self.rest:
            if not self.more():
                raise EOFError(f"the connection ended after {self.rest!r}")
        head, _, self.rest = self.rest.partition(mark)
        return head + mark

    def exactly(self, size: int) -> bytes:
        while len(self.rest) < size:
            if not self.more():
                raise EOFError(f"the connection ended after {len(self.rest)} of {size} bytes of a body")
        data, self.rest = self.rest[:size], self.rest[size:]
        return data

    def chunks(self) -> tuple[bytes, bytes]:
        """A chunked body: as it came, and what it says."""
        raw = said = b""
        while True:
            line = self.upto(b"\r\n")
            raw += line
            size = int(line.partition(b";")[0], 16)
            while not size and line != b"\r\n":  # trailers, and the empty line behind them
                line = self.upto(b"\r\n")
                raw += line
            if not size:
                return raw, said
            piece = self.exactly(size + 2)
            raw += piece
            said += piece[:-2]


def headers_of(head: bytes) -> tuple[str, dict[str, str]]:
    first, *lines = head[:-4].decode("latin-1").split("\r\n")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        name, value = name.lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return first, headers


class RawConnection(Wire):
    """One connection to a :class:`RawServer`, in the hands of its script."""

    def __init__(self, sock: socket.socket, server: RawServer) -> None:
        super().__init__(sock)
        self.server = server

    def read_request(self) -> bytes:
        """The next request, head and body, as it came; ``b""`` when none comes any more."""
        try:
            head = self.upto(b"\r\n\r\n")
            _, headers = headers_of(head)
            if "chunked" in headers.get("transfer-encoding", ""):
                request = head + self.chunks()[0]
            else:
                request = head + self.exactly(int(headers.get("content-length", 0)))
        except (EOFError, OSError):
            return b""
        self.server.requests.append(request)
        return request


Script = Callable[[RawConnection], object]


class RawServer:
    """A target that runs a script for each connection, each in a thread of its own.

    Attributes:
        port: Where it listens on 127.0.0.1.
        requests: Every request that was read whole, as it came.
        connections: How many connections there have been.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[bytes] = []
        self.connections = 0
        self.errors: list[BaseException] = []
        self._open: list[RawConnection] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._acceptor = threading.Thread(target=self._accept, name="raw server", daemon=True)
        self._acceptor.start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            connection = RawConnection(sock, self)
            self._open.append(connection)
            thread = threading.Thread(target=self._run, args=(connection,), name="raw connection", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _run(self, connection: RawConnection) -> None:
        try:
            self.script(connection)
        except (OSError, EOFError):
            pass  # the hub has ended the connection: that is what many tests are about
        except BaseException as error:
            self.errors.append(error)
        finally:
            connection.close()

    def close(self) -> None:
        """End all connections and wait for the scripts."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._acceptor.join(PATIENCE)
        for connection in self._open:
            connection.close()
        for thread in self._threads:
            thread.join(PATIENCE)
        assert not self.errors, f"a script failed: {self.errors!r}"


@contextlib.contextmanager
def raw_server(script: Script) -> Iterator[RawServer]:
    """A :class:`RawServer` for as long as the block lasts."""
    server = RawServer(script)
    try:
        yield server
    finally:
        server.close()


def response(status: int, body: bytes = b"", **headers: str) -> bytes:
    """A response with a counted body; underscores in the names of headers stand for hyphens."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Whatever\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode("latin-1") + body


def answering(*answers: bytes) -> Script:
    """A script that answers the requests of a connection one by one, the last answer again and again."""

    def script(connection: RawConnection) -> None:
        number = 0
        while connection.read_request():
            connection.send(answers[min(number, len(answers) - 1)])
            number += 1

    return script


@contextlib.contextmanager
def refusing() -> Iterator[int]:
    """A port of 127.0.0.1 on which connections are refused, and which nobody else can take."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield sock.getsockname()[1]


@contextlib.contextmanager
def black_hole() -> Iterator[int]:
    """A port of 127.0.0.1 that answers no attempt to connect, neither with yes nor with no: its queue is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                filler.connect(listener.getsockname())
        yield listener.getsockname()[1]


class Caller(Wire):
    """A client with one connection, which it keeps for as long as the hub does."""

    def __init__(self, port: int) -> None:
        super().__init__(socket.create_connection(("127.0.0.1", port), PATIENCE))

    @classmethod
    def on(cls, sock: socket.socket) -> Caller:
        """A client on a socket that is connected already."""
        caller = cls.__new__(cls)
        Wire.__init__(caller, sock)
        return caller

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """Send a request and read its answer."""
        self.begin(method, path, body, headers)
        return self.answer(method)

    def begin(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> None:
        """Send a request; :meth:`answer` reads what comes back."""
        given = {"Host": "hub.test"} | ({} if body is None else {"Content-Length": str(len(body))}) | (headers or {})
        lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        self.send(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + (body or b""))

    def answer(self, method: str = "GET") -> Answer:
        """The next answer, its body as its framing says; ``EOFError`` if the connection ends before the answer does."""
        interim: list[int] = []
        while True:
            first, headers = headers_of(self.upto(b"\r\n\r\n"))
            status = int(first.split(" ")[1])
            if status >= 200 or status == 101:
                break
            interim.append(status)
        if method == "HEAD" or status in (101, 204, 304):
            body = b""
        elif "chunked" in headers.get("transfer-encoding", ""):
            body = self.chunks()[1]
        elif "content-length" in headers:
            body = self.exactly(int(headers["content-length"]))
        else:
            while self.more():
                pass
            body, self.rest = self.rest, b""
        return Answer(status, headers, body, interim)


def ask(
    port: int, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> Answer:
    """One request on a connection of its own."""
    with Caller(port) as caller:
        return caller.ask(method, path, body, headers)


def talk(
    port: int, data: bytes, until: bytes | Callable[[bytes], object] | None = None, timeout: float = PATIENCE
) -> bytes:
    """Send raw bytes and return what comes back: until ``until`` is in it or true of it, or the connection ends.

    ``TimeoutError`` after ``timeout`` seconds.
    """
    end = time.monotonic() + timeout
    came = b""
    with socket.create_connection(("127.0.0.1", port), timeout) as sock:
        sock.sendall(data)
        while True:
            if isinstance(until, bytes) and until in came:
                return came
            if callable(until) and until(came):
                return came
            sock.settimeout(max(0.001, end - time.monotonic()))
            try:
                piece = sock.recv(65536)
            except ConnectionError:
                return came
            if not piece:
                return came
            came += piece
