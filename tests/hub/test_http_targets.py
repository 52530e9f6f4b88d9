"""Targets that misbehave: the caller always gets an end, the hub keeps nothing, and nothing ambiguous is passed on."""

from __future__ import annotations

import contextlib
import errno
import re
import threading
import time
from collections.abc import Callable

import pytest

from seawall.hub.backend import Backend
from seawall.hub.upstream import MOST_INTERIMS
from tests.hub.bed import (
    LOOPS,
    Caller,
    RawConnection,
    answering,
    ask,
    hub_bed,
    raw_server,
    refusing,
    response,
    talk,
)  # fmt: skip

Script = Callable[[RawConnection], object]

QUICK = "read=0.2,connect=0.1,budget-ms=5000,fail-threshold=1000"


def saying(*words: bytes, then: str = "close", gap: float = 0.0) -> Script:
    """Answer each request with these bytes, then close, reset or hang."""

    def script(connection: RawConnection) -> None:
        if connection.read_request():
            for word in words:
                connection.send(word)
                time.sleep(gap)
            if then == "reset":
                connection.reset()
            elif then == "hang":
                connection.hang()

    return script


def dripping(data: bytes, gap: float) -> Script:
    def script(connection: RawConnection) -> None:
        while connection.read_request():
            connection.drip(data, gap)

    return script


OK = response(200, b"ok")
HINT = b"HTTP/1.1 103 Early Hints\r\n\r\n"
LONG = b"".join(b"X-%d: %b\r\n" % (number, b"a" * 1000) for number in range(70))

