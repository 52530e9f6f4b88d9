"""An attempt that failed is followed by another where the request may be sent again; the client hears of the last alone."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from tests.hub.attempts import TX, Step, bodies, breaks, hangs, headers, in_turn, jitter, retries_of, stopped
from tests.hub.bed import LOOPS, Caller, answering, ask, black_hole, hub_bed, raw_server, refusing, response, talk

FAST = "retry=3,retry-base-ms=1,read=0.1,connect=0.1"
OK, FAIL = response(200, b'{"fine": 1}'), response(500, b'{"no": 1}', X_Theirs="y")
KEY = {"Idempotency-Key": "k1"}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("door", ["tx", "path"])
@pytest.mark.parametrize("failure", [FAIL, response(503), hangs, breaks], ids=["500", "503", "hang", "break"])
def test_what_fails_twice_is_well_the_third_time(failure: Step, door: str, loop: str) -> None:
    """The same request each time, under one id; each attempt is one call for the breaker, and the answer is the third's."""
    with raw_server(in_turn(failure, failure, OK)) as server:
        with hub_bed(f"CORE={server.url},{FAST},idempotent=yes", loop=loop) as bed:
            if door == "tx":
                answer = ask(bed.port, "POST", "/tx", TX)
                assert answer.json() == {"code": "0000", "fine": 1}
            else:
                answer = ask(bed.port, "GET", "/CORE/x?y")
                assert (answer.code, answer.body) == (None, b'{"fine": 1}')
            assert answer.status == 200
            assert answer.headers["server-timing"].endswith('attempts;desc="3"')
            first, _, third = server.requests
            assert first.split(b"\r\n")[0] == third.split(b"\r\n")[0]
            assert headers(first)["x-request-id"] == headers(third)["x-request-id"]
            assert bodies(server.requests) == [TX if door == "tx" else b""] * 3
            assert bed.codes() == {"0000": 1}
            assert bed.run(lambda hub: hub.backends["CORE"].breaker.started) == 3
            assert (retries_of(bed), stopped(bed)) == (2, {"success": 1})


def test_failed_answers_that_are_whole_leave_their_connection_in_use() -> None:
    with raw_server(in_turn(FAIL, response(503, b"x"), OK)) as server, hub_bed(f"CORE={server.url},{FAST}") as bed:
        assert ask(bed.port, "GET", "/CORE/x").status == 200
        assert server.connections == 1


@pytest.mark.parametrize("loop", LOOPS)
def test_a_kept_connection_that_has_gone_costs_no_attempt(loop: str) -> None:
    """It is made good at once, in each attempt."""
    steps = OK, lambda _: None, FAIL, lambda _: None, OK
    with raw_server(in_turn(*steps)) as server, hub_bed(f"CORE={server.url},retry=2,retry-base-ms=1", loop=loop) as bed:
        assert [ask(bed.port, "GET", "/CORE/x").status for _ in range(2)] == [200, 200]
        assert len(server.requests) == 5
        assert (retries_of(bed), stopped(bed)) == (1, {"success": 1})


@pytest.mark.parametrize("loop", LOOPS)
def test_after_the_last_attempt_its_own_answer_comes_as_it_is(loop: str) -> None:
    """On the transaction door as the code it is; the circuit has counted each attempt."""
    last = response(502, b'{"no": 3}', X_Theirs="3")
    with raw_server(in_turn(FAIL, FAIL, last)) as server:
        with hub_bed(f"CORE={server.url},{FAST},idempotent=yes", loop=loop) as bed:
            answer = ask(bed.port, "GET", "/CORE/x")
            assert (answer.status, answer.code, answer.body) == (502, None, b'{"no": 3}')
            assert answer.headers["x-theirs"] == "3"
            assert bed.run(lambda hub: hub.backends["CORE"].breaker.failures) == 3
            answer = ask(bed.port, "POST", "/tx", TX)
            assert (answer.status, answer.code, answer.json()["target_status"]) == (502, "E500", 502)
            assert stopped(bed) == {"attempts": 1, "refused": 1}
            assert bed.codes() == {"E500": 2}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("door", ["tx", "path"])
