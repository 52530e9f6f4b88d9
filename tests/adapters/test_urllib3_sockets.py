"""A budget ends urllib3's connections at each step: connect, handshake, tunnel, send, head and body."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import trustme
import urllib3
from urllib3.exceptions import HTTPError, ReadTimeoutError

import seawall
from seawall import Wall
from seawall.adapters.urllib3 import protect
from tests.adapters.served import Served
from tests.adapters.talking import counts, listening, manager, mute

SHORT, LATE = 0.25, 2.0  # s: as in test_conformance.py


def stuck(port: int) -> list[socket.socket]:
    """Fill the line of a listener that accepts nobody: who comes next waits for ever."""
    line = []
    for _ in range(8):
        sock = socket.socket()
        sock.settimeout(0.05)
        line.append(sock)
        if sock.connect_ex(("127.0.0.1", port)):
            break
    return line


def test_a_host_of_several_addresses_gets_no_more_time_than_one(wall: Wall, monkeypatch: pytest.MonkeyPatch) -> None:
    http, began = manager(wall), time.monotonic()
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, contextlib.ExitStack() as open_ones:
        place = listener.getsockname()
        for sock in stuck(place[1]):
            open_ones.enter_context(sock)
        found = socket.getaddrinfo(place[0], place[1], type=socket.SOCK_STREAM)
        monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **more: found * 40)
        began = time.monotonic()
        with seawall.budget(SHORT), pytest.raises(seawall.DeadlineExceededError):
            http.request("GET", f"http://127.0.0.1:{place[1]}/")
        assert SHORT - 0.01 < time.monotonic() - began < SHORT + LATE
    http.clear()


def test_a_body_that_nobody_reads_is_sent_no_longer_than_there_is_time(wall: Wall) -> None:
    held = threading.Event()
    with listening(lambda sock: held.wait(10)) as port:
        http, began = manager(wall), time.monotonic()
        with seawall.budget(SHORT), pytest.raises(seawall.DeadlineExceededError):
            http.request("POST", f"http://127.0.0.1:{port}/", body=b"x" * 50_000_000)
        assert SHORT - 0.01 < time.monotonic() - began < SHORT + LATE
        assert counts(wall) == (0, 1, 0)
        held.set()
        http.clear()


@pytest.mark.parametrize("read", ["read", "stream", "read_chunked", "read1", "data", "readinto"])
def test_a_body_says_in_urllib3s_class_that_its_time_is_over(wall: Wall, served: Served, read: str) -> None:
    http = manager(wall)
    with seawall.budget(SHORT):
        response = http.request("GET", f"{served.url}/drip?ms=20&chunked=1", preload_content=False)

    def all_of_it() -> None:
        if read == "data":
            assert response.data
        elif read == "readinto":
            response.readinto(bytearray(100_000))
        elif read == "read1":
            while response.read1(10):
                pass
        else:
            list(getattr(response, read)() if read != "read" else [response.read()])

    with pytest.raises(seawall.DeadlineExceededError) as error:
        all_of_it()
    assert isinstance(error.value, urllib3.exceptions.TimeoutError)
    assert isinstance(error.value.__cause__, ReadTimeoutError)
    assert counts(wall) == (0, 1, 0)
    http.clear()


def test_a_body_may_be_read_in_another_thread(wall: Wall, served: Served) -> None:
    http, ends = manager(wall), []
    with seawall.budget(SHORT):
        response = http.request("GET", f"{served.url}/drip?ms=20", preload_content=False)

    def read() -> None:
        try:
            response.read()
        except Exception as error:
            ends.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    thread.join(10)
    assert [type(error).__name__ for error in ends] == ["DeadlineExceededError"]
    assert counts(wall)[0] == 0
    http.clear()


def test_first_is_for_the_first_byte_of_the_body_and_gap_for_the_next(served: Served) -> None:
    wall = Wall()
    for options, path, status in (
        ({"first": SHORT}, "/pause?ms=600", 200),           # its first part came with the head
        ({"first": SHORT}, "/slow?ms=9000", None),
        ({"total": 9.0, "gap": SHORT}, "/pause?ms=9000", None),
        ({"total": 9.0, "gap": SHORT}, "/slow?ms=600", 200),  # before the body a gap is none
    ):
        http = protect(urllib3.PoolManager(), wall, **options)
        if status is None:
            with pytest.raises(urllib3.exceptions.HTTPError):
                http.request("GET", served.url + path)
        else:
            assert http.request("GET", served.url + path).status == status
        http.clear()


# -- TLS
@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def tls(authority: trustme.CA, talk: Callable[[socket.socket], object]) -> Callable[[socket.socket], None]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)

    def encrypted(sock: socket.socket) -> None:
        with context.wrap_socket(sock, server_side=True) as inner:
            talk(inner)

    return encrypted


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def dripping(sock: socket.socket) -> None:
    sock.recv(65536)
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n")
    for _ in range(500):
        sock.sendall(b"x")
        time.sleep(0.02)  # the pace of the drip, on the real clock


def slurping(sock: socket.socket) -> None:
    for _ in range(500):
        if not sock.recv(2000):
            break
        time.sleep(0.005)  # the pace of the reader, on the real clock


@pytest.mark.parametrize(("talk", "body"), [(dripping, b""), (slurping, b"x" * 50_000_000)], ids=["drip", "slurp"])
def test_a_budget_ends_what_goes_over_tls(
    wall: Wall, authority: trustme.CA, talk: Callable[[socket.socket], None], body: bytes
) -> None:
    with listening(tls(authority, talk)) as port:
        http, began = manager(wall, ssl_context=trusting(authority)), time.monotonic()
        with seawall.budget(0.5), pytest.raises(seawall.DeadlineExceededError):
            http.request("POST", f"https://127.0.0.1:{port}/", body=body)
        assert 0.49 < time.monotonic() - began < 0.5 + LATE
        assert counts(wall) == (0, 1, 0)
        http.clear()


def test_a_budget_ends_a_handshake_that_is_not_answered(wall: Wall) -> None:
    with listening(mute) as port:
        http, began = manager(wall), time.monotonic()
        with seawall.budget(SHORT), pytest.raises(seawall.DeadlineExceededError):
            http.request("GET", f"https://127.0.0.1:{port}/")
        assert SHORT - 0.01 < time.monotonic() - began < SHORT + LATE
        http.clear()


def test_a_slow_lookup_is_taken_off_the_time_for_the_handshake(wall: Wall, monkeypatch: pytest.MonkeyPatch) -> None:
    lookup = socket.getaddrinfo

    def slow(*args: Any, **more: Any) -> Any:
        time.sleep(1.0)  # a lookup of a second
        return lookup(*args, **more)

    with listening(mute) as port:
        http, began = manager(wall), time.monotonic()
        monkeypatch.setattr(socket, "getaddrinfo", slow)
        with seawall.budget(1.5), pytest.raises(seawall.DeadlineExceededError):
            http.request("GET", f"https://127.0.0.1:{port}/")
        assert 1.49 < time.monotonic() - began < 2.3
        monkeypatch.undo()
        http.clear()


def tunnel(to: int) -> Callable[[socket.socket], None]:
    """A proxy that takes CONNECT."""

    def pump(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)

    def talk(sock: socket.socket) -> None:
        if not sock.recv(65536):
            return
        sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        with socket.create_connection(("127.0.0.1", to), timeout=10) as other:
            back = threading.Thread(target=pump, args=(other, sock), daemon=True)
            back.start()
            pump(sock, other)
            back.join(10)

    return talk


def test_through_a_tunnel_the_answer_is_the_targets_and_the_budget_holds(wall: Wall, authority: trustme.CA) -> None:
    """The proxy's answer to CONNECT is none of the call's: with its end the place is not given back."""
    with listening(tls(authority, dripping)) as port, listening(tunnel(port)) as proxy:
        http = protect(
            urllib3.ProxyManager(f"http://127.0.0.1:{proxy}", ssl_context=trusting(authority)), wall, target="CORE"
        )
        with seawall.budget(0.5):
            response = http.request("GET", f"https://127.0.0.1:{port}/", preload_content=False)
            assert (response.read(1), counts(wall)) == (b"x", (1, 0, 0))
            with pytest.raises(seawall.DeadlineExceededError):
                response.read()
        assert counts(wall) == (0, 1, 0)
        http.clear()


def test_a_budget_ends_a_proxy_that_does_not_answer(wall: Wall) -> None:
    with listening(mute) as port:
        http = protect(urllib3.ProxyManager(f"http://127.0.0.1:{port}"), wall, target="CORE")
        with seawall.budget(SHORT), pytest.raises(seawall.DeadlineExceededError) as error:
            http.request("GET", "https://127.0.0.1:1/")
        assert isinstance(error.value, HTTPError)
        assert counts(wall) == (0, 1, 0)
        http.clear()
