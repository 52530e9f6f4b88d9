"""A call says where it ended and which limit ended it, and no target gets it past a limit."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from seawall import Deadline, budget
from seawall.errors import ConfigError
from seawall.faults.loopback import black_hole, refusing, silent
from seawall.measure import call as module
from seawall.measure.call import call
from seawall.measure.called import Interrupted
from tests.hub.raw import RawConnection, answering, raw_server, response

LONG = 60.0  # s; a limit that is not to end anything
LATE = 20.0  # s; far more than a loaded machine adds, far less than LONG


def url(port: int, path: str = "/") -> str:
    return f"http://127.0.0.1:{port}{path}"


def dripping(head: bytes, body: bytes, gap: float) -> object:
    def script(connection: RawConnection) -> None:
        connection.read_request()
        connection.send(head)
        connection.drip(body, gap)

    return script


# -- where it ends
@pytest.mark.req("BUDGET-3")
@pytest.mark.parametrize("status", [200, 204, 302, 404, 429, 500, 503])
def test_any_answer_is_done_whatever_its_status(status: int) -> None:
    with raw_server(answering(response(status, b"" if status == 204 else b"body", Location="/elsewhere"))) as target:
        called = call(target.url)
    assert (called.phase, called.status, called.error, called.limit) == ("done", status, None, "")
    assert target.connections == 1  # no redirect is followed


@pytest.mark.req("BUDGET-3")
def test_a_refused_connection_ends_in_connect_and_waits_for_no_limit() -> None:
    with refusing() as port:
        called = call(url(port), connect=LONG, read=LONG)
    assert (called.phase, called.status, called.error, called.limit) == ("connect", None, "connection refused", "")
    assert called.elapsed < LATE


@pytest.mark.req("BUDGET-3")
def test_no_answer_to_a_connect_ends_in_connect_at_its_limit() -> None:
    with black_hole() as port:
        called = call(url(port), connect=0.2, read=LONG)
    assert (called.phase, called.limit, called.error) == ("connect", "connect", "no connection within 0.2 s")
    assert 0.2 <= called.elapsed < LATE


@pytest.mark.req("BUDGET-3")
def test_silence_ends_in_read_at_its_limit() -> None:
    with silent() as port:
        called = call(url(port), connect=LONG, read=0.2)
    assert (called.phase, called.limit, called.error) == ("read", "read", "no byte for 0.2 s")
    assert 0.2 <= called.elapsed < LATE


@pytest.mark.req("BUDGET-3")
def test_it_is_done_only_once_the_body_is_in() -> None:
    """A target that stops in the middle of its body has sent a status, and no answer."""
    def script(connection: RawConnection) -> None:
        connection.read_request()
        connection.send(response(200, b"x" * 100)[:-50])
        connection.hang()

    with raw_server(script) as target:
        called = call(target.url, read=0.2)
    assert (called.phase, called.status, called.limit, called.body_bytes) == ("read", 200, "read", 50)


def test_a_read_limit_is_one_of_silence_and_a_slow_answer_within_it_is_done() -> None:
    body = b"0123456789ab"
    with raw_server(dripping(response(200, body)[:-12], body, 0.06)) as target:  # type: ignore[arg-type]
        called = call(target.url, read=0.6)
    assert (called.phase, called.body) == ("done", body)
    assert called.elapsed >= 0.06 * 11


@pytest.mark.parametrize(("sent", "why"), [
    (b"", "the connection was closed without an answer"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "the connection was closed after 3 of 9 bytes of the body"),
    (b"+OK POP3\r\n", "no HTTP/1.1 answer, but b'+OK POP3"),
])
def test_what_is_no_whole_answer_ends_in_read(sent: bytes, why: str) -> None:
    def script(connection: RawConnection) -> None:
        connection.read_request()
        connection.send(sent)

    with raw_server(script) as target:
        called = call(target.url, read=LONG)
    assert (called.phase, called.limit) == ("read", "")
    assert called.error is not None
    assert called.error.startswith(why)


def test_a_reset_ends_in_read() -> None:
    def script(connection: RawConnection) -> None:
        connection.read_request()
        connection.reset()

    with raw_server(script) as target:
        called = call(target.url, read=LONG)
    assert (called.phase, called.error) == ("read", "connection reset by the target")


@pytest.mark.parametrize("whole", [False, True])
def test_the_total_ends_it_wherever_it_is(whole: bool) -> None:
    with black_hole() as hole, silent() as quiet:
        called = call(url(quiet if whole else hole), connect=LONG, read=LONG, total=0.2)
    assert (called.phase, called.limit) == ("total", "total")
    assert called.error == f"no {'whole answer' if whole else 'connection'} within the total of 0.2 s"
    assert 0.2 <= called.elapsed < LATE


# -- what is sent
def test_a_request_goes_out_as_it_was_asked_for() -> None:
    with raw_server(answering(response(200))) as target:
        call(target.url + "/tx?a=b", method="PUT", headers=[("host", "core"), ("X-Budget-Ms", "7")], body=b"{}")
        call(target.url)
    first, second = target.requests
    assert first.startswith(b"PUT /tx?a=b HTTP/1.1\r\n")
    assert first.endswith(b"\r\n\r\n{}")
    for line in (b"host: core", b"X-Budget-Ms: 7", b"Connection: close", b"Content-Length: 2"):
        assert b"\r\n%s\r\n" % line in first
    assert first.lower().count(b"\r\nhost:") == 1
    assert f"\r\nHost: 127.0.0.1:{target.port}\r\n".encode() in second
    assert b"Content-Length" not in second


@pytest.mark.parametrize(("method", "headers"), [
    ("GE T", []), ("GET", [("A b", "c")]), ("GET", [("A", "b\r\nC: d")]), ("GET", [("A", "\u2603")]),
    ("GET", [("content-length", "5")]), ("GET", [("Transfer-Encoding", "chunked")]), ("GET", [("Connection", "x")]),
])
def test_what_cannot_be_sent_is_refused_before_anything_is(method: str, headers: list[tuple[str, str]]) -> None:
    with raw_server(answering(response(200))) as target:
        with pytest.raises(ConfigError):
            call(target.url, method=method, headers=headers)
        assert target.connections == 0


@pytest.mark.parametrize("reads_on", [True, False])
def test_an_answer_that_comes_before_the_whole_body_was_taken_counts(reads_on: bool) -> None:
    """A target that hangs up at once resets the connection, for there is more that it has not read."""
    def script(connection: RawConnection) -> None:
        connection.upto(b"\r\n\r\n")
        connection.send(response(413, b"too much"))
        if reads_on:
            connection.sock.shutdown(socket.SHUT_WR)
            connection.hang()

    with raw_server(script) as target:
        called = call(target.url, body=b"x" * 20_000_000)
    assert (called.phase, called.status) == ("done", 413)


def test_a_target_that_takes_no_body_ends_in_read() -> None:
    with silent() as port:
        called = call(url(port), read=0.2, body=b"x" * 50_000_000)
    assert (called.phase, called.limit) == ("read", "read")


# -- where it goes
@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[tuple[str, int]]]:
    """Addresses by name, instead of the system's."""
    known: dict[str, list[tuple[str, int]]] = {}
    monkeypatch.setattr(module, "addresses", lambda host, port, limit: [(socket.AF_INET, at) for at in known[host]])
    return known


