"""F55: an idle target closes pooled connections just as a POST goes out, five times, and the circuit opens."""

from __future__ import annotations

import threading

import pytest

from tests.hub.bed import LOOPS, Caller, HubBed, RawConnection, RawServer, ask, hub_bed, raw_server, response

TX = b'{"target": "CORE", "amount": 5}'


class Closer:
    """A target that answers the first request of each connection, when told to, and closes at the second."""

    def __init__(self, how: str) -> None:
        self.how = how
        self.gate = threading.Event()

    def __call__(self, connection: RawConnection) -> None:
        connection.read_request()
        self.gate.wait(30)
        connection.send(response(200, b"first"))
        connection.read_request()
        if self.how == "reset":
            connection.reset()
        elif self.how != "close":
            connection.send(self.how.encode())


def warm(bed: HubBed, server: RawServer, closer: Closer, count: int) -> None:
    """Have the hub keep so many connections, each of which has answered once."""
    callers = [Caller(bed.port) for _ in range(count)]
    for caller in callers:
        caller.begin("GET", "/CORE/warm")
    bed.wait_for(lambda _: len(server.requests) == count)
    closer.gate.set()
    for caller in callers:
        assert caller.answer().body == b"first"
        caller.close()
    bed.wait_for(lambda hub: len(hub.backends["CORE"].idle) == count)


@pytest.mark.fault("F55")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("path", ["/tx", "/CORE/x"])
@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_post_on_a_connection_that_just_closed(how: str, path: str, loop: str) -> None:
    """E903, said to be maybe executed; sent once and never again; and the circuit takes no notice, five times in a row."""
    closer = Closer(how)
    with raw_server(closer) as server, hub_bed(f"CORE={server.url}", loop=loop) as bed:
        warm(bed, server, closer, 5)
        bed.lay_out()
        for number in range(5):
            answer = ask(bed.port, "POST", path, TX)
            assert (answer.status, answer.code, answer.json()["maybe_executed"]) == (502, "E903", True)
            assert [request[:4] for request in server.requests[5:]] == [b"POST"] * (number + 1)
        assert (bed.effect(), bed.state()) == ("nothing", "CLOSED")
        assert server.connections == 5


@pytest.mark.fault("F55")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_what_may_be_repeated_is_sent_once_more_on_a_new_connection(method: str, how: str, loop: str) -> None:
    """The client notices nothing; one place, one attempt for the breaker, and the dead connections beside it stay out."""
    closer = Closer(how)
    with raw_server(closer) as server, hub_bed(f"CORE={server.url}", loop=loop) as bed:
        warm(bed, server, closer, 2)
        with Caller(bed.port) as caller:
            answer = caller.ask(method, "/CORE/again")
        assert (answer.status, answer.body) == (200, b"" if method == "HEAD" else b"first")
        assert [request.split(b" ")[1] for request in server.requests[2:]] == [b"/again"] * 2
        assert server.connections == 3
        assert bed.codes() == {"0000": 3}


@pytest.mark.fault("F55")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(("method", "body"), [("GET", b"a body"), ("DELETE", None), ("PUT", b"x"), ("POST", b"")])
def test_nothing_else_is_sent_twice(method: str, body: bytes | None, loop: str) -> None:
    closer = Closer("close")
    with raw_server(closer) as server, hub_bed(f"CORE={server.url}", loop=loop) as bed:
        warm(bed, server, closer, 1)
        assert ask(bed.port, method, "/CORE/x", body).code == "E903"
        assert len(server.requests) == 2


@pytest.mark.fault("F55")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("path", ["/tx", "/CORE/x"])
@pytest.mark.parametrize("said", [
    "HTTP/1.1 2", "HTTP/1.1 100 Continue\r\n\r\n", "what?\r\n\r\n", "HTTP/1.1 200 OK\r\nConte",
])
def test_an_answer_that_had_begun_is_the_targets_fault(said: str, path: str, loop: str) -> None:
    """Once a byte has come, the request was taken: a break is a failure on any connection, and nothing is repeated."""
    closer = Closer(said)
    method, body = ("POST", TX) if path == "/tx" else ("GET", None)
    with raw_server(closer) as server, hub_bed(f"CORE={server.url}", loop=loop) as bed:
        warm(bed, server, closer, 1)
        bed.lay_out()
        answer = ask(bed.port, method, path, body)
        assert (answer.code, answer.json()["maybe_executed"]) == ("E903", True)
        assert bed.effect() == "failure"
        assert len(server.requests) == 2


@pytest.mark.fault("F55")
@pytest.mark.parametrize("loop", LOOPS)
def test_a_new_connection_that_closes_as_well_is_a_failure(loop: str) -> None:
    """It is repeated once: then the target is not idle but broken."""

    def script(connection: RawConnection) -> None:
        connection.read_request()
        if connection.server.connections == 1:
            connection.send(response(200))
            connection.read_request()

    with raw_server(script) as server, hub_bed(f"CORE={server.url}", loop=loop) as bed:
        assert ask(bed.port, "GET", "/CORE/x").status == 200
        bed.wait_for(lambda hub: hub.backends["CORE"].idle)
        bed.lay_out()
        assert ask(bed.port, "GET", "/CORE/x").code == "E903"
        assert bed.effect() == "failure"
        assert (len(server.requests), server.connections) == (3, 2)
