"""The next attempt may be refused like any call: then the client gets the answer to the last one that ran."""

from __future__ import annotations

import threading

import pytest

from tests.hub.attempts import TX, Step, breaks, hangs, in_turn, jitter, stopped
from tests.hub.bed import LOOPS, Caller, RawConnection, ask, hub_bed, raw_server, response, talk
from tests.hub.phase import waiting

OK, FAIL = response(200, b'{"fine": 1}'), response(500, b'{"no": 1}', X_Theirs="y")


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("body", [
    b"Content-Length: 4\r\n\r\nbody", b"Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
])  # fmt: skip
def test_if_the_circuit_has_opened_the_client_gets_the_answer_there_was(body: bytes, loop: str) -> None:
    """As it was, framing included; its connection had been given back meanwhile."""
    with raw_server(in_turn(b"HTTP/1.1 503 Sorry\r\nX-Theirs: y\r\n" + body)) as server:
        limits = "retry=3,retry-base-ms=1,fail-threshold=1"
        with hub_bed(f"CORE={server.url},{limits}", loop=loop) as bed, Caller(bed.port) as caller:
            answer = caller.ask("GET", "/CORE/x")
            assert (answer.status, answer.code, answer.body, answer.headers["x-theirs"]) == (503, None, b"body", "y")
            assert answer.headers["server-timing"].endswith('attempts;desc="1"')
            assert stopped(bed) == {"refused": 1}
            assert bed.codes() == {"E500": 1}
            assert caller.ask("GET", "/CORE/x").code == "E904"
            assert len(server.requests) == 1


@pytest.mark.parametrize("loop", LOOPS)
def test_an_answer_that_was_kept_is_understood_by_an_old_client(loop: str) -> None:
    """HTTP/1.0 knows no chunks: what was kept goes on without them, and the connection ends it."""
    chunked = b"HTTP/1.1 503 Sorry\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"
    with raw_server(in_turn(chunked)) as server:
        with hub_bed(f"CORE={server.url},retry=3,retry-base-ms=1,fail-threshold=1", loop=loop) as bed:
            said = talk(bed.port, b"GET /CORE/x HTTP/1.0\r\n\r\n")
            head, _, body = said.partition(b"\r\n\r\n")
            assert (head.split(b"\r\n")[0], body) == (b"HTTP/1.1 503 Sorry", b"body")
            assert b"chunked" not in head


@pytest.mark.parametrize("loop", LOOPS)
def test_a_transaction_gets_the_answer_there_was_too(loop: str) -> None:
    with raw_server(in_turn(response(503, b'{"why": "full"}', Retry_After="0"))) as server:
        limits = "retry=3,fail-threshold=1,idempotent=yes"
        with hub_bed(f"CORE={server.url},{limits}", loop=loop) as bed:
            answer = ask(bed.port, "POST", "/tx", TX)
            assert (answer.status, answer.code) == (502, "E500")
            assert (answer.json()["target_status"], answer.json()["answer"]) == (503, {"why": "full"})
            assert answer.headers["retry-after"] == "0"
            assert bed.codes() == {"E500": 1}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(("failure", "code"), [(hangs, "E902"), (breaks, "E903")], ids=["hang", "break"])
def test_where_there_was_no_answer_the_hub_says_so_and_why_there_is_no_other(failure: Step, code: str, loop: str) -> None:
    """With the time after which it makes sense again."""
    with raw_server(in_turn(failure)) as server:
        limits = "retry=3,retry-base-ms=1,fail-threshold=1,read=0.1,reset-timeout=30"
        with hub_bed(f"CORE={server.url},{limits}", loop=loop) as bed:
            answer = ask(bed.port, "GET", "/CORE/x")
            assert answer.code == code
            assert answer.json()["detail"].startswith("attempt 1 of 3: CORE")
            assert "; then CORE is open: 1 failure in a row" in answer.json()["detail"]
            assert (answer.headers["retry-after"], answer.json()["maybe_executed"]) == ("30", True)
            assert stopped(bed) == {"refused": 1}
            assert bed.codes() == {code: 1}


@pytest.mark.parametrize("loop", LOOPS)
def test_a_trial_that_fails_is_not_repeated(loop: str) -> None:
    """It opens the circuit again, which refuses the next attempt."""
    with raw_server(in_turn(FAIL, FAIL, OK)) as server:
        limits = "retry=2,retry-base-ms=1,fail-threshold=1,reset-timeout=0.1"
        with hub_bed(f"CORE={server.url},{limits}", loop=loop) as bed:
            for _ in range(2):
                bed.wait_for(lambda hub: hub.backends["CORE"].breaker.retry_after == 0)
                assert ask(bed.port, "GET", "/CORE/x").status == 500
                assert bed.state() == "OPEN"
            assert len(server.requests) == 2
            bed.wait_for(lambda hub: hub.backends["CORE"].breaker.retry_after == 0)
            assert ask(bed.port, "GET", "/CORE/x").status == 200
            assert stopped(bed) == {"refused": 2}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("line", ["max-queue=0", "max-queue=5,max-wait=0.1"])
def test_if_there_is_no_room_any_more_the_client_gets_the_answer_there_was(line: str, loop: str) -> None:
    """Refused at once, or after a wait in line."""
    gate = threading.Event()

    def holds(connection: RawConnection) -> bool:
        gate.wait(30)
        connection.send(OK)
        return True

    with raw_server(in_turn(FAIL, holds)) as server:
        limits = f"retry=2,retry-base-ms=600,budget-ms=60000,read=30,max-inflight=1,{line}"
        with (
            hub_bed(f"CORE={server.url},{limits}", loop=loop) as bed,
            Caller(bed.port) as first, Caller(bed.port) as second,
        ):  # fmt: skip
            jitter(bed, 1.0)
            first.begin("GET", "/CORE/1")
            bed.wait_for(waiting)
            second.begin("GET", "/CORE/2")
            answer = first.answer()
            assert (answer.status, answer.body) == (500, b'{"no": 1}')
            gate.set()
            assert second.answer().status == 200
            assert stopped(bed) == {"refused": 1}
            assert bed.run(lambda hub: hub.backends["CORE"].bulkhead.rejected) == 1


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("left", [2500, 900])
def test_the_next_attempt_stands_in_line_like_any_call(left: int, loop: str) -> None:
    """Within what is left of the budget: if that ends there, the client gets the answer there was."""
    gate = threading.Event()

    def holds(connection: RawConnection) -> bool:
        gate.wait(30)
        connection.send(OK)
        return True

    with raw_server(in_turn(FAIL, holds, OK)) as server:
        limits = "retry=2,retry-base-ms=500,budget-ms=60000,read=30,max-inflight=1,max-queue=5,max-wait=20"
        with (
            hub_bed(f"CORE={server.url},{limits}", loop=loop) as bed,
            Caller(bed.port) as first, Caller(bed.port) as second,
        ):  # fmt: skip
            jitter(bed, 1.0)
            first.begin("GET", "/CORE/1", headers={"X-Budget-Ms": f"{left}"})
            bed.wait_for(waiting)
            second.begin("GET", "/CORE/2")
            bed.wait_for(lambda hub: hub.backends["CORE"].bulkhead.waiting == 1)
            if left == 900:
                answer = first.answer()
                assert (answer.status, answer.body) == (500, b'{"no": 1}')
                assert stopped(bed) == {"budget": 1}
            gate.set()
            assert second.answer().status == 200
            if left != 900:
                answer = first.answer()
                assert (answer.status, stopped(bed)) == (200, {"success": 1})
                assert 'queue;dur=0.0' not in answer.headers["server-timing"]
