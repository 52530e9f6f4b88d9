"""What is left of the caller's time comes in by X-Budget-Ms, may only shorten, and goes on to the target."""

from __future__ import annotations

import threading
import time

import pytest

from seawall.faults.running import running_target
from tests.hub.bed import (
    LOOPS,
    Caller,
    HubBed,
    RawConnection,
    RawServer,
    answering,
    ask,
    hub_bed,
    raw_server,
    response,
    talk,
)
from tests.hub.raw import headers_of

TX = b'{"target": "CORE", "amount": 5}'
DOORS = ["tx", "path"]


def send(bed: HubBed, door: str, budget: str | None = None) -> str | None:
    """The hub's code for a request with that budget."""
    headers = {} if budget is None else {"X-Budget-Ms": budget}
    if door == "tx":
        return ask(bed.port, "POST", "/tx", TX, headers).code
    answer = ask(bed.port, "GET", "/CORE/x", headers=headers)
    return answer.code or f"{answer.status}"


def told(server: RawServer) -> int:
    """The budget in the last request, which must be there once, in whole milliseconds."""
    head = server.requests[-1].partition(b"\r\n\r\n")[0]
    assert head.lower().count(b"x-budget-ms:") == 1
    _, headers = headers_of(head + b"\r\n\r\n")
    assert headers["x-budget-ms"].isdigit()
    return int(headers["x-budget-ms"])


@pytest.mark.req("BUDGET-7")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("budget", "most", "bad"), [
    (None, 3000, 0), ("2000", 2000, 0), ("2000, 900", 900, 0), ("900,2000", 900, 0), ("99999999", 3000, 0),
    ("banana", 3000, 1), ("-5", 3000, 1), ("1.5", 3000, 1), ("500ms", 3000, 1), ("1e2", 3000, 1), ("", 3000, 1),
    ("9" * 40, 3000, 1), ("banana, 900", 900, 1), ("900,,2000", 900, 1), ("+900", 3000, 1),
])  # fmt: skip
def test_the_smallest_that_can_be_read_is_told_on(budget: str | None, most: int, bad: int, door: str, loop: str) -> None:
    """Rounded down, with the time spent taken off; what cannot be read is ignored and counted."""
    with raw_server(answering(response(200, b"{}"))) as server, hub_bed(f"CORE={server.url}", loop=loop) as bed:
        assert send(bed, door, budget) in ("0000", "200")
        assert most - 500 < told(server) < most
        assert bed.run(lambda hub: hub.bad_budgets) == bad


def test_several_headers_are_one_list() -> None:
    """In whatever order they come; only one goes out."""
    with raw_server(answering(response(200, b"{}"))) as server, hub_bed(f"CORE={server.url}") as bed:
        lines = b"X-Budget-Ms: 2500\r\nx-budget-ms: 1000\r\nX-BUDGET-MS: 2000\r\n"
        talk(bed.port, b"GET /CORE/x HTTP/1.1\r\nHost: a\r\n" + lines + b"\r\n", until=b"{}")
        assert 500 < told(server) < 1000


@pytest.mark.req("BUDGET-5")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("door", DOORS)
def test_with_nothing_left_or_too_little_the_call_is_not_made(door: str, loop: str) -> None:
    """E906, 504; the target hears nothing, and the breaker neither."""
    with running_target() as core, hub_bed(f"CORE={core.url},min-ms=1000", loop=loop) as bed:
        bed.lay_out()
        assert [send(bed, door, budget) for budget in ("0", "999", "3000, 0")] == ["E906"] * 3
        assert core.stats()["calls"] + core.stats()["other"] == 0
        assert bed.effect() == "nothing"
        answer = ask(bed.port, "POST", "/tx", TX, {"X-Budget-Ms": "500"})
        assert (answer.status, answer.json()["target"]) == (504, "CORE")
        assert "of budget are left, too little to call CORE" in answer.json()["detail"]
        assert send(bed, door, "2900") in ("0000", "200")


