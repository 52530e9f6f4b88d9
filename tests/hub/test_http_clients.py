"""Clients that leave, dawdle, ask too much or understand little: each gets what it deserves, and costs nobody else."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable

import pytest

from seawall.hub import phases
from tests.hub.bed import (
    LOOPS,
    Caller,
    HubBed,
    RawConnection,
    answering,
    ask,
    black_hole,
    hub_bed,
    raw_server,
    response,
    talk,
)
from tests.hub.framing import assert_one_framing

OK = response(200, b"ok")
PATIENT = "read=60,connect=60,budget-ms=600000,body-gap=60"
GET = b"GET /CORE/x HTTP/1.1\r\nHost: h\r\n\r\n"
PUT = b"PUT /CORE/x HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n"


def wait_for_phase(bed: HubBed, phase: int) -> None:
    bed.wait_for(lambda hub: [c for c in hub.clients if getattr(c.exchange, "phase", None) == phase])


def hang(connection: RawConnection) -> None:
    connection.hang()


def stream(connection: RawConnection) -> None:
    connection.read_request()
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome")
    connection.hang()


def switch(connection: RawConnection) -> None:
    connection.read_request()
    connection.send(b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
    connection.hang()


# -- leaving

VANISHING: dict[str, tuple[int, bytes, Callable[[RawConnection], None]]] = {
    "receiving": (phases.RECEIVING, PUT % 100 + b"x" * 50, hang),
    "sending": (phases.SENDING, PUT % 50000 + b"x" * 20000, hang),
    "waiting": (phases.WAITING, GET, hang),
    "streaming": (phases.STREAMING, GET, stream),
    "tunnel": (phases.TUNNEL, b"GET /CORE/x HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", switch),
}


def leave(caller: Caller, how: str) -> None:
    if how == "reset":
        caller.reset()
    else:
        caller.close()


@pytest.mark.req("HUB-4")
@pytest.mark.parametrize(("phase", "how", "loop"), [
    *((phase, how, "uvloop") for phase in VANISHING for how in ("close", "reset")),
    *((phase, "close", "asyncio") for phase in VANISHING),
])
def test_a_client_that_leaves_keeps_no_place(phase: str, how: str, loop: str) -> None:
    """No limit ends these calls: all are far longer than the test."""
    number, sent, script = VANISHING[phase]
    with raw_server(script) as server, hub_bed(f"CORE={server.url},{PATIENT}", loop=loop) as bed:
        caller = Caller(bed.port)
        caller.send(sent)
        wait_for_phase(bed, number)
        assert bed.in_flight() == (phase != "receiving")
        leave(caller, how)
        bed.wait_for(lambda hub: not hub.clients)
        assert bed.codes() == {"0000" if phase == "tunnel" and how == "close" else "C499": 1}


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_client_that_leaves_the_line_keeps_no_place_in_it(how: str) -> None:
    with raw_server(hang) as server, hub_bed(f"CORE={server.url},max-inflight=1,max-queue=2,max-wait=60,{PATIENT}") as bed:
        first, second = Caller(bed.port), Caller(bed.port)
        first.send(GET)
        wait_for_phase(bed, phases.WAITING)
        second.send(GET)
        wait_for_phase(bed, phases.QUEUED)
        leave(second, how)
        bed.wait_for(lambda hub: hub.backends["CORE"].bulkhead.waiting == 0)
        leave(first, how)


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_client_that_leaves_while_connecting_ends_the_attempt(how: str) -> None:
    with black_hole() as port, hub_bed(f"CORE=http://127.0.0.1:{port},{PATIENT}", loop="uvloop") as bed:
        caller = Caller(bed.port)
        caller.send(GET)
        wait_for_phase(bed, phases.CONNECTING)
        leave(caller, how)


@pytest.mark.parametrize("sent", [b"", b"GET /CORE", b"GET /CORE/x HTTP/1.1\r\nHost: h\r\n"])
def test_a_client_that_leaves_in_its_head_is_forgotten(sent: bytes) -> None:
    with hub_bed("CORE=http://127.0.0.1:9", loop="uvloop") as bed:
        caller = Caller(bed.port)
        caller.send(sent)
        bed.wait_for(lambda hub: hub.clients)
        caller.close()
        bed.wait_for(lambda hub: not hub.clients)
        assert bed.codes() == {}


@pytest.mark.parametrize("loop", LOOPS)
def test_a_client_with_its_side_closed_gets_its_answers(loop: str) -> None:
    with raw_server(answering(OK)) as server, hub_bed(f"CORE={server.url}", loop=loop) as bed:
        with Caller(bed.port) as caller:
            caller.send(GET * 3)
            caller.sock.shutdown(socket.SHUT_WR)
            assert [caller.answer().body for _ in range(3)] == [b"ok"] * 3
            assert caller.ended()


def test_a_download_to_a_client_with_its_side_closed_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """For longer than the moment after which a client that closed its side is taken to have left."""
    monkeypatch.setattr("seawall.hub.client.GRACE", 0.6)

    def script(connection: RawConnection) -> None:
        connection.read_request()
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
        connection.drip(b"d" * 10, 0.08)

    with raw_server(script) as server, hub_bed(f"CORE={server.url},{PATIENT}", loop="uvloop") as bed:
        with Caller(bed.port) as caller:
            caller.send(GET)
            caller.sock.shutdown(socket.SHUT_WR)
            assert caller.answer().body == b"d" * 10


@pytest.mark.parametrize("rest", [b"GET /CORE/y HTT", PUT % 5 + b"xx", b"GET / HTTP/1.1\r\n\r\n"])
def test_behind_the_last_whole_request_nothing_is_waited_for(rest: bytes) -> None:
    """The client has closed its side in the middle of its second request."""
    with raw_server(answering(OK)) as server, hub_bed(f"CORE={server.url},{PATIENT}", loop="uvloop") as bed:
        with Caller(bed.port) as caller:
            caller.send(GET + rest)
            caller.sock.shutdown(socket.SHUT_WR)
            assert caller.answer().body == b"ok"
            while caller.more():
                pass
        assert server.requests[0].startswith(b"GET /x ")
        assert len(server.requests) == 1


# -- sending slowly

@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("gap", [None, 0.02])
def test_a_head_that_does_not_come_to_its_end_is_not_waited_for(gap: float | None, loop: str) -> None:
    """Neither where the client has stopped, nor where it sends a byte now and then."""
    with hub_bed("CORE=http://127.0.0.1:9", loop=loop, head_timeout="0.3") as bed, Caller(bed.port) as caller:
        caller.send(b"GET /CORE/x HTTP/1.1\r\n")
        if gap is not None:
            caller.drip(b"X-A: " + b"a" * 15, gap)
        answer = caller.answer()
        assert (answer.status, answer.code) == (408, "E408")
        assert caller.ended()
        assert bed.run(lambda hub: hub.refused) == {"E408": 1}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("sent", [
    PUT % 100 + b"x" * 10, PUT % 50000 + b"x" * 20000,
    b"PUT /CORE/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe",
], ids=["small", "long", "chunked"])
def test_a_body_that_goes_on_no_more_is_not_waited_for(sent: bytes, loop: str) -> None:
    target = "read=60,budget-ms=60000"
    with raw_server(hang) as server, hub_bed(f"CORE={server.url},{target}", loop=loop, body_gap="0.3") as bed:
        with Caller(bed.port) as caller:
            caller.send(sent)
            answer = caller.answer()
            assert (answer.status, answer.code) == (408, "E408")
            assert answer.headers["connection"] == "close"
            assert caller.ended()


def test_a_slow_sender_of_a_small_body_holds_no_place() -> None:
    with raw_server(answering(OK)) as server, hub_bed(f"CORE={server.url},max-inflight=1", loop="uvloop") as bed:
        with Caller(bed.port) as slow:
            slow.send(PUT % 12000 + b"x" * 11999)
            wait_for_phase(bed, phases.RECEIVING)
            assert bed.in_flight() == 0
            assert ask(bed.port, "GET", "/CORE/x").status == 200
            slow.send(b"x")
            assert slow.answer().status == 200
        assert server.requests[1].endswith(b"x" * 12000)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_long_body_may_take_longer_than_the_budget_of_the_target(loop: str) -> None:
    """A budget the client did not ask for is the target's time, not the time the client needs to send."""
    with raw_server(answering(OK)) as server, hub_bed(f"CORE={server.url},read=5,budget-ms=300", loop=loop) as bed:
        with Caller(bed.port) as caller:
            caller.send(PUT % 20030 + b"x" * 20000)
            caller.drip(b"y" * 30, 0.02)
            assert caller.answer().body == b"ok"
        assert server.requests[0].endswith(b"x" + b"y" * 30)