NO_ANSWER: dict[str, tuple[Script, int, str]] = {
    "closes": (saying(), 502, "E903"),
    "resets": (saying(then="reset"), 502, "E903"),
    "closes in its head": (saying(b"HTTP/1.1 200 OK\r\nContent-Le"), 502, "E903"),
    "resets in its head": (saying(b"HTTP/1.1 200 OK\r\nContent-Le", then="reset"), 502, "E903"),
    "does not speak HTTP": (saying(b"220 mail.test ESMTP\r\n", then="hang"), 502, "E903"),
    "speaks TLS": (saying(b"\x15\x03\x01\0\x02\x02\x46", then="hang"), 502, "E903"),
    "speaks HTTP/2": (saying(b"\0\0\x12\x04\0\0\0\0\0", then="hang"), 502, "E903"),
    "frames twice": (saying(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"
                            b"2\r\nok\r\n0\r\n\r\n"), 502, "E903"),
    "gives two lengths": (saying(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!"), 502, "E903"),
    "gives a list of lengths": (saying(b"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok"), 502, "E903"),
    "gives an unknown coding": (saying(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"), 502, "E903"),
    "folds a header": (saying(b"HTTP/1.1 200 OK\r\nX-A: 1\r\n 2\r\nContent-Length: 2\r\n\r\nok"), 502, "E903"),
    "ends lines with LF": (saying(b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok"), 502, "E903"),
    "sends a head of 70 kB": (saying(b"HTTP/1.1 200 OK\r\n" + LONG + b"\r\n"), 502, "E903"),
    "sends a head without end": (saying(b"HTTP/1.1 200 OK\r\n" + LONG, then="hang"), 502, "E903"),
    "switches unasked": (saying(b"HTTP/1.1 101 Whatever\r\nUpgrade: x\r\n\r\n", then="hang"), 502, "E903"),
    "hints without end": (saying(HINT * (MOST_INTERIMS + 1) + OK, then="hang"), 502, "E903"),
    "hangs": (saying(then="hang"), 504, "E902"),
    "hangs in its head": (saying(b"HTTP/1.1 200 OK\r\nX-A", then="hang"), 504, "E902"),
    "hangs after a hint": (saying(HINT, then="hang"), 504, "E902"),
    "drips its head": (dripping(b"HTTP/1.1 200 OK\r\nX-Long: " + b"a" * 200, 0.04), 504, "E902"),
    "hints again and again": (saying(*[HINT] * 50, gap=0.04), 504, "E902"),
}

BOTH_LOOPS = ("closes", "resets", "speaks TLS", "sends a head of 70 kB", "hints without end", "drips its head")


@pytest.mark.fault("F36")
@pytest.mark.parametrize(("case", "loop"), [
    *((case, "uvloop") for case in NO_ANSWER), *((case, "asyncio") for case in BOTH_LOOPS),
])
def test_no_answer_that_can_be_used_is_said_at_once_or_in_time(case: str, loop: str) -> None:
    """The client's own connection stays usable, and its answer has one framing."""
    script, status, code = NO_ANSWER[case]
    with raw_server(script) as server, hub_bed(f"CORE={server.url},{QUICK}", loop=loop) as bed:
        with Caller(bed.port) as caller:
            for _ in range(2):
                answer = caller.ask("GET", "/CORE/x")
                assert (answer.status, answer.code, answer.json()["target"]) == (status, code, "CORE")
        assert bed.codes() == {code: 2}


def test_a_target_that_is_not_there_is_said_to_be_unreachable() -> None:
    with refusing() as port, hub_bed(f"CORE=http://127.0.0.1:{port}", loop="uvloop") as bed:
        answer = ask(bed.port, "GET", "/CORE/x")
        assert (answer.status, answer.code) == (502, "E901")
        assert answer.json()["detail"] == "could not connect to CORE: Connection refused"


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_no_descriptors_left_of_our_own_counts_for_nothing_against_the_target(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(self: Backend, addresses: object) -> None:
        raise OSError(number, "no descriptors left")

    monkeypatch.setattr(Backend, "_open", fail)
    with hub_bed("CORE=http://127.0.0.1:9,fail-threshold=1", loop="uvloop") as bed:
        answer = ask(bed.port, "GET", "/CORE/x")
        assert (answer.code, answer.json()["detail"]) == ("E901", "could not connect to CORE: no descriptors left")
        assert bed.state() == "CLOSED"


# -- in the middle of the body

HALF: dict[str, bytes] = {
    "counted": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf of it",
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\nhalf of it\r\n",
    "in a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\nhalf of it",
    "unframed": b"HTTP/1.1 200 OK\r\n\r\nhalf of it",
}


def read_out(caller: Caller) -> tuple[bytes, bool]:
    """Everything until the end of the connection, and whether that end was a reset."""
    try:
        while caller.more():
            pass
    except ConnectionResetError:
        return caller.rest, True
    return caller.rest, False


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("version", ["1.1", "1.0"])
@pytest.mark.parametrize("framed", HALF)
def test_an_answer_that_breaks_in_its_body_does_not_look_whole(framed: str, version: str, loop: str) -> None:
    """To a client of 1.0 an answer without length ends with the connection: only a reset tells it apart."""
    script = saying(HALF[framed], then="reset" if framed == "unframed" else "close", gap=0.05)
    with raw_server(script) as server, hub_bed(f"CORE={server.url},{QUICK}", loop=loop) as bed:
        with Caller(bed.port) as caller:
            caller.send(b"GET /CORE/x HTTP/%b\r\nHost: h\r\n\r\n" % version.encode())
            answer, reset = read_out(caller)
        assert b"half of it" in answer
        assert not answer.endswith(b"\r\n0\r\n\r\n")
        if version == "1.0":
            assert reset
        else:
            assert re.search(rb"\r\n(Content-Length: 100|Transfer-Encoding: chunked)\r\n", answer)


@pytest.mark.parametrize("then", ["stops", "sends what is no chunk"])
def test_a_body_that_goes_on_no_more_is_cut_after_the_gap(then: str) -> None:
    words = (HALF["chunked"],) if then == "stops" else (HALF["chunked"], b"zz\r\n")
    script = saying(*words, then="hang", gap=0.05)
    with raw_server(script) as server, hub_bed(f"CORE={server.url},body-gap=0.2,{QUICK}", loop="uvloop") as bed:
        assert talk(bed.port, b"GET /CORE/x HTTP/1.1\r\nHost: h\r\n\r\n").endswith(b"\r\nhalf of it\r\n")
        assert bed.codes() == {"E902" if then == "stops" else "E903": 1}


@pytest.mark.fault("F56")
@pytest.mark.parametrize("loop", LOOPS)
def test_a_body_may_take_longer_than_the_budget_and_the_read_limit_together(loop: str) -> None:
    def script(connection: RawConnection) -> None:
        while connection.read_request():
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n")
            connection.drip(b"d" * 20, 0.03)

    with raw_server(script) as server, hub_bed(f"CORE={server.url},read=0.2,budget-ms=300", loop=loop) as bed:
        assert ask(bed.port, "GET", "/CORE/x").body == b"d" * 20


# -- answers that do not wait for the request

@pytest.mark.parametrize("loop", LOOPS)
def test_an_answer_before_the_request_is_in_is_passed_on_and_ends_the_connection(loop: str) -> None:
    """And it is not lost while the client is still sending."""
    def script(connection: RawConnection) -> None:
        connection.upto(b"\r\n\r\n")
        connection.exactly(20000)
        connection.send(response(413, b"enough"))
        connection.hang()

    with raw_server(script) as server, hub_bed(f"CORE={server.url},{QUICK}", loop=loop) as bed:
        with Caller(bed.port) as caller:
            caller.send(b"PUT /CORE/x HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 30000)
            answer = caller.answer()
            assert (answer.status, answer.body, answer.headers["connection"]) == (413, b"enough", "close")
            caller.send(b"x" * 300000)
            assert caller.ended()
        assert bed.codes() == {"B413": 1}


@pytest.mark.parametrize("loop", LOOPS)
def test_a_target_that_answers_and_takes_no_more_does_not_keep_the_connection(
    loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seawall.hub.upstream.FLUSH", 0.1)
    full, go_on = threading.Event(), threading.Event()

    def script(connection: RawConnection) -> None:
        assert full.wait(20)
        connection.send(response(413, b"enough"))
        assert go_on.wait(20)

    with raw_server(script) as server, hub_bed(f"CORE={server.url},read=20,budget-ms=20000", loop=loop) as bed:
        with Caller(bed.port) as caller:
            caller.send(b"PUT /CORE/x HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000\r\n\r\n")
            caller.sock.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while caller.sock.send(b"x" * 65536):
                    bed.run(lambda hub: None)
            caller.sock.settimeout(20)
            bed.wait_for(lambda hub: any(client.paused for client in hub.clients))
            full.set()
            assert caller.answer().status == 413
            bed.wait_for(lambda hub: hub.backends["CORE"].connections == 0)
        go_on.set()


@pytest.mark.parametrize("loop", LOOPS)
def test_a_target_may_answer_piece_by_piece_while_the_request_goes_on(loop: str) -> None:
    def script(connection: RawConnection) -> None:
        connection.upto(b"\r\n\r\n")
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 20005\r\n\r\n")
        connection.send(connection.exactly(20000))
        for _ in range(5):
            connection.send(connection.exactly(1))

    with raw_server(script) as server, hub_bed(f"CORE={server.url},{QUICK}", loop=loop) as bed:
        with Caller(bed.port) as caller:
            caller.send(b"PUT /CORE/x HTTP/1.1\r\nHost: h\r\nContent-Length: 20005\r\n\r\n" + b"x" * 20000)
            caller.upto(b"\r\n\r\n")
            assert caller.exactly(20000) == b"x" * 20000
            for piece in (b"a", b"b", b"c", b"d", b"e"):
                caller.send(piece)
                assert caller.exactly(1) == piece
        assert bed.codes() == {"0000": 1}


def test_a_target_that_does_not_ask_for_the_body_in_time_is_what_is_blamed() -> None:
    """The client waits for its 100, so the silence is the target's: E902 after the read limit, not E408."""
    def script(connection: RawConnection) -> None:
        connection.upto(b"\r\n\r\n")
        connection.hang()

    with raw_server(script) as server, hub_bed(f"CORE={server.url},{QUICK}", loop="uvloop") as bed:
        with Caller(bed.port) as caller:
            caller.send(b"PUT /CORE/x HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n")
            answer = caller.answer()
        assert (answer.status, answer.code) == (504, "E902")
        assert bed.codes() == {"E902": 1}


def test_once_asked_for_the_body_the_client_may_take_its_time() -> None:
    """More than the read limit and the budget, which are the target's; that the connection stays is all that is seen."""
    def script(connection: RawConnection) -> None:
        connection.upto(b"\r\n\r\n")
        connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        connection.send(response(200, connection.exactly(4)))

    target = "read=0.1,connect=0.1,budget-ms=200"
    with raw_server(script) as server, hub_bed(f"CORE={server.url},{target}", loop="uvloop") as bed:
        with Caller(bed.port) as caller:
            caller.send(b"PUT /CORE/x HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
            assert caller.upto(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            time.sleep(0.4)
            caller.send(b"late")
            answer = caller.answer()
        assert (answer.status, answer.body) == (200, b"late")


# -- statuses

@pytest.mark.parametrize("more", [b"Transfer-Encoding: chunked\r\n", b"Content-Length: 0\r\n", b""])
def test_a_204_has_neither_length_nor_coding_whatever_the_target_says(more: bytes) -> None:
    with raw_server(answering(b"HTTP/1.1 204 No Content\r\n" + more + b"\r\n")) as server:
        with hub_bed(f"CORE={server.url}", loop="uvloop") as bed, Caller(bed.port) as caller:
            for _ in range(2):
                caller.begin("GET", "/CORE/x")
                assert caller.upto(b"\r\n\r\n") == b"HTTP/1.1 204 No Content\r\n\r\n"


def test_many_hints_pass_before_the_answer() -> None:
    hints = b"".join(b"HTTP/1.1 103 Early Hints\r\nLink: <%d>\r\n\r\n" % number for number in range(500))
    with raw_server(answering(hints + OK)) as server, hub_bed(f"CORE={server.url}", loop="uvloop") as bed:
        answer = ask(bed.port, "GET", "/CORE/x")
        assert (answer.status, answer.interim) == (200, [103] * 500)


# -- connections

@pytest.mark.parametrize("loop", LOOPS)
def test_a_thousand_requests_of_one_client_use_one_connection(loop: str) -> None:
    with raw_server(answering(OK)) as server, hub_bed(f"CORE={server.url}", loop=loop) as bed:
        with Caller(bed.port) as caller:
            assert all(caller.ask("GET", "/CORE/x").body == b"ok" for _ in range(1000))
        assert server.connections == 1
        assert bed.codes() == {"0000": 1000}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_connection_that_the_target_closed_while_idle_is_not_used_again(method: str, loop: str) -> None:
    with raw_server(saying(OK)) as server, hub_bed(f"CORE={server.url}", loop=loop) as bed, Caller(bed.port) as caller:
        for _ in range(5):
            assert caller.ask(method, "/CORE/x").status == 200
            bed.wait_for(lambda hub: hub.backends["CORE"].connections == 0)
        assert server.connections == 5


def test_keepalive_0_keeps_no_connection() -> None:
    with raw_server(answering(OK)) as server, hub_bed(f"CORE={server.url},keepalive=0", loop="uvloop") as bed:
        with Caller(bed.port) as caller:
            assert all(caller.ask("GET", "/CORE/x").status == 200 for _ in range(5))
        assert server.connections == 5


def test_an_idle_connection_is_closed_after_keepalive() -> None:
    with raw_server(answering(OK)) as server, hub_bed(f"CORE={server.url},keepalive=0.2", loop="uvloop") as bed:
        ask(bed.port, "GET", "/CORE/x")
        assert bed.run(lambda hub: len(hub.backends["CORE"].idle)) == 1
        bed.wait_for(lambda hub: hub.backends["CORE"].connections == 0)


@pytest.mark.parametrize("junk", [OK, b"x", b"HTTP/1.1 408 Timeout\r\n\r\n"])
def test_what_a_target_says_unasked_is_taken_for_no_answer(junk: bytes) -> None:
    """Neither behind an answer nor later on an idle connection."""
    told = threading.Event()

    def script(connection: RawConnection) -> None:
        while connection.read_request():
            connection.send(OK)
            if connection.server.connections == 1:
                connection.send(junk)
                connection.hang()
                told.set()

    with raw_server(script) as server, hub_bed(f"CORE={server.url}", loop="uvloop") as bed, Caller(bed.port) as caller:
        assert caller.ask("GET", "/CORE/x").body == b"ok"
        assert told.wait(20)
        assert caller.ask("POST", "/CORE/x", b"1").body == b"ok"
        assert server.connections == 2


def test_a_reset_on_an_idle_connection_disturbs_nobody() -> None:
    go = threading.Semaphore(0)

    def script(connection: RawConnection) -> None:
        connection.read_request()
        connection.send(OK)
        assert go.acquire(timeout=20)
        connection.reset()

    with raw_server(script) as server, hub_bed(f"CORE={server.url}", loop="uvloop") as bed:
        for _ in range(3):
            assert ask(bed.port, "GET", "/CORE/x").status == 200
            go.release()
            bed.wait_for(lambda hub: hub.backends["CORE"].connections == 0)
