"""A budget comes in any of three headers, is heeded or not by listener, is capped, and goes on with the number of now."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import pytest

from seawall.headers import FORMS
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
)
from tests.hub.raw import headers_of

TX = b'{"target": "CORE", "amount": 5}'
DOORS = ["tx", "path"]
MS, GRPC, ENVOY = (form.name for form in FORMS)


def send(bed: HubBed, door: str, headers: dict[str, str] | None = None, port: int | None = None) -> str:
    """The hub's code for a request with those headers."""
    if door == "tx":
        return ask(port or bed.port, "POST", "/tx", TX, headers).code or ""
    answer = ask(port or bed.port, "GET", "/CORE/x", headers=headers)
    return answer.code or f"{answer.status}"


def told(server: RawServer) -> dict[str, str]:
    """The headers of the last request that say a budget, each there once at most."""
    head = server.requests[-1].partition(b"\r\n\r\n")[0]
    names = [form.name.lower() for form in FORMS]
    assert all(head.lower().count(f"\r\n{name}:".encode()) <= 1 for name in names)
    _, headers = headers_of(head + b"\r\n\r\n")
    return {name: headers[name] for name in names if name in headers}


@contextlib.contextmanager
def core(loop: str = "asyncio", more: str = "", budget_max_ms: str | None = None) -> Iterator[tuple[RawServer, HubBed]]:
    """A target that answers, behind a hub."""
    with raw_server(answering(response(200, b"{}"))) as server:
        with hub_bed(f"CORE={server.url}{more}", loop=loop, budget_max_ms=budget_max_ms) as bed:
            yield server, bed


@pytest.mark.req("BUDGET-7")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("headers", "most", "bad"), [
    ({GRPC: "900m"}, 900, 0), ({ENVOY: "900"}, 900, 0), ({GRPC: "2S", ENVOY: "900", MS: "1500"}, 900, 0),
    ({GRPC: "900000u", MS: "2000"}, 900, 0), ({MS: "900", GRPC: "1H"}, 900, 0), ({GRPC: "1H"}, 3000, 0),
    ({GRPC: "5", ENVOY: "1.5"}, 3000, 2), ({GRPC: "123456789n", MS: "900"}, 900, 1), ({GRPC: "1S, 900m"}, 900, 0),
])  # fmt: skip
def test_the_smallest_under_any_name_holds(
    headers: dict[str, str], most: int, bad: int, door: str, loop: str
) -> None:
    """X-Budget-Ms goes on in any case, the others where they came; each says what is left by now."""
    with core(loop) as (server, bed):
        assert send(bed, door, headers) in ("0000", "200")
        on = told(server)
        assert sorted(on) == sorted({MS.lower(), *(name.lower() for name in headers)})
        for form in FORMS:
            if form.name.lower() in on:
                left = form.read(on[form.name.lower()])
                assert left is not None
                assert most - 500 < left * 1000 <= most
        assert bed.run(lambda hub: (hub.bad_budgets, hub.ignored_budgets)) == (bad, 0)


@pytest.mark.parametrize("door", DOORS)
def test_a_budget_under_another_name_can_be_too_little_as_well(door: str) -> None:
    with core(more=",min-ms=500") as (server, bed):
        for headers in ({GRPC: "0n"}, {ENVOY: "499"}, {GRPC: "499999u"}):
            assert send(bed, door, headers) == "E906"
        assert server.requests == []