@pytest.mark.parametrize("settings", ["budget-scope=all,budget-ms=300", "budget-ms=5000"])
def test_a_budget_that_covers_all_covers_sending_too(settings: str) -> None:
    with raw_server(answering(OK)) as server, hub_bed(f"CORE={server.url},read=0.1,{settings}", loop="uvloop") as bed:
        with Caller(bed.port) as caller:
            own = b"" if "scope" in settings else b"X-Budget-Ms: 300\r\n"
            caller.send((PUT % 20030).replace(b"\r\n\r\n", b"\r\n" + own + b"\r\n") + b"x" * 20000)
            assert caller.answer().code == "E906"


# -- asking too much

@pytest.mark.parametrize("loop", LOOPS)
def test_three_hundred_refused_requests_in_one_packet_are_three_hundred_answers(loop: str) -> None:
    with hub_bed("CORE=http://127.0.0.1:9", loop=loop) as bed, Caller(bed.port) as caller:
        caller.send(b"GET /NONE/x HTTP/1.1\r\nHost: h\r\n\r\n" * 300)
        assert [caller.answer().code for _ in range(300)] == ["E404"] * 300


@pytest.mark.parametrize("loop", LOOPS)
def test_requests_sent_ahead_are_answered_in_order_whoever_answers(loop: str) -> None:
    """The target, the hub itself, and an attempt that fails: mixed, and with bodies between."""
    def script(connection: RawConnection) -> None:
        while request := connection.read_request():
            if b" /break" in request:
                return
            connection.send(response(200, request.split(b" ")[1]))

    with raw_server(script) as server, hub_bed(f"CORE={server.url},fail-threshold=1000", loop=loop) as bed:
        asked = [b"GET /CORE/%d HTTP/1.1\r\nHost: h\r\n\r\n" % number for number in range(200)]
        asked[50::10] = [b"GET /NONE HTTP/1.1\r\nHost: h\r\n\r\n"] * 15
        asked[5::10] = [b"PUT /CORE/put HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\n\r\nGET / \r\n"[:-1]] * 20
        asked[7::50] = [b"POST /CORE/break HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"] * 4
        with Caller(bed.port) as caller:
            caller.send(b"".join(asked))
            for request in asked:
                answer = caller.answer()
                path = request.split(b" ")[1]
                if path == b"/NONE":
                    assert answer.code == "E404"
                elif path == b"/CORE/break":
                    assert answer.code == "E903"
                else:
                    assert answer.body == path.removeprefix(b"/CORE")