def test_after_the_last_attempt_the_hub_says_which_it_was(door: str, loop: str) -> None:
    """And that an earlier one may have done its work, where one may."""
    with raw_server(in_turn(hangs)) as server, hub_bed(f"CORE={server.url},{FAST},idempotent=yes", loop=loop) as bed:
        answer = ask(bed.port, "PUT", "/CORE/x", b"body") if door == "path" else ask(bed.port, "POST", "/tx", TX)
        assert (answer.status, answer.code) == (504, "E902")
        assert answer.json()["detail"].startswith("attempt 3 of 3: CORE gave no answer within 0.")
        assert answer.json()["maybe_executed"] is True
        assert len(server.requests) == 3
    with refusing() as port, hub_bed(f"CORE=http://127.0.0.1:{port},{FAST}", loop=loop) as bed:
        answer = ask(bed.port, "POST", "/CORE/x", b"body") if door == "path" else ask(bed.port, "POST", "/tx", TX)
        assert answer.json()["detail"].startswith("attempt 3 of 3: could not connect to CORE: ")
        assert "maybe_executed" not in answer.json()
        assert answer.headers["server-timing"].endswith('attempts;desc="3"')
        assert bed.codes() == {"E901": 1}


@pytest.mark.parametrize("loop", LOOPS)
def test_what_an_earlier_attempt_may_have_done_is_not_forgotten(loop: str) -> None:
    """The last one has certainly done nothing; the first has had the request."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        target = f"CORE=http://127.0.0.1:{listener.getsockname()[1]},retry=2,retry-base-ms=1,read=0.3"
        with hub_bed(target, loop=loop) as bed, Caller(bed.port) as caller:
            caller.begin("PUT", "/CORE/x", b"body")
            connection, _ = listener.accept()
            listener.close()
            with connection:
                answer = caller.answer()
            assert (answer.code, answer.json()["maybe_executed"]) == ("E901", True)
            assert answer.json()["detail"].startswith("attempt 2 of 2: could not connect")


# -- what may be sent again


@pytest.mark.req("LIB-9")
@pytest.mark.parametrize("failure", [FAIL, breaks], ids=["500", "break"])
@pytest.mark.parametrize(("method", "more", "again"), [
    ("GET", {}, True), ("HEAD", {}, True), ("OPTIONS", {}, True), ("PUT", {}, True), ("DELETE", {}, True),
    ("TRACE", {}, True), ("POST", {}, False), ("PATCH", {}, False), ("BREW", {}, False), ("POST", KEY, True),
    ("PATCH", KEY, True),
])  # fmt: skip
def test_what_is_idempotent_is_sent_again_and_nothing_else(
    method: str, more: dict[str, str], again: bool, failure: Step
) -> None:
    """By its method (RFC 9110), or because the client has given it a key; else the failure is the client's to judge."""
    with raw_server(in_turn(failure, OK)) as server, hub_bed(f"CORE={server.url},{FAST}") as bed:
        body = b"body" if method in ("PUT", "POST", "PATCH") else None
        answer = ask(bed.port, method, "/CORE/x", body, more)
        assert (answer.status == 200) == again
        assert len(server.requests) == 1 + again
        assert bodies(server.requests) == [body or b""] * (1 + again)
        assert stopped(bed) == ({"success": 1} if again else {"not_idempotent": 1})
        assert bed.run(lambda hub: hub.backends["CORE"].breaker.failures) == (0 if again else 1)


