"""A trial is the breaker's question: it is worth an answer even when the client that happened to ask it has left."""

from __future__ import annotations

import threading

import pytest

from tests.hub.bed import LOOPS, Caller, HubBed, RawConnection, RawServer, ask, hub_bed, raw_server, response

TX = b'{"target": "CORE", "amount": 5}'
LIMITS = "fail-threshold=1,reset-timeout=0.1,connect=0.2,read=2"


class Patient:
    """A target that fails once, and then does with a request what its ``answer`` says, when the gate is open."""

    def __init__(self, answer: bytes = b"", then: str = "") -> None:
        self.answer = answer or response(200, b'{"code": "0000"}')
        self.then = then
        self.gate = threading.Event()
        self.failed = False

    def __call__(self, connection: RawConnection) -> None:
        while connection.read_request():
            if not self.failed:
                self.failed = True
                connection.send(response(500))
                continue
            self.gate.wait(30)
            connection.send(self.answer)
            if self.then == "endless":
                connection.drip(b"x" * 100_000, 0.005)
            elif self.then == "hang":
                connection.hang()


def open_and_wait(bed: HubBed) -> None:
    """Have the circuit opened, and its trial fall due."""
    assert ask(bed.port, "GET", "/CORE/x").status == 500
    assert bed.state() == "OPEN"
    bed.wait_for(lambda hub: hub.backends["CORE"].breaker.snapshot().trial_due)


def leave_a_trial(bed: HubBed, server: RawServer, path: str, before: int = 2) -> None:
    """A client takes the trial and goes away; the trial is then in nobody's hands but the hub's."""
    with Caller(bed.port) as caller:
        caller.begin("POST", path, TX)
        bed.wait_for(lambda _: len(server.requests) == before)
        assert bed.state() == "HALF_OPEN"
        caller.reset()
    bed.wait_for(lambda hub: len(hub.ghosts) == 1)
    bed.wait_for(lambda hub: not hub.clients)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("path", ["/tx", "/CORE/x"])
@pytest.mark.parametrize(("answer", "state"), [
    (response(200, b"{}"), "CLOSED"), (response(500), "OPEN"), (b"what?\r\n\r\n", "OPEN"),
])
def test_it_runs_on_when_its_client_leaves(answer: bytes, state: str, path: str, loop: str) -> None:
    """One C499 for the client, and the circuit closes, or opens again, by what the target says."""
    script = Patient(answer)
    with raw_server(script) as server, hub_bed(f"CORE={server.url},{LIMITS}", loop=loop) as bed:
        open_and_wait(bed)
        leave_a_trial(bed, server, path)
        assert (bed.in_flight(), bed.state()) == (1, "HALF_OPEN")
        refused = ask(bed.port, "POST", "/tx", TX)
        assert (refused.code, "its trial is still out" in refused.json()["detail"]) == ("E904", True)
        script.gate.set()
        bed.wait_for(lambda hub: not hub.ghosts)
        assert bed.state() == state
        bed.assert_at_rest()
        assert bed.codes() == {"E500": 1, "C499": 1, "E904": 1}
        assert len(server.requests) == 2


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("path", ["/tx", "/CORE/x"])
def test_it_runs_on_when_its_clients_budget_ends(path: str, loop: str) -> None:
    """A trial goes to a call that covers the attempt limit, but after one more limit to any: the client gets its E906."""
    script = Patient()
    limits = "fail-threshold=1,reset-timeout=0.1,connect=0.1,read=1.0"
    with raw_server(script) as server, hub_bed(f"CORE={server.url},{limits}", loop=loop) as bed:
        open_and_wait(bed)
        short = {"X-Budget-Ms": "100"}
        with Caller(bed.port) as caller:
            if bed.run(lambda hub: hub.now() < hub.backends["CORE"].breaker.retry_at + 0.6):
                refused = caller.ask("POST", path, TX, short)
                assert (refused.code, "keeps its trial" in refused.json()["detail"]) == ("E904", True)
            bed.wait_for(lambda hub: hub.now() > hub.backends["CORE"].breaker.retry_at + 1.1)
            answer = caller.ask("POST", path, TX, short)
            assert (answer.status, answer.code) == (504, "E906")
            assert "100 ms" in answer.json()["detail"]
            script.gate.set()
            bed.wait_for(lambda hub: not hub.ghosts)
            assert bed.state() == "CLOSED"
            assert caller.ask("POST", path, TX).status == 200