@pytest.mark.parametrize("loop", LOOPS)
def test_a_body_in_one_packet_with_the_next_request_ends_where_it_says(loop: str) -> None:
    """Each goes on by a connection of its own: on a kept one a byte too many would make the next request whole again."""
    def script(connection: RawConnection) -> None:
        head, _, body = connection.read_request().partition(b"\r\n\r\n")
        connection.send(response(200, head.split(b"\r\n")[0] + b" " + body, Connection="close"))

    with raw_server(script) as server, hub_bed(f"CORE={server.url}", loop=loop) as bed, Caller(bed.port) as caller:
        caller.send(b"POST /CORE/x HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody" + GET)
        assert [caller.answer().body for _ in range(2)] == [b"POST /x HTTP/1.1 body", b"GET /x HTTP/1.1 "]


@pytest.mark.parametrize("size", [70_000, 100_000, 1_000_000])
def test_a_head_that_is_too_long_is_refused_and_the_answer_arrives(size: int) -> None:
    with hub_bed("CORE=http://127.0.0.1:9", loop="uvloop") as bed, Caller(bed.port) as caller:
        caller.send(b"GET /CORE/x HTTP/1.1\r\nHost: h\r\nX-Long: " + b"a" * size + b"\r\n\r\n")
        answer = caller.answer()
        assert (answer.status, answer.code, answer.headers["connection"]) == (431, "E431", "close")
        assert caller.ended()


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("path", ["/NONE/x", "/tx", "/CORE/x"])
def test_an_early_no_is_not_lost_while_the_client_goes_on_sending(path: str, loop: str) -> None:
    with raw_server(answering(response(413, b"no"))) as server:
        with hub_bed(f"CORE={server.url},max-inflight=1", loop=loop) as bed, Caller(bed.port) as caller:
            bed.run(lambda hub: hub.backends["CORE"].bulkhead.try_acquire())
            caller.send(b"POST %b HTTP/1.1\r\nHost: h\r\nContent-Length: 3000000\r\n\r\n" % path.encode())
            for _ in range(3):
                caller.send(b"x" * 1_000_000)  # all of it is taken, whatever has been said already
            answer = caller.answer()
            assert answer.code == {"/NONE/x": "E404", "/tx": "E413", "/CORE/x": "E905"}[path]
            assert caller.ended()
            bed.run(lambda hub: hub.backends["CORE"].bulkhead.release())


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("size", [10, 20000])
def test_a_broken_chunk_ends_the_request_for_the_target_as_well(size: int, loop: str) -> None:
    """It may have got a part of the body, but never something that looks like the end."""
    got: list[bytes] = []

    def script(connection: RawConnection) -> None:
        with contextlib.suppress(OSError):
            while connection.more():
                pass
        got.append(connection.rest)

    with raw_server(script) as server, hub_bed(f"CORE={server.url},{PATIENT}", loop=loop) as bed:
        with Caller(bed.port) as caller:
            caller.send(b"PUT /CORE/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
            caller.send(b"%x\r\n%b\r\n" % (size, b"x" * size))
            if size > 16384:
                wait_for_phase(bed, phases.SENDING)
            caller.send(b"2\r\nabXX0\r\n\r\n")
            answer = caller.answer()
            assert (answer.status, answer.code) == (400, "E400")
    assert all(b"\r\n0\r\n" not in part for part in got)
    assert len(got) == (size > 16384)


@pytest.mark.parametrize("path", ["/NONE", "/health", "/CORE/x", "/tx"])
def test_a_client_of_1_0_is_never_left_waiting_for_the_end(path: str) -> None:
    """An answer of the hub itself ends the connection, as a client that was not told otherwise expects."""
    with hub_bed("CORE=http://127.0.0.1:9", loop="uvloop", health_path="/health") as bed:
        method = "POST" if path == "/tx" else "GET"
        asked = f"{method} {path} HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n"
        answer = talk(bed.port, asked.encode())
        assert b"\r\nConnection: close\r\n" in answer
        assert_one_framing(answer)


def test_an_expectation_that_is_not_known_is_refused() -> None:
    with hub_bed("CORE=http://127.0.0.1:9", loop="uvloop") as bed:
        answer = ask(bed.port, "PUT", "/CORE/x", b"abc", {"Expect": "the unexpected"})
        assert (answer.status, answer.code) == (417, "E400")


def test_a_request_may_come_byte_by_byte() -> None:
    body = b"\r\n\r\n2\r\nab\r\n0\r\nT: 1\r\n\r\n"
    with raw_server(answering(OK)) as server, hub_bed(f"CORE={server.url}", loop="uvloop") as bed:
        with Caller(bed.port) as caller:
            caller.drip(b"\r\nPUT /CORE/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked" + body, 0)
            assert caller.answer().body == b"ok"
        assert server.requests[0].endswith(body)



def test_a_tunnel_can_be_closed_side_by_side() -> None:
    """Each side's end is passed on, and what the other still says arrives."""
    def script(connection: RawConnection) -> None:
        connection.read_request()
        connection.send(b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
        while connection.more():
            pass
        connection.send(b"got " + connection.rest)

    with raw_server(script) as server, hub_bed(f"CORE={server.url},{PATIENT}", loop="uvloop") as bed:
        with Caller(bed.port) as caller:
            caller.send(VANISHING["tunnel"][1] + b"one")
            caller.upto(b"\r\n\r\n")
            caller.send(b"two")
            caller.sock.shutdown(socket.SHUT_WR)
            assert caller.exactly(10) == b"got onetwo"
            assert caller.ended()
        assert bed.codes() == {"0000": 1}