@pytest.mark.req("LIB-9")
@pytest.mark.parametrize("failure", [FAIL, hangs, breaks], ids=["500", "hang", "break"])
@pytest.mark.parametrize("more", [{}, KEY], ids=["plain", "keyed"])
def test_a_transaction_is_sent_again_only_if_its_target_says_so(more: dict[str, str], failure: Step) -> None:
    """A key says that the client means one transaction, not that this target keeps to it."""
    with raw_server(in_turn(failure, OK)) as server, hub_bed(f"CORE={server.url},{FAST}") as bed:
        answer = ask(bed.port, "POST", "/tx", TX, more)
        assert answer.code in ("E500", "E902", "E903")
        assert answer.json()["detail"].startswith("CORE")  # there was one attempt, so it is not said which
        assert len(server.requests) == 1
        assert stopped(bed) == {"not_idempotent": 1}
        assert retries_of(bed) == 0


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("door", ["tx", "path"])
def test_what_has_not_left_is_sent_again_whatever_it_is(door: str, loop: str) -> None:
    """The target listens only from the second attempt on."""
    with socket.socket() as late:
        late.bind(("127.0.0.1", 0))
        target = f"CORE=http://127.0.0.1:{late.getsockname()[1]},retry=3,retry-base-ms=400"
        with hub_bed(target, loop=loop) as bed, Caller(bed.port) as caller:
            jitter(bed, 1.0)
            caller.begin("POST", "/tx" if door == "tx" else "/CORE/x", TX)
            bed.wait_for(lambda hub: hub.backends["CORE"].breaker.failures == 1)
            late.listen()
            connection, _ = late.accept()
            with connection:
                connection.settimeout(20)
                assert connection.recv(65536).endswith(TX)
                connection.sendall(OK)
                assert caller.answer().status == 200
            assert stopped(bed) == {"success": 1}


@pytest.mark.parametrize("loop", LOOPS)
def test_a_connect_that_takes_too_long_is_followed_by_another(loop: str) -> None:
    with black_hole() as port, hub_bed(f"CORE=http://127.0.0.1:{port},{FAST}", loop=loop) as bed:
        answer = ask(bed.port, "POST", "/CORE/x", b"body")
        assert (answer.code, answer.json()["detail"]) == ("E901", "attempt 3 of 3: could not connect to CORE within 0.1 s")


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(("size", "again"), [(40_000, True), (65_536, True), (65_537, False), (300_000, False)])
def test_a_body_is_kept_to_be_sent_again_up_to_a_bound(size: int, again: bool, loop: str) -> None:
    """Also one that comes in pieces."""
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    with raw_server(in_turn(FAIL, OK)) as server:
        with hub_bed(f"CORE={server.url},{FAST}", loop=loop) as bed, Caller(bed.port) as caller:
            caller.begin("PUT", "/CORE/x", None, {"Content-Length": str(size)})
            caller.send(body[:20_000])
            time.sleep(0.05)
            caller.send(body[20_000:])
            assert (caller.answer().status == 200) == again
            assert bodies(server.requests) == [body] * (1 + again)


@pytest.mark.parametrize("loop", LOOPS)
def test_nor_is_a_longer_one_that_came_at_once(loop: str) -> None:
    """However much of it one read brings in."""
    with raw_server(in_turn(FAIL, OK)) as server, hub_bed(f"CORE={server.url},{FAST}", loop=loop) as bed:
        with Caller(bed.port) as caller:
            assert caller.ask("PUT", "/CORE/x", b"x" * 70_000).status == 500
            assert stopped(bed) == {"not_idempotent": 1}


@pytest.mark.parametrize("loop", LOOPS)
def test_a_chunked_body_is_sent_again_as_it_came(loop: str) -> None:
    chunks = b"5\r\nhello\r\n3;x=y\r\nyou\r\n0\r\nX-T: v\r\n\r\n"
    with raw_server(in_turn(FAIL, OK)) as server, hub_bed(f"CORE={server.url},{FAST}", loop=loop) as bed:
        said = talk(bed.port, b"PUT /CORE/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks, until=b"}")
        assert said.startswith(b"HTTP/1.1 200 ")
        assert bodies(server.requests) == [chunks] * 2


@pytest.mark.parametrize("loop", LOOPS)
def test_a_long_body_that_still_comes_in_waits_for_the_second_connection(loop: str) -> None:
    """Nothing of it has left: it is collected while the hub waits, with the client held back where it is much."""
    body = b"b" * 400_000
    with socket.socket() as late:
        late.bind(("127.0.0.1", 0))
        target = f"CORE=http://127.0.0.1:{late.getsockname()[1]},retry=2,retry-base-ms=400"
        with hub_bed(target, loop=loop) as bed, Caller(bed.port) as caller:
            jitter(bed, 1.0)
            caller.begin("POST", "/CORE/x", None, {"Content-Length": str(len(body))})
            caller.send(body[:100_000])
            bed.wait_for(lambda hub: hub.backends["CORE"].breaker.failures == 1)
            late.listen()
            sender = threading.Thread(target=caller.send, args=(body[100_000:],))
            sender.start()
            connection, _ = late.accept()
            with connection:
                connection.settimeout(20)
                came = b""
                while len(came.partition(b"\r\n\r\n")[2]) < len(body):
                    came += connection.recv(1 << 20)
                connection.sendall(OK)
                assert caller.answer().status == 200
            sender.join(20)
            assert came.partition(b"\r\n\r\n")[2] == body