def test_an_address_that_refuses_is_followed_by_the_next(names: dict[str, list[tuple[str, int]]]) -> None:
    with refusing() as nobody, raw_server(answering(response(200))) as target:
        names["core"] = [("127.0.0.1", nobody), ("127.0.0.1", target.port)]
        assert call("http://core/").phase == "done"


def test_an_address_that_is_silent_gets_its_share_of_the_limit(names: dict[str, list[tuple[str, int]]]) -> None:
    with black_hole() as hole, raw_server(answering(response(200))) as target:
        names["core"] = [("127.0.0.1", hole), ("127.0.0.1", hole), ("127.0.0.1", target.port)]
        called = call("http://core/", connect=0.6)
        assert called.phase == "done"
        assert called.elapsed >= 0.4
        names["core"] = [("127.0.0.1", hole)] * 3
        called = call("http://core/", connect=0.15)
        assert (called.phase, called.limit) == ("connect", "connect")
        assert called.elapsed >= 0.15


@pytest.fixture
def hanging_names(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A resolver that does not answer."""
    asks, freed = socket.getaddrinfo, threading.Event()

    def hang(host: str, *rest: object, flags: int = 0, **more: object) -> object:
        if not flags & socket.AI_NUMERICHOST:
            freed.wait(LONG)
        return asks(host, *rest, flags=flags, **more)  # type: ignore[arg-type, misc]

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    yield
    freed.set()


@pytest.mark.usefixtures("hanging_names")
def test_a_name_server_that_hangs_ends_at_the_limit_to_connect() -> None:
    called = call("http://core.invalid/", connect=0.1, read=LONG)
    assert (called.phase, called.error) == ("connect", "no name look-up within 0.1 s")
    assert 0.1 <= called.elapsed < LATE


def test_a_name_that_does_not_exist_is_said_to() -> None:
    called = call("http://a..b/")
    assert called.phase == "connect"
    assert called.error is not None


# -- the budget in force
@pytest.mark.req("BUDGET-4")
def test_what_is_left_of_the_budget_ends_it_and_the_phase_says_what_it_was_at() -> None:
    with black_hole() as hole, silent() as quiet:
        with budget(0.3):
            connecting = call(url(hole), connect=LONG, read=LONG)
        with budget(0.3):
            reading = call(url(quiet), connect=LONG, read=LONG)
    assert (connecting.phase, connecting.limit) == ("connect", "budget")
    assert (reading.phase, reading.limit) == ("read", "budget")
    for called in (connecting, reading):
        assert 0.0 < called.read_limit <= 0.3
        assert called.elapsed >= called.read_limit


@pytest.mark.req("BUDGET-4")
def test_a_limit_shorter_than_what_is_left_holds() -> None:
    with silent() as port, budget(LONG):
        called = call(url(port), read=0.1)
    assert (called.phase, called.limit, called.read_limit) == ("read", "read", 0.1)


@pytest.mark.req("BUDGET-5")
@pytest.mark.parametrize(("left", "min_ms"), [(0.0, 0.0), (-1.0, 0.0), (0.05, 51.0), (5.0, 60_000.0)])
def test_without_budget_the_call_is_not_made(left: float, min_ms: float) -> None:
    with raw_server(answering(response(200))) as target:
        called = call(target.url, deadline=Deadline.after(left), min_ms=min_ms)
        assert target.connections == 0
    assert (called.phase, called.elapsed, called.status, called.limit) == ("no_budget", 0.0, None, "budget")


def test_with_enough_left_the_call_is_made() -> None:
    with raw_server(answering(response(200))) as target:
        assert call(target.url, deadline=Deadline.after(LONG), min_ms=1000).phase == "done"


# -- Ctrl-C
def test_an_interrupt_tells_how_far_the_call_had_come() -> None:
    def script(connection: RawConnection) -> None:
        connection.read_request()
        connection.send(response(200, b"x" * 10)[:-5])
        time.sleep(0.05)  # it may fall while the head is being read, or before: not before the call
        signal.pthread_kill(main, signal.SIGINT)
        connection.hang()

    main = threading.get_ident()
    with raw_server(script) as target, pytest.raises(Interrupted) as stop:
        call(target.url, read=LONG)
    called = stop.value.called
    assert (called.phase, called.status) == ("read", 200)
    assert called.error == "interrupted, waiting for the whole answer"
