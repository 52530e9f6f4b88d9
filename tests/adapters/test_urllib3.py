"""What is special to urllib3: its own retries, pools without a manager, proxies, TLS, and bodies read as one likes."""

from __future__ import annotations

import contextlib
import gzip
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trustme
import urllib3
from urllib3.exceptions import HTTPError, MaxRetryError, NewConnectionError, ProtocolError, ReadTimeoutError
from urllib3.util import Retry as Urllib3Retry

import seawall
from seawall import Bulkhead, CircuitBreaker, Retry, Wall
from seawall.adapters import twice
from seawall.adapters.urllib3 import attempts, protect
from tests.adapters.served import Served, serving

SHORT, LATE = 0.25, 2.0  # s: as in test_conformance.py


@pytest.fixture
def served() -> Iterator[Served]:
    with serving() as server:
        yield server


@pytest.fixture
def wall() -> Wall:
    wall = Wall()
    wall.target("CORE", breaker=CircuitBreaker(9))
    return wall


def manager(wall: Wall, **settings: Any) -> Any:
    return protect(urllib3.PoolManager(**settings), wall, target="CORE")


def again(wall: Wall, **more: Any) -> Wall:
    wall.target("CORE", retry=Retry(3, base_delay=0.001, retry_budget=None), breaker=CircuitBreaker(9), **more)
    return wall


def counts(wall: Wall) -> tuple[int, int, int]:
    """Calls running and completed, and the breaker's failures in a row."""
    now = wall["CORE"].snapshot()
    assert now.bulkhead is not None
    assert now.breaker is not None
    return now.bulkhead.in_flight, now.bulkhead.completed, now.breaker.failures


@contextlib.contextmanager
def listening(talk: Callable[[socket.socket], object], backlog: int = 5) -> Iterator[int]:
    """A server by its port: talks to one connection after the other, in a thread."""
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError):
                sock, _ = listener.accept()
                with sock:
                    sock.settimeout(10)
                    talk(sock)

    with socket.create_server(("127.0.0.1", 0), backlog=backlog) as listener:
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        yield port
        stop.set()
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        thread.join(15)


def saying(*parts: bytes) -> Callable[[socket.socket], None]:
    """Takes a request, says that, and closes."""

    def talk(sock: socket.socket) -> None:
        if sock.recv(65536):
            for part in parts:
                sock.sendall(part)

    return talk


def mute(sock: socket.socket) -> None:
    """Reads what comes, and says nothing."""
    while sock.recv(65536):
        pass


# -- urllib3's own retries
@pytest.mark.parametrize("path", ["/reset", "/status?is=503&retry_after=600"])
def test_urllib3_itself_repeats_nothing_unless_it_was_told_to(wall: Wall, served: Served, path: str) -> None:
    http = manager(wall)
    with contextlib.suppress(MaxRetryError):
        assert http.request("GET", served.url + path).status == 503
    assert len(served.asked) == 1
    http.clear()