@pytest.mark.parametrize("loop", LOOPS)
def test_a_client_that_waits_to_be_asked_is_asked_by_the_attempt_that_connects(loop: str) -> None:
    """``Expect: 100-continue`` goes out with each attempt; once the body is on its way there is no other attempt."""
    with socket.socket() as late:
        late.bind(("127.0.0.1", 0))
        target = f"CORE=http://127.0.0.1:{late.getsockname()[1]},retry=3,retry-base-ms=400"
        with hub_bed(target, loop=loop) as bed, Caller(bed.port) as caller:
            jitter(bed, 1.0)
            caller.begin("PUT", "/CORE/x", None, {"Content-Length": "4", "Expect": "100-continue"})
            bed.wait_for(lambda hub: hub.backends["CORE"].breaker.failures == 1)
            late.listen()
            connection, _ = late.accept()
            with connection:
                connection.settimeout(20)
                assert b"Expect: 100-continue\r\n" in connection.recv(65536)
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                caller.send(b"body")
                assert connection.recv(100) == b"body"
                connection.sendall(FAIL)
                answer = caller.answer()
                assert (answer.status, answer.interim) == (500, [100])
            assert stopped(bed) == {"not_idempotent": 1}


def test_without_the_setting_nothing_is_sent_twice() -> None:
    with raw_server(in_turn(FAIL, OK)) as server, hub_bed(f"CORE={server.url},idempotent=yes") as bed:
        assert ask(bed.port, "POST", "/tx", TX).code == "E500"
        assert ask(bed.port, "GET", "/CORE/x").status == 200
        assert len(server.requests) == 2
        assert bed.run(lambda hub: hub.backends["CORE"].retry) is None


@pytest.mark.parametrize("status", [200, 204, 302, 400, 404, 408, 409, 429])
def test_what_is_no_failure_is_not_repeated(status: int) -> None:
    """429 included, unless it says when to come back."""
    with raw_server(answering(response(status))) as server, hub_bed(f"CORE={server.url},{FAST}") as bed:
        assert ask(bed.port, "GET", "/CORE/x").status == status
        assert len(server.requests) == 1
        assert stopped(bed) == {}


# -- hubs in a row


@pytest.mark.fault("F37")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("door", ["tx", "path"])
def test_of_two_hubs_only_the_one_next_to_the_target_repeats_what_it_has_answered(door: str, loop: str) -> None:
    """Three attempts, not nine. The other knows by X-Seawall-Code that a hub has given up already."""
    with raw_server(in_turn(hangs)) as server:
        with hub_bed(f"CORE={server.url},{FAST},idempotent=yes", loop=loop) as inner:
            url = f"http://127.0.0.1:{inner.port}{'' if door == 'tx' else '/CORE'}"
            with hub_bed(f"CORE={url},retry=3,retry-base-ms=1,idempotent=yes", loop=loop) as outer:
                answer = ask(outer.port, "POST", "/tx", TX) if door == "tx" else ask(outer.port, "GET", "/CORE/x")
                assert (answer.status, answer.code) == (504, "E902")
                assert len(server.requests) == 3
                assert (stopped(inner), stopped(outer)) == ({"attempts": 1}, {})
                assert outer.state() == "CLOSED"


def test_an_answer_to_head_has_no_body_to_keep_however_long_it_says_it_is() -> None:
    head = b"HTTP/1.1 503 No\r\nContent-Length: 100000\r\n\r\n"
    with raw_server(in_turn(head, head, response(200, b""))) as server, hub_bed(f"CORE={server.url},{FAST}") as bed:
        assert ask(bed.port, "HEAD", "/CORE/x").status == 200
        assert (retries_of(bed), stopped(bed)) == (2, {"success": 1})