def test_requests_on_one_connection_each_bring_their_own() -> None:
    """Also where a head is recognised by the one before it."""
    with core() as (server, bed), Caller(bed.port) as caller:
        for ms in (900, 800, 700, 2500):
            headers = {"A": "b", "B": f"{ms}", GRPC: f"{ms}m", ENVOY: f"{ms + 100}"}
            assert caller.ask("GET", "/CORE/x", headers=headers).status == 200
            assert ms - 300 < int(told(server)[MS.lower()]) <= ms
            assert ms - 300 < int(told(server)[ENVOY.lower()]) <= ms


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("door", DOORS)
def test_a_listener_for_strangers_ignores_what_they_say_of_their_budget(door: str, loop: str) -> None:
    """The target's own holds, and goes on under the names that came; another listener of the same hub heeds."""
    listen = ("127.0.0.1:0,budget=ignore", "127.0.0.1:0")
    with raw_server(answering(response(200, b"{}"))) as server:
        with hub_bed(f"CORE={server.url}", loop=loop, listen=listen) as bed:
            strangers, friends = bed.ports
            for headers in ({MS: "0"}, {GRPC: "1n"}, {ENVOY: "banana"}):
                assert send(bed, door, headers, strangers) in ("0000", "200")
                assert 2500 < int(told(server)[MS.lower()]) <= 3000
            assert 2500 < int(told(server)[ENVOY.lower()]) <= 3000
            assert bed.run(lambda hub: (hub.bad_budgets, hub.ignored_budgets)) == (0, 3)
            assert send(bed, door, {MS: "0"}, friends) == "E906"
            assert send(bed, door, None, strangers) in ("0000", "200")
            assert bed.run(lambda hub: (hub.bad_budgets, hub.ignored_budgets)) == (0, 3)


def test_a_stranger_with_a_short_budget_may_take_its_time_to_send_a_transaction() -> None:
    with raw_server(answering(response(200, b"{}"))) as server:
        with hub_bed(f"CORE={server.url}", listen=("127.0.0.1:0,budget=ignore",)) as bed, Caller(bed.port) as caller:
            caller.begin("POST", "/tx", None, {"Content-Length": str(len(TX)), MS: "50"})
            time.sleep(0.2)
            caller.send(TX)
            assert caller.answer().code == "0000"


@pytest.mark.parametrize("door", DOORS)
def test_a_client_cannot_ask_for_more_than_there_is(door: str) -> None:
    with raw_server(RawConnection.hang) as server, hub_bed(f"CORE={server.url},budget-ms=200,read=30") as bed:
        headers = {MS: "60000", GRPC: "1H"}
        if door == "tx":
            answer = ask(bed.port, "POST", "/tx", TX, headers)
        else:
            answer = ask(bed.port, "GET", "/CORE/x", headers=headers)
        assert answer.json()["detail"].startswith("the budget of 200 ms is spent")


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("budget", "most"), [(None, 1000), ("5000", 1000), ("600", 600)])
def test_the_hubs_maximum_caps_what_is_asked_for_and_what_is_the_default(budget: str | None, most: int, door: str) -> None:
    with core(budget_max_ms="1000") as (server, bed):
        assert send(bed, door, {} if budget is None else {MS: budget}) in ("0000", "200")
        assert most - 500 < int(told(server)[MS.lower()]) <= most


@pytest.mark.parametrize("door", DOORS)
def test_a_margin_is_taken_off_what_the_target_is_told(door: str) -> None:
    with core(more=",budget-margin-ms=400") as (server, bed):
        assert send(bed, door, {MS: "1000", GRPC: "1S"}) in ("0000", "200")
        assert 100 < int(told(server)[MS.lower()]) <= 600
        assert send(bed, door, {MS: "300"}) in ("0000", "200")
        assert told(server) == {MS.lower(): "0"}