def test_what_it_was_told_to_repeat_it_repeats_and_that_is_said_once(
    wall: Wall, served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    twice._said.clear()
    http = manager(wall, retries=Urllib3Retry(2, status_forcelist=[503]))
    for _ in range(2):
        with caplog.at_level(logging.WARNING, "seawall"), pytest.raises(MaxRetryError, match="too many 503"):
            http.request("GET", f"{served.url}/status?is=503")
    assert len(served.asked) == 6
    assert len([line for line in caplog.messages if "makes up to 3 attempts" in line]) == 1
    assert counts(wall)[:2] == (0, 2)  # to Seawall they are one call
    http.clear()


@pytest.mark.parametrize(
    ("given", "most"),
    [
        (False, 1), (0, 1), (True, 2), (4, 5), (Urllib3Retry(3), 4), (Urllib3Retry(0, connect=5), 1),
        (Urllib3Retry(9, connect=1, read=2, status=0, other=0), 3), (Urllib3Retry(None, connect=2), 3),
        (Urllib3Retry(0, read=False), 1),
    ],
)  # fmt: skip
def test_how_often_urllib3_tries_is_read_from_what_it_was_given(given: Any, most: int) -> None:
    assert attempts(given) == most


def test_an_error_is_the_one_that_urllib3_raises(wall: Wall, served: Served) -> None:
    http = manager(wall)
    with pytest.raises(MaxRetryError) as refused:
        http.request("GET", "http://127.0.0.1:1/")
    assert isinstance(refused.value.reason, NewConnectionError)
    with pytest.raises(NewConnectionError):
        http.request("GET", "http://127.0.0.1:1/", retries=False)
    with pytest.raises(ProtocolError):
        http.request("POST", f"{served.url}/reset")
    http.clear()


def test_a_retry_after_of_a_redirect_is_not_slept(wall: Wall) -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: /\r\nRetry-After: 60\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    with listening(saying(moved)) as port, urllib3.HTTPConnectionPool("127.0.0.1", port) as pool:
        began = time.monotonic()
        with pytest.raises(MaxRetryError, match="too many redirects"):
            protect(pool, wall, target="CORE").request("GET", "/")
        assert time.monotonic() - began < 30


# -- pools
def test_a_pool_alone_is_protected_and_follows_redirects_in_one_call(wall: Wall, served: Served) -> None:
    with urllib3.HTTPConnectionPool(served.host) as pool:
        assert protect(pool, wall, target="CORE") is pool
        response = pool.request("GET", "/redirect?to=/drip?ms=1%26parts=20", preload_content=False)
        assert (served.paths(), counts(wall)) == (["/redirect", "/drip"], (1, 0, 0))
        assert (response.read(), counts(wall)) == (b"x" * 20, (0, 1, 0))
        assert type(protect(pool, wall)) is type(pool)


def test_a_manager_that_was_used_before_makes_its_pools_anew(wall: Wall, served: Served) -> None:
    http = urllib3.PoolManager()
    http.request("GET", f"{served.url}/ok")
    protect(http, wall, target="CORE")
    http.request("GET", f"{served.url}/ok")
    assert counts(wall)[:2] == (0, 1)
    http.clear()


def test_something_else_is_refused() -> None:
    with pytest.raises(TypeError, match="takes a PoolManager"):
        protect(object(), Wall())  # type: ignore[type-var]


def test_by_way_of_a_proxy_the_target_is_the_host_behind_it(served: Served) -> None:
    wall = Wall()
    http = protect(urllib3.ProxyManager(served.url), wall)
    assert http.request("GET", "http://core.internal:81/ok?bytes=3").data == b"xxx"
    assert [target.name for target in wall] == ["core.internal:81"]
    http.clear()


# -- headers
def test_the_callers_headers_stay_as_they_are(wall: Wall, served: Served) -> None:
    http, mine = manager(wall, headers={"X-Pool": "p"}), {"x-budget-ms": "70", "X-Mine": "1"}
    with seawall.budget(5.0):
        http.request("GET", f"{served.url}/ok", headers=mine)
        http.request("GET", f"{served.url}/ok")
    assert mine == {"x-budget-ms": "70", "X-Mine": "1"}
    first, second = (asked.headers for asked in served.asked)
    assert (first["x-budget-ms"], first["x-mine"], second["x-pool"]) == ("70", "1", "p")
    assert 0 < int(second["x-budget-ms"]) <= 5000
    http.clear()


# -- time
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


# -- failed answers that are kept, read with preload_content=False
HEAD = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"


@pytest.mark.parametrize("amt", [None, 7, 100_000])
@pytest.mark.parametrize(
    ("answer", "body", "times"),
    [
        ((HEAD + b"Content-Length: 6\r\n\r\nbroken",), b"broken", 3),
        ((HEAD + b"\r\nunknown length",), b"unknown length", 3),
        ((HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nbro\r\n3\r\nken\r\n0\r\n\r\n",), b"broken", 3),
        ((HEAD + b"Content-Length: 0\r\n\r\n",), b"", 3),
        ((HEAD + b"\r\n", b"y" * 200_000), b"y" * 200_000, 1),
        ((HEAD + b"Content-Length: 200000\r\n\r\n", b"y" * 200_000), b"y" * 200_000, 1),
        ((HEAD + b"Transfer-Encoding: chunked\r\n\r\n30D40\r\n" + b"y" * 200_000 + b"\r\n0\r\n\r\n",), b"y" * 200_000, 1),
    ],
    ids=["length", "close", "chunked", "empty", "close long", "length long", "chunked long"],
)  # fmt: skip
def test_a_failed_answer_reads_as_if_nobody_had_looked(
    answer: tuple[bytes, ...], body: bytes, times: int, amt: int | None
) -> None:
    wall, asked = again(Wall()), []

    def talk(sock: socket.socket) -> None:
        asked.append(1)
        saying(*answer)(sock)

    with listening(talk) as port:
        http = manager(wall)
        response = http.request("GET", f"http://127.0.0.1:{port}/", preload_content=False)
        assert (response.status, response.reason, response.headers["Connection"]) == (503, "Service Unavailable", "close")
        assert b"".join(response.stream(amt)) == body
        assert (response.read(), response.closed, len(asked), counts(wall)) == (b"", True, times, (0, times, times))
        http.clear()


def test_a_failed_answer_that_breaks_off_shows_what_came_and_then_the_error() -> None:
    wall = again(Wall())
    with listening(saying(HEAD + b"Content-Length: 20000\r\n\r\n" + b"y" * 10_000)) as port:
        http = manager(wall)
        response = http.request("GET", f"http://127.0.0.1:{port}/", preload_content=False)
        parts = response.stream(1000)
        assert b"".join(next(parts) for _ in range(8)) == b"y" * 8000
        with pytest.raises(ProtocolError):
            list(parts)
        assert counts(wall) == (0, 1, 1)
        http.clear()


def test_a_failed_answer_that_is_kept_is_decoded_and_its_connection_used_again() -> None:
    packed = gzip.compress(b"sorry" * 10)
    whole = b"HTTP/1.1 503 No\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s" % (len(packed), packed)
    wall, seen = again(Wall()), []

    def talk(sock: socket.socket) -> None:
        seen.append(sock)
        for _ in range(6):
            sock.recv(65536)
            sock.sendall(whole)

    with listening(talk) as port:
        http = manager(wall)
        response = http.request("GET", f"http://127.0.0.1:{port}/", preload_content=False)
        assert (response.read(), len(seen)) == (b"sorry" * 10, 1)
        assert http.request("GET", f"http://127.0.0.1:{port}/").data == b"sorry" * 10
        http.clear()


def test_a_kept_answer_past_its_time_ends_in_our_error() -> None:
    wall = again(Wall())
    ready = threading.Event()

    def talk(sock: socket.socket) -> None:
        saying(HEAD + b"Content-Length: 20000\r\n\r\n" + b"y" * 9000)(sock)
        ready.wait(10)

    with listening(talk) as port:
        http = manager(wall)
        with seawall.budget(SHORT):
            response = http.request("GET", f"http://127.0.0.1:{port}/", preload_content=False)
        assert response.read(100) == b"y" * 100
        with pytest.raises(seawall.DeadlineExceededError):
            response.read()
        ready.set()
        http.clear()


def test_a_failed_answer_may_be_dropped() -> None:
    wall = again(Wall(), bulkhead=Bulkhead(1))
    with listening(saying(HEAD + b"\r\n", b"y" * 200_000)) as port:
        http = manager(wall)
        for _ in range(2):
            response = http.request("GET", f"http://127.0.0.1:{port}/", preload_content=False)
            assert counts(wall)[0] == 1
            del response
            assert counts(wall)[0] == 0
        http.clear()


def test_an_answer_to_head_has_no_body_to_wait_for(served: Served) -> None:
    wall = again(Wall())
    answer = HEAD + b"Content-Length: 5\r\n\r\n"
    with listening(saying(answer)) as port:
        http = manager(wall)
        for preload in (True, False):
            response = http.request("HEAD", f"http://127.0.0.1:{port}/", preload_content=preload)
            assert (response.status, response.read()) == (503, b"")
        assert counts(wall) == (0, 6, 6)
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
