"""Clients at the door: idle ones, too many of them, none left to take them with, and those that do not read goodbye."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import time
from functools import partial
from pathlib import Path

import pytest

from seawall.hub.client import HEAD
from seawall.hub.server import SETTLED, Hub
from tests.hub.bed import (
    LOOPS,
    Caller,
    HubBed,
    RawConnection,
    answering,
    ask,
    hub_bed,
    hub_process,
    raw_server,
    response,
)  # fmt: skip

OK = response(200, b"ok")
GET = b"GET /CORE/x HTTP/1.1\r\nHost: h\r\n\r\n"
NOBODY = "CORE=http://127.0.0.1:9"


def clients(bed: HubBed) -> int:
    return bed.run(lambda hub: len(hub.clients))


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("asked", [False, True], ids=["said nothing", "was answered"])
def test_a_client_that_asks_nothing_is_let_go_after_the_idle_timeout(asked: bool, loop: str) -> None:
    with hub_bed(NOBODY, loop=loop, idle_timeout="0.3") as bed, Caller(bed.port) as caller:
        if asked:
            assert caller.ask("GET", "/NONE").status == 404
        began = time.monotonic()
        assert caller.ended()
        assert time.monotonic() - began > 0.2


def test_a_client_that_asks_now_and_then_is_not() -> None:
    with hub_bed(NOBODY, loop="uvloop", idle_timeout="1") as bed, Caller(bed.port) as caller:
        for _ in range(6):
            time.sleep(0.25)
            assert caller.ask("GET", "/NONE").status == 404


# -- too many


def has_counted(codes: dict[str, int], hub: Hub) -> bool:
    return hub.backends["CORE"].codes == codes


def settled(hub: Hub) -> bool:
    """Whether every client has been idle for long enough to be asked to go."""
    latest = hub.now() + hub.settings.idle_timeout - SETTLED
    return all(client.state == HEAD and client.due < latest for client in hub.clients)


@pytest.mark.parametrize("loop", LOOPS)
def test_at_the_cap_the_client_that_has_been_idle_longest_goes(loop: str) -> None:
    with hub_bed(NOBODY, loop=loop, max_connections="3") as bed, contextlib.ExitStack() as stack:
        callers = [stack.enter_context(Caller(bed.port)) for _ in range(3)]
        for caller in (callers[2], callers[0], callers[1]):
            assert caller.ask("GET", "/NONE").status == 404
            time.sleep(0.02)
        assert clients(bed) == 3
        bed.wait_for(settled)
        newcomer = stack.enter_context(Caller(bed.port))
        assert newcomer.ask("GET", "/NONE").status == 404
        assert callers[2].ended()
        assert [caller.ask("GET", "/NONE").status for caller in (callers[0], callers[1], newcomer)] == [404] * 3
        assert clients(bed) == 3


def test_at_the_cap_nobody_goes_as_long_as_nobody_comes() -> None:
    with hub_bed(NOBODY, loop="uvloop", max_connections="1") as bed, Caller(bed.port) as only:
        assert only.ask("GET", "/NONE").status == 404
        bed.wait_for(settled)
        time.sleep(1.1)  # the hub looks around once a second
        assert only.ask("GET", "/NONE").status == 404


@pytest.mark.parametrize("loop", LOOPS)
def test_at_the_cap_a_newcomer_waits_until_somebody_is_idle(loop: str) -> None:
    """All are busy when it comes: nobody is dropped, and it is let in when the first of them has been answered."""
    def script(connection: RawConnection) -> None:
        if b" /wait" in connection.read_request():
            connection.hang()
        connection.send(OK)

    target = "read=60,budget-ms=60000"
    with raw_server(script) as server, contextlib.ExitStack() as stack:
        bed = stack.enter_context(hub_bed(f"CORE={server.url},{target}", loop=loop, max_connections="2"))
        first, second = (stack.enter_context(Caller(bed.port)) for _ in range(2))
        first.begin("GET", "/CORE/wait")
        second.begin("PUT", "/CORE/y", None, {"Content-Length": "3"})
        bed.wait_for(lambda hub: len([c for c in hub.clients if c.exchange]) == 2)
        newcomer = stack.enter_context(Caller(bed.port))
        newcomer.begin("GET", "/NONE")
        time.sleep(0.1)
        assert clients(bed) == 2
        second.send(b"abc")
        assert second.answer().body == b"ok"
        assert newcomer.answer().status == 404


@pytest.mark.parametrize("loop", LOOPS)
def test_a_client_that_reads_nothing_cannot_hold_its_place_at_the_cap(loop: str) -> None:
    """Its answers are still on their way, and will be for ever; the next one is let in all the same."""
    with raw_server(answering(response(200, b"z" * 30_000))) as server, contextlib.ExitStack() as stack:
        bed = stack.enter_context(hub_bed(f"CORE={server.url}", loop=loop, max_connections="1"))
        sock = stack.enter_context(reluctant(bed.port, 4096))
        bed.wait_for(lambda hub: hub.clients)
        for number in range(1, 1000):
            sock.sendall(GET)
            answered = {"0000": number}
            bed.wait_for(partial(has_counted, answered))
            if bed.run(lambda hub: next(iter(hub.clients)).blocked):
                break
        bed.wait_for(settled)
        [victim] = bed.run(lambda hub: list(hub.clients))
        assert ask(bed.port, "GET", "/NONE").status == 404
        bed.wait_for(lambda hub: victim not in hub.clients)


def reluctant(port: int, window: int = 65536) -> socket.socket:
    """A connection with a small window, so that little is in flight when nobody reads."""
    sock = socket.socket()
    sock.settimeout(20)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    sock.connect(("127.0.0.1", port))
    return sock


# -- no descriptors

@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="the limit of a running process cannot be set here")
def test_without_descriptors_clients_wait_and_none_is_dropped(tmp_path: Path) -> None:
    words = ["--target", NOBODY, "--health-path", "/health"]
    with hub_process(tmp_path, *words) as hub, contextlib.ExitStack() as stack:
        assert ask(hub.port, "GET", "/health").status == 200
        room = len(os.listdir(f"/proc/{hub.process.pid}/fd")) + 5
        resource.prlimit(hub.process.pid, resource.RLIMIT_NOFILE, (room, room))
        callers = [Caller(hub.port) for _ in range(20)]
        for caller in callers:
            caller.begin("GET", "/health")
        for caller in callers:  # one leaves, the next is taken up
            assert caller.answer().status == 200
            caller.close()
        stack.callback(hub.process.terminate)
        assert hub.said().count("no descriptors left") >= 1
        assert "Traceback" not in hub.said()


# -- the end of an answer

@pytest.mark.parametrize(("size", "step"), [(524_288, 6144), (64_000, 1024)], ids=["while it comes", "at its end"])
def test_a_slow_reader_gets_the_whole_of_its_last_answer(size: int, step: int) -> None:
    """It takes longer than the hub waits for a client that takes nothing more, as long as it does take something."""
    body = bytes(range(256)) * (size // 256)
    with raw_server(answering(response(200, body))) as server:
        with hub_bed(f"CORE={server.url}", loop="uvloop", body_gap="0.4") as bed, reluctant(bed.port, 8192) as sock:
            bed.wait_for(lambda hub: hub.clients)
            bed.run(lambda hub: next(iter(hub.clients)).transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_SNDBUF, 4608))  # so that what is not read waits in the hub
            sock.sendall(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            got = b""
            while piece := sock.recv(step):
                got += piece
                time.sleep(0.02)
            assert got.endswith(b"\r\n\r\n" + body)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("size", [300, 30_000, 10_000_000])
@pytest.mark.parametrize("close", [False, True])
def test_a_client_that_never_reads_its_answers_is_let_go(close: bool, size: int, loop: str) -> None:
    """Idle, in the middle of an answer, or at the end of its last one."""
    with raw_server(answering(response(200, b"z" * size))) as server:
        with hub_bed(f"CORE={server.url}", loop=loop, body_gap="0.3", idle_timeout="0.3") as bed:
            with reluctant(bed.port, 4096) as sock:
                count = 20_000_000 // size if size > 1000 else 1
                sock.sendall(GET * min(count, 500))
                if close:
                    sock.sendall(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
                bed.wait_for(lambda hub: hub.clients or hub.backends["CORE"].codes)
                bed.wait_for(lambda hub: not hub.clients)