@pytest.mark.req("BUDGET-5")
def test_after_a_wait_in_line_what_is_left_is_looked_at_again() -> None:
    """The wait came out of the budget; with less than min-ms left the call is not made, and its place goes on."""
    gate = threading.Event()

    def script(connection: RawConnection) -> None:
        while connection.read_request():
            gate.wait(30)
            connection.send(response(200))

    limits = "max-inflight=1,max-queue=5,read=30,min-ms=1500"
    with raw_server(script) as server, hub_bed(f"CORE={server.url},{limits}", budget_ms="60000") as bed:
        with Caller(bed.port) as first, Caller(bed.port) as second, Caller(bed.port) as third:
            first.begin("GET", "/CORE/x")
            bed.wait_for(lambda hub: hub.backends["CORE"].bulkhead.in_flight == 1)
            second.begin("GET", "/CORE/x", headers={"X-Budget-Ms": "1600"})
            bed.wait_for(lambda hub: hub.backends["CORE"].bulkhead.waiting == 1)
            third.begin("GET", "/CORE/x")
            bed.wait_for(lambda hub: hub.backends["CORE"].bulkhead.waiting == 2)
            time.sleep(0.2)  # what is spent in line
            gate.set()
            assert [first.answer().status, second.answer().code, third.answer().status] == [200, "E906", 200]
        assert len(server.requests) == 2


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("mode", ["hang", "drip_head"])
def test_a_call_that_outlasts_its_budget_is_cut(mode: str, door: str, loop: str) -> None:
    """E906: its own patience has ended, not the target's limit; the target's connection ends with it."""
    with running_target() as core, hub_bed(f"CORE={core.url},read=30", loop=loop) as bed:
        bed.lay_out()
        core.ctl(mode=mode, delay_ms=20)
        headers = {"X-Budget-Ms": "150"}
        with Caller(bed.port) as caller:
            answer = caller.ask("POST", "/tx" if door == "tx" else "/CORE/x", TX, headers)
            assert (answer.status, answer.code) == (504, "E906")
            assert "the budget of 150 ms is spent while waiting for CORE" in answer.json()["detail"]
            assert answer.json()["maybe_executed"] is True
            core.wait_for(in_flight=0, left=1)
            core.ctl(mode="normal")
            assert caller.ask("POST", "/tx", TX).code == "0000"
        assert bed.codes() == {"E906": 1, "0000": 1}


@pytest.mark.parametrize("loop", LOOPS)
def test_the_hubs_own_budget_ends_a_call_as_well(loop: str) -> None:
    with running_target() as core, hub_bed(f"CORE={core.url},read=30,budget-ms=150", loop=loop) as bed:
        bed.lay_out()
        core.ctl(mode="hang")
        assert send(bed, "tx") == "E906"
        assert bed.effect() == "cut"


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("door", DOORS)
def test_a_body_that_comes_slower_than_its_own_budget(door: str, loop: str) -> None:
    """E906 when the budget that came with it ends, whoever holds things up; no target has been called."""
    with running_target() as core, hub_bed(f"CORE={core.url}", loop=loop) as bed, Caller(bed.port) as caller:
        path = "/tx" if door == "tx" else "/CORE/x"
        caller.begin("POST", path, None, {"Content-Length": str(len(TX)), "X-Budget-Ms": "150"})
        caller.send(TX[:5])
        answer = caller.answer()
        assert (answer.status, answer.code) == (504, "E906")
        assert answer.headers["connection"] == "close"
        assert core.stats()["calls"] == 0


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("size", [30, 40_000])
def test_a_body_that_comes_slower_than_the_hubs_budget_is_in_time(size: int, loop: str) -> None:
    """The default covers the target's time, not the client's line: the target is told the whole of it, and keeps it."""
    with raw_server(answering(response(200, b"taken"))) as server:
        with hub_bed(f"CORE={server.url},budget-ms=300,read=0.2", loop=loop) as bed, Caller(bed.port) as caller:
            body = b"x" * size
            caller.begin("PUT", "/CORE/x", None, {"Content-Length": str(size)})
            caller.send(body[: size // 2])
            time.sleep(0.5)  # a slow line
            caller.send(body[size // 2 :])
            assert caller.answer().body == b"taken"
            assert 100 < told(server) <= 300
            assert server.requests[0].endswith(b"\r\n\r\n" + body)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(("scope", "budget", "whole"), [
    ("auto", None, True), ("auto", "200", False), ("head", "200", True), ("all", None, False), ("all", "200", False),
])
def test_what_a_budget_covers(scope: str, budget: str | None, whole: bool, loop: str) -> None:
    """By default the head; the body as well when the client has sent the budget. A cut answer has no proper end."""

    def script(connection: RawConnection) -> None:
        connection.read_request()
        connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.drip(b"1\r\nx\r\n" * 10 + b"0\r\n\r\n", 0.01)

    with raw_server(script) as server:
        with hub_bed(f"CORE={server.url},budget-scope={scope},budget-ms=200", loop=loop) as bed, Caller(bed.port) as caller:
            caller.begin("GET", "/CORE/x", headers={} if budget is None else {"X-Budget-Ms": budget})
            if whole:
                assert caller.answer().body == b"x" * 10
            else:
                with pytest.raises((EOFError, ConnectionError)):
                    caller.answer()
            bed.assert_at_rest()
            assert bed.codes() == {"0000" if whole else "E906": 1}
            assert bed.run(lambda hub: hub.backends["CORE"].breaker.failures) == 0