def test_a_trial_whose_caller_has_left_goes_on_when_its_request_is_sent_again() -> None:
    """It has no deadline any more; the target is told of the whole budget, as of a request of the hub's own."""
    behaviour: list[str] = []

    def script(connection: RawConnection) -> None:
        while connection.read_request():
            what = behaviour.pop(0) if behaviour else "answer"
            if what == "wait, then close":
                deadline = time.monotonic() + 10
                while not left and time.monotonic() < deadline:
                    time.sleep(0.005)
                return
            connection.send(response(500 if what == "fail" else 200))

    left: list[bool] = []
    with raw_server(script) as server:
        with hub_bed(f"CORE={server.url},fail-threshold=1,reset-timeout=0.05,read=10,budget-ms=20000") as bed:
            behaviour[:] = ["fail", "wait, then close"]
            assert send(bed, "path") == "500"
            bed.wait_for(lambda hub: hub.backends["CORE"].breaker.snapshot().trial_due)
            with Caller(bed.port) as caller:
                caller.begin("GET", "/CORE/x")
                bed.wait_for(lambda _: len(server.requests) == 2)
            bed.wait_for(lambda hub: hub.ghosts)
            left.append(True)
            bed.wait_for(lambda hub: not hub.ghosts)
            assert bed.state() == "CLOSED"
            assert len(server.requests) == 3
            assert 15_000 < int(told(server)[MS.lower()]) <= 20_000


# -- a chain of hubs


@contextlib.contextmanager
def chain(server: RawServer, loop: str, first: str = "", last: str = "") -> Iterator[tuple[HubBed, HubBed]]:
    """Two hubs, the first of which has the second as its target."""
    with hub_bed(f"CORE={server.url}{last}", loop=loop) as inner:
        with hub_bed(f"CORE=http://127.0.0.1:{inner.port}/CORE{first}", loop=loop) as outer:
            yield outer, inner


@pytest.mark.req("BUDGET-7")
@pytest.mark.parametrize("loop", LOOPS)
def test_the_budget_shrinks_hop_by_hop(loop: str) -> None:
    """By what each hop has taken, and by the margin of each."""
    with raw_server(answering(response(200, b"{}"))) as server:
        with chain(server, loop, ",budget-margin-ms=100", ",budget-margin-ms=200") as (outer, _):
            assert ask(outer.port, "GET", "/CORE/x", headers={MS: "1500", ENVOY: "9000"}).status == 200
            left = int(told(server)[MS.lower()])
            assert 700 < left <= 1200
            assert told(server)[ENVOY.lower()] == str(left)


@pytest.mark.req("BUDGET-5", "BUDGET-7")
@pytest.mark.parametrize("loop", LOOPS)
def test_of_two_hops_the_last_refuses_first(loop: str) -> None:
    """What is left there is the least: it makes no call, and its word comes back through the first, whose circuit holds."""
    with raw_server(answering(response(200, b"{}"))) as server:
        with chain(server, loop, ",min-ms=300,budget-margin-ms=250,fail-threshold=1", ",min-ms=300") as (outer, inner):
            for _ in range(3):
                answer = ask(outer.port, "GET", "/CORE/x", headers={MS: "540"})
                assert (answer.status, answer.code) == (504, "E906")
            assert server.requests == []
            assert inner.codes() == {"E906": 3}
            assert outer.state() == "CLOSED"
            assert ask(outer.port, "GET", "/CORE/x", headers={MS: "2000"}).status == 200


@pytest.mark.req("BUDGET-4")
@pytest.mark.parametrize("loop", LOOPS)
def test_a_last_hop_that_drips_is_cut_where_it_stands(loop: str) -> None:
    """By the hub next to it: it was told less, so the first hub hears of it in time and passes its answer on."""

    def script(connection: RawConnection) -> None:
        connection.read_request()
        connection.drip(b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 1000, 0.02)

    with raw_server(script) as server, chain(server, loop, ",budget-margin-ms=250") as (outer, inner):
        began = time.monotonic()
        answer = ask(outer.port, "GET", "/CORE/x", headers={MS: "600"})
        assert time.monotonic() - began >= 0.3
        assert (answer.status, answer.code) == (504, "E906")
        assert "waiting for CORE" in answer.json()["detail"]
        assert (outer.codes(), inner.codes()) == ({"E906": 1}, {"E906": 1})
        assert inner.run(lambda hub: len(hub.backends["CORE"].breaker._epoch.cuts)) == 1
        assert outer.run(lambda hub: len(hub.backends["CORE"].breaker._epoch.cuts)) == 0