@pytest.mark.parametrize("loop", LOOPS)
def test_left_alone_it_still_has_its_limits(loop: str) -> None:
    """A target that stays silent has failed the trial at the read limit, with nobody there to wait for it."""
    script = Patient()
    limits = "fail-threshold=1,reset-timeout=0.1,connect=0.2,read=0.3"
    with raw_server(script) as server, hub_bed(f"CORE={server.url},{limits}", loop=loop) as bed:
        open_and_wait(bed)
        leave_a_trial(bed, server, "/tx")
        bed.wait_for(lambda hub: not hub.ghosts)
        assert bed.state() == "OPEN"
        assert "a trial failed, last E902" in ask(bed.port, "POST", "/tx", TX, {"X-Budget-Ms": "50"}).json()["detail"]
        script.gate.set()


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("kind", ["counted", "chunked", "unframed"])
def test_once_answered_nothing_is_read_for_nobody(kind: str, loop: str) -> None:
    """An endless answer settles the trial at its head; place and connection are given back there and then."""
    framing = {
        "counted": b"Content-Length: 999999\r\n\r\n", "chunked": b"Transfer-Encoding: chunked\r\n\r\n9999\r\n",
        "unframed": b"\r\n",
    }[kind]  # fmt: skip
    script = Patient(b"HTTP/1.1 200 OK\r\n" + framing, "endless")
    with raw_server(script) as server, hub_bed(f"CORE={server.url},{LIMITS}", loop=loop) as bed:
        open_and_wait(bed)
        leave_a_trial(bed, server, "/CORE/x")
        script.gate.set()
        bed.wait_for(lambda hub: hub.backends["CORE"].breaker.state == "CLOSED")
        bed.assert_at_rest()


@pytest.mark.parametrize("loop", LOOPS)
def test_a_tunnel_for_nobody_is_not_kept(loop: str) -> None:
    script = Patient(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nhi", "hang")
    with raw_server(script) as server, hub_bed(f"CORE={server.url},{LIMITS}", loop=loop) as bed:
        open_and_wait(bed)
        with Caller(bed.port) as caller:
            caller.begin("GET", "/CORE/x", headers={"Connection": "upgrade", "Upgrade": "echo"})
            bed.wait_for(lambda _: len(server.requests) == 2)
            caller.reset()
        bed.wait_for(lambda hub: len(hub.ghosts) == 1)
        script.gate.set()
        bed.wait_for(lambda hub: hub.backends["CORE"].breaker.state == "CLOSED")
        bed.assert_at_rest()


@pytest.mark.parametrize("loop", LOOPS)
def test_the_client_that_left_and_came_back_is_served_beside_its_old_trial(loop: str) -> None:
    """Budget ended, connection kept: the next request on it is its own, and the trial's late answer goes nowhere."""
    script = Patient(response(200, b"late"))
    limits = "fail-threshold=1,reset-timeout=0.1,connect=0.1,read=1.0"
    with raw_server(script) as server, hub_bed(f"CORE={server.url},{limits}", loop=loop) as bed:
        open_and_wait(bed)
        bed.wait_for(lambda hub: hub.now() > hub.backends["CORE"].breaker.retry_at + 1.1)
        with Caller(bed.port) as caller:
            assert caller.ask("GET", "/CORE/x", headers={"X-Budget-Ms": "50"}).code == "E906"
            assert caller.ask("GET", "/CORE/x").code == "E904"
            script.gate.set()
            bed.wait_for(lambda hub: hub.backends["CORE"].breaker.state == "CLOSED")
            assert caller.ask("GET", "/CORE/y").body == b"late"
