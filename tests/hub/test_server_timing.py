"""Server-Timing says where the time of an answer went: by itself where it waited or was repeated, or on each."""

from __future__ import annotations

import re
import threading
import time

import pytest

from tests.hub.bed import (
    LOOPS,
    Answer,
    Caller,
    RawConnection,
    Script,
    answering,
    ask,
    hub_bed,
    raw_server,
    refusing,
    response,
)

TX = b'{"target": "CORE", "amount": 5}'
FORM = r'queue;dur=(\d+\.\d), target;dur=(\d+\.\d), wait;dur=(\d+\.\d), attempts;desc="(\d+)"'


def timing(answer: Answer) -> tuple[float, float, float, int]:
    """Milliseconds in line, at the target and between attempts, and how many attempts."""
    match = re.fullmatch(FORM, answer.headers["server-timing"])
    assert match is not None, answer.headers["server-timing"]
    return float(match[1]), float(match[2]), float(match[3]), int(match[4])


def slow(answer: bytes, seconds: float = 0.1) -> Script:
    def script(connection: RawConnection) -> None:
        while connection.read_request():
            time.sleep(seconds)
            connection.send(answer)

    return script


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("door", ["tx", "path"])
@pytest.mark.parametrize("status", [200, 503])
def test_asked_for_it_stands_on_every_answer(status: int, door: str, loop: str) -> None:
    with raw_server(slow(response(status, b"{}"))) as server:
        with hub_bed(f"CORE={server.url}", loop=loop, server_timing="all") as bed:
            for _ in range(2):  # a new connection, and a kept one
                answer = ask(bed.port, "POST", "/tx" if door == "tx" else "/CORE/x", TX)
                queue, target, wait, attempts = timing(answer)
                assert (queue, wait, attempts) == (0.0, 0.0, 1)
                assert target >= 100.0


def test_it_stands_on_answers_of_the_hubs_own_too() -> None:
    """A call that was not made had no attempt."""
    with refusing() as port, hub_bed(f"CORE=http://127.0.0.1:{port},fail-threshold=1", server_timing="all") as bed:
        failed, refused = ask(bed.port, "GET", "/CORE/x"), ask(bed.port, "GET", "/CORE/x")
        assert (failed.code, timing(failed)[3]) == ("E901", 1)
        assert (refused.code, timing(refused)) == ("E904", (0.0, 0.0, 0.0, 0))


@pytest.mark.parametrize(("setting", "there"), [("auto", True), ("all", True), ("off", False)])
@pytest.mark.parametrize("door", ["tx", "path"])
def test_what_waited_in_line_says_for_how_long(door: str, setting: str, there: bool) -> None:
    """Unless the hub is to say nothing; who did not wait gets no header by itself."""
    gate = threading.Event()

    def script(connection: RawConnection) -> None:
        while connection.read_request():
            gate.wait(30)
            connection.send(response(200, b"{}"))

    path = "/tx" if door == "tx" else "/CORE/x"
    with raw_server(script) as server:
        limits = "max-inflight=1,max-queue=5,read=30,budget-ms=60000"
        with hub_bed(f"CORE={server.url},{limits}", server_timing=setting) as bed:
            with Caller(bed.port) as first, Caller(bed.port) as second:
                first.begin("POST", path, TX)
                bed.wait_for(lambda hub: hub.backends["CORE"].bulkhead.in_flight == 1)
                second.begin("POST", path, TX)
                bed.wait_for(lambda hub: hub.backends["CORE"].bulkhead.waiting == 1)
                time.sleep(0.1)
                gate.set()
                assert ("server-timing" in first.answer().headers) == (setting == "all")
                answer = second.answer()
                assert answer.status == 200
                assert ("server-timing" in answer.headers) == there
                if there:
                    queue, _, wait, attempts = timing(answer)
                    assert queue >= 90.0
                    assert (wait, attempts) == (0.0, 1)


def test_who_waited_in_vain_is_told_so_too() -> None:
    with raw_server(slow(response(200), 0.5)) as server:
        with hub_bed(f"CORE={server.url},max-inflight=1,max-queue=5,max-wait=0.1") as bed, Caller(bed.port) as first:
            first.begin("GET", "/CORE/x")
            bed.wait_for(lambda hub: hub.backends["CORE"].bulkhead.in_flight == 1)
            answer = ask(bed.port, "GET", "/CORE/x")
            queue, target, _, attempts = timing(answer)
            assert (answer.code, target, attempts) == ("E905", 0.0, 0)
            assert queue >= 100.0
            assert first.answer().status == 200


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("door", ["tx", "path"])
def test_what_was_repeated_says_how_often_and_how_long_it_waited(door: str, loop: str) -> None:
    """Time at the target is that of all attempts."""
    wait = response(503, b"{}", Retry_After="0.1")
    taken: list[int] = []

    def script(connection: RawConnection) -> None:
        while connection.read_request():
            time.sleep(0.05)
            taken.append(1)
            connection.send(wait if len(taken) < 3 else response(200, b"{}"))

    with raw_server(script) as server, hub_bed(f"CORE={server.url},retry=3,idempotent=yes", loop=loop) as bed:
        answer = ask(bed.port, "POST", "/tx", TX) if door == "tx" else ask(bed.port, "GET", "/CORE/x")
        queue, target, waited, attempts = timing(answer)
        assert (queue, attempts) == (0.0, 3)
        assert target >= 150.0
        assert waited >= 200.0


def test_what_the_target_says_itself_passes_on_before_it() -> None:
    theirs = response(200, Server_Timing='db;dur=5, cache;desc="hit"')
    with raw_server(answering(theirs)) as server, hub_bed(f"CORE={server.url}", server_timing="all") as bed:
        said = ask(bed.port, "GET", "/CORE/x").headers["server-timing"]
        assert re.fullmatch(r'db;dur=5, cache;desc="hit", ' + FORM, said)


@pytest.mark.parametrize("door", ["tx", "path"])
def test_by_itself_a_plain_answer_has_none(door: str) -> None:
    with raw_server(answering(response(200, b"{}"))) as server, hub_bed(f"CORE={server.url}") as bed:
        answer = ask(bed.port, "POST", "/tx" if door == "tx" else "/CORE/x", TX)
        assert "server-timing" not in answer.headers
