"""The admin port tells whether the hub lives and takes work, and shows every target; no client of it can do harm."""

from __future__ import annotations

import asyncio
import itertools
import logging
import socket
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from seawall.hub import admin
from seawall.hub.address import Address
from seawall.hub.admin import PATHS
from seawall.hub.listen import open_listener
from tests.adminport import NOWHERE, Asker, admin_port, ask, asker, targets

Run: TypeAlias = "Callable[[Coroutine[Any, Any, None]], None]"


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a test on asyncio's own loop, and on the one the hub uses where it can; each within a bound."""
    factory = pytest.importorskip("uvloop").new_event_loop if request.param == "uvloop" else None

    def run(test: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(asyncio.wait_for(test, 30))

    return run


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


def test_it_says_that_it_lives_and_whether_it_takes_work(run: Run, tmp_path: Path) -> None:
    async def test() -> None:
        async with admin_port(tmp_path) as (hub, door):
            assert (await ask(door, "/livez")).json() == {"live": True}
            assert (await ask(door, "/readyz?verbose")).json() == {"ready": True}
            hub.ready = False
            assert (await ask(door, "/livez")).status == 200
            answer = await ask(door, "/readyz")
            assert (answer.status, answer.json()) == (503, {"ready": False})

    run(test())


@pytest.mark.parametrize(("path", "method", "host", "status"), [
    ("/livez", "GET", "localhost", 200), ("/livez", "HEAD", "localhost", 200), ("/readyz", "GET", "localhost", 200),
    ("/api/v1/snapshot", "GET", "localhost", 200), ("/metrics", "GET", "localhost", 200),
    ("/", "GET", "localhost", 404), ("/livez/", "GET", "localhost", 404), ("/metrics", "POST", "localhost", 405),
    ("/livez", "OPTIONS", "localhost", 405), ("/livez", "GET", "foreign.example", 421), ("/livez", "GET", "", 400),
])  # fmt: skip
def test_no_answer_is_kept_or_guessed_at_by_a_browser(
    run: Run, tmp_path: Path, path: str, method: str, host: str, status: int
) -> None:
    async def test() -> None:
        async with admin_port(tmp_path) as (_, door):
            answer = await ask(door, path, method, host=host)
            assert answer.status == status
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cache-control"] == "no-store"
            assert ("x-seawall-code" in answer.headers) == (status != 200)

    run(test())


def test_what_is_not_there_is_answered_with_what_is(run: Run, tmp_path: Path) -> None:
    async def test() -> None:
        async with admin_port(tmp_path) as (_, door):
            missing, posted = await ask(door, "/nothing"), await ask(door, "/metrics", "POST")
            assert missing.headers["content-type"] == posted.headers["content-type"] == "application/problem+json"
            assert missing.json()["paths"] == list(PATHS)
            assert (missing.json()["status"], posted.json()["status"]) == (404, 405)
            assert posted.headers["allow"] == "GET, HEAD"
            for path in PATHS:
                assert (await ask(door, path)).status == 200

    run(test())


def test_a_connection_serves_many_requests_and_head_is_get_without_body(run: Run, tmp_path: Path) -> None:
    async def test() -> None:
        async with admin_port(tmp_path) as (_, door), asker(door) as one:
            for path in ("/nothing", *PATHS):
                got, head = await one.ask(path), await one.ask(path, "HEAD")
                assert (head.status, head.body) == (got.status, b"")
                assert head.headers["content-type"] == got.headers["content-type"]
                assert int(head.headers["content-length"]) == pytest.approx(len(got.body), abs=40)  # times differ
            assert len(door.clients) == 1

    run(test())


def test_requests_sent_ahead_are_answered_in_order(run: Run, tmp_path: Path) -> None:
    async def test() -> None:
        async with admin_port(tmp_path) as (_, door), asker(door) as one:
            paths = ["/livez", "/metrics", "/readyz", "/api/v1/snapshot", "/nothing", "/livez"] * 30
            one.send("".join(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n" for path in paths).encode())
            starts = {"/livez": b'{"live"', "/readyz": b'{"ready"', "/nothing": b'{"code": "E4', "/metrics": b"# HELP"}
            for path in paths:
                assert (await one.answer()).body.startswith(starts.get(path, b'{"schema"'))

    run(test())


@pytest.mark.parametrize("request_", [
    b"GET /livez HTTP/1.0\r\nHost: localhost\r\n\r\n",
    b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    b"GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
])  # fmt: skip
def test_a_client_that_wants_no_more_or_sends_a_body_is_answered_and_let_go(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request_: bytes
) -> None:
    monkeypatch.setattr(admin, "LINGER_SECONDS", 500.0)  # so that only the hub's own end of the connection can end it

    async def test() -> None:
        async with admin_port(tmp_path) as (_, door), asker(door) as one:
            one.send(request_)
            answer = await one.answer()
            assert (answer.status, answer.headers["connection"]) == (200, "close")
            assert await one.ended()

    run(test())


def test_a_client_that_closes_its_side_after_the_request_gets_its_page(run: Run, tmp_path: Path) -> None:
    async def test() -> None:
        async with admin_port(tmp_path) as (_, door), asker(door) as one:
            one.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            one.writer.write_eof()
            assert (await one.answer()).status == 200
            assert await one.ended()

    run(test())


@pytest.mark.parametrize(("sent", "limit"), [
    (b"", "idle_timeout"), (b"GET /livez HTTP/1.1\r\nHost: loc", "head_timeout"), (b"\r\n", "head_timeout"),
])  # fmt: skip
def test_a_client_that_sends_no_request_or_half_a_head_is_not_waited_for(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes, limit: str
) -> None:
    """Nor does it keep the connection by leaving its own side open after the answer."""
    monkeypatch.setattr(admin, "LINGER_SECONDS", 0.05)
    limits: dict[str, Any] = {"idle_timeout": 500.0, limit: 0.1}

    async def test() -> None:
        async with admin_port(tmp_path, **limits) as (_, door), asker(door) as one:
            one.send(sent)
            if sent:
                assert (await one.answer()).status == 408
            assert await one.ended()
            await until(lambda: not door.clients)

    run(test())


@pytest.mark.parametrize("end", [b"", b"\r\n\r\n"])
def test_a_head_without_end_and_a_long_one_are_cut_off(run: Run, tmp_path: Path, end: bytes) -> None:
    async def test() -> None:
        async with admin_port(tmp_path, max_head=1024) as (_, door), asker(door) as one:
            one.send(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 2000 + end)
            answer = await one.answer()
            assert (answer.status, answer.headers["x-seawall-code"]) == (431, "E431")
            assert await one.ended()

    run(test())


def test_connections_left_open_do_not_keep_a_health_check_out(run: Run, tmp_path: Path) -> None:
    async def test() -> None:
        async with admin_port(tmp_path) as (_, door):
            left = [Asker(*await asyncio.open_connection("127.0.0.1", int(door.name.rpartition(":")[2])))
                    for _ in range(3 * admin.MOST)]  # fmt: skip
            for number, one in enumerate(left):
                one.send(b"GET /half" if number % 2 else b"")
            assert (await ask(door, "/livez")).status == 200
            assert len(door.clients) <= admin.MOST
            for one in left:
                await one.close()

    run(test())


def small_buffers() -> socket.socket:
    """A listening socket whose connections hold little, so that an answer nobody reads stays with the hub."""
    sock = open_listener(NOWHERE)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
    return sock


async def slow_reader(port: int, requests: int) -> socket.socket:
    """A client that asks for the metrics so often, and reads nothing."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    sock.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(sock, ("127.0.0.1", port))
    await loop.sock_sendall(sock, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * requests)
    return sock


@pytest.mark.parametrize("requests", [1, 20])
def test_who_does_not_read_the_answer_is_let_go_and_gets_no_second_page(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, requests: int
) -> None:
    made = []

    def counted(hub: Any) -> Iterator[bytes]:
        made.append(hub)
        yield bytes(500_000)

    async def test() -> None:
        monkeypatch.setitem(admin._PAGES, b"/metrics", (b"text/plain", counted))
        async with admin_port(tmp_path, sock=small_buffers(), body_gap=0.1, idle_timeout=0.2) as (_, door):
            with await slow_reader(int(door.name.rpartition(":")[2]), requests) as sock:
                await until(lambda: made)
                sock.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
                await until(lambda: not door.clients)
            assert len(made) == 1

    run(test())


def test_who_reads_slowly_gets_it_all(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        monkeypatch.setitem(admin._PAGES, b"/metrics", (b"text/plain", lambda hub: iter([bytes(200_000)])))
        async with admin_port(tmp_path, sock=small_buffers(), body_gap=0.4) as (_, door):
            loop = asyncio.get_running_loop()
            with await slow_reader(int(door.name.rpartition(":")[2]), 3) as sock:
                got, began = 0, loop.time()
                while got < 3 * 200_000:
                    await asyncio.sleep(0.02)
                    received = await loop.sock_recv(sock, 8192)
                    assert received, f"cut off after {got} bytes and {loop.time() - began} s"
                    got += received.count(0)

    run(test())


def test_a_page_that_cannot_be_made_is_said_and_logged_and_the_port_goes_on(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(hub: Any) -> Iterator[bytes]:
        yield b"half a page"
        raise ZeroDivisionError

    async def test() -> None:
        monkeypatch.setitem(admin._PAGES, b"/metrics", (b"text/plain", broken))
        async with admin_port(tmp_path) as (_, door), asker(door) as one:
            answer = await one.ask("/metrics")
            assert (answer.status, answer.json()["code"]) == (500, "E999")
            assert (await one.ask("/livez")).status == 200

    with caplog.at_level(logging.ERROR, "seawall.hub"):
        run(test())
    assert "ZeroDivisionError" in caplog.text


def test_calls_get_their_turn_between_the_steps_of_a_page_and_pages_are_made_one_at_a_time(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no time allowed a step, each target is a step of its own, with a turn of the loop between them."""
    monkeypatch.setattr(admin, "STEP", 0.0)
    turn = most = 0
    making: set[str] = set()
    made_at: dict[str, set[int]] = {}

    def watched(name: str, pieces: Callable[[Any], Iterator[bytes]]) -> Callable[[Any], Iterator[bytes]]:
        def watch(hub: Any) -> Iterator[bytes]:
            nonlocal most
            making.add(name)
            for piece in pieces(hub):
                most = max(most, len(making))
                made_at.setdefault(name, set()).add(turn)
                yield piece
            making.discard(name)

        return watch

    async def tick() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    async def test() -> None:
        async with admin_port(tmp_path, targets(300)) as (_, door):
            for path, (content_type, pieces) in list(admin._PAGES.items()):
                monkeypatch.setitem(admin._PAGES, path, (content_type, watched(path.decode(), pieces)))
            ticking = asyncio.ensure_future(tick())
            shown, taken = await asyncio.gather(ask(door, "/metrics"), ask(door, "/api/v1/snapshot"))
            ticking.cancel()
            assert shown.body.count(b"seawall_bulkhead_limit{") == len(taken.json()["targets"]) == 300

    run(test())
    assert min(len(turns) for turns in made_at.values()) >= 300
    assert most == 1


def test_a_page_in_the_making_is_given_up_when_the_port_closes(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin, "STEP", 0.0)
    monkeypatch.setitem(admin._PAGES, b"/metrics", (b"text/plain", lambda hub: itertools.repeat(b"")))

    async def test() -> None:
        async with admin_port(tmp_path) as (_, door), asker(door) as one:
            one.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await until(door.one_page.locked)
            door.close()
            assert await one.ended()
            await until(lambda: not door.one_page.locked())

    run(test())


def test_closing_ends_every_connection_and_frees_the_port(run: Run, tmp_path: Path) -> None:
    async def test() -> None:
        async with admin_port(tmp_path) as (_, door), asker(door) as one:
            await one.ask("/livez")
            port = int(door.name.rpartition(":")[2])
            door.close()
            door.close()
            assert await one.ended()
            await until(lambda: not door.clients)
            open_listener(Address(host="127.0.0.1", port=port)).close()

    run(test())
