"""What is special to urllib3: its own retries, pools without a manager, proxies, and failed answers that are kept."""

from __future__ import annotations

import contextlib
import gzip
import logging
import socket
import threading
import time
from typing import Any

import pytest
import urllib3
from urllib3.exceptions import MaxRetryError, NewConnectionError, ProtocolError
from urllib3.util import Retry as Urllib3Retry

import seawall
from seawall import Bulkhead, Wall
from seawall.adapters import twice
from seawall.adapters.urllib3 import attempts, protect
from tests.adapters.served import Served
from tests.adapters.talking import HEAD, again, counts, listening, manager, saying

SHORT, LATE = 0.25, 2.0  # s: as in test_conformance.py


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


# -- failed answers that are kept, read with preload_content=False
@pytest.mark.parametrize("amt", [None, 7, 100_000])
@pytest.mark.parametrize(
    ("answer", "body"),
    [
        ((HEAD + b"Content-Length: 6\r\n\r\nbroken",), b"broken"),
        ((HEAD + b"\r\nunknown length",), b"unknown length"),
        ((HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nbro\r\n3\r\nken\r\n0\r\n\r\n",), b"broken"),
        ((HEAD + b"Content-Length: 0\r\n\r\n",), b""),
        ((HEAD + b"\r\n", b"y" * 200_000), b"y" * 200_000),
        ((HEAD + b"Content-Length: 200000\r\n\r\n", b"y" * 200_000), b"y" * 200_000),
        ((HEAD + b"Transfer-Encoding: chunked\r\n\r\n30D40\r\n" + b"y" * 200_000 + b"\r\n0\r\n\r\n",), b"y" * 200_000),
    ],
    ids=["length", "close", "chunked", "empty", "close long", "length long", "chunked long"],
)
def test_a_failed_answer_reads_as_if_nobody_had_looked(answer: tuple[bytes, ...], body: bytes, amt: int | None) -> None:
    """It was read, or begun to be, for the sake of a second attempt, which the circuit then refused."""
    wall = again(1)
    with listening(saying(*answer)) as port:
        http = manager(wall)
        response = http.request("GET", f"http://127.0.0.1:{port}/", preload_content=False)
        assert (response.status, response.reason, response.headers["Connection"]) == (503, "Service Unavailable", "close")
        assert b"".join(response.stream(amt)) == body
        assert (response.read(), response.closed, counts(wall)) == (b"", True, (0, 1, 1))
        http.clear()


def test_a_failed_answer_that_breaks_off_shows_what_came_and_then_the_error() -> None:
    wall = again()
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
    wall, seen = again(2), []

    def talk(sock: socket.socket) -> None:
        seen.append(sock)
        for _ in range(2):
            sock.recv(65536)
            sock.sendall(whole)

    with listening(talk) as port:
        http = manager(wall)
        response = http.request("GET", f"http://127.0.0.1:{port}/", preload_content=False)
        assert (response.read(), len(seen), counts(wall)) == (b"sorry" * 10, 1, (0, 2, 2))
        http.clear()


def test_a_kept_answer_past_its_time_ends_in_our_error() -> None:
    wall = again()
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
    wall = again(bulkhead=Bulkhead(1))
    with listening(saying(HEAD + b"\r\n", b"y" * 200_000)) as port:
        http = manager(wall)
        for _ in range(2):
            response = http.request("GET", f"http://127.0.0.1:{port}/", preload_content=False)
            assert counts(wall)[0] == 1
            del response
            assert counts(wall)[0] == 0
        http.clear()


def test_an_answer_to_head_has_no_body_to_wait_for(served: Served) -> None:
    wall = again()
    answer = HEAD + b"Content-Length: 5\r\n\r\n"
    with listening(saying(answer)) as port:
        http = manager(wall)
        for preload in (True, False):
            response = http.request("HEAD", f"http://127.0.0.1:{port}/", preload_content=preload)
            assert (response.status, response.read()) == (503, b"")
        assert counts(wall) == (0, 6, 6)
        http.clear()
