"""F46 in the hub: a target hangs, every client leaves before its limit; cut calls by the thousand, and it never opened."""

from __future__ import annotations

import threading
import time

import pytest

from seawall.faults.running import running_target
from tests.hub.bed import LOOPS, Caller, HubBed, RawConnection, ask, hub_bed, raw_server, response

TX = b'{"target": "CORE", "amount": 5}'
LIMITS = "connect=0.3,read=0.7,max-inflight=100"  # far more than a client that left is waited for


def leave(bed: HubBed, how: str, path: str) -> None:
    """One client that is gone long before the target's limit of a second."""
    with Caller(bed.port) as caller:
        caller.begin("POST", path, TX, {"X-Budget-Ms": "60"} if how == "short budget" else {})
        if how == "short budget":
            assert caller.answer().code in ("E906", "E904")
            return
        bed.wait_for(lambda hub: hub.backends["CORE"].bulkhead.in_flight or hub.backends["CORE"].breaker.state == "OPEN")
        if how == "reset":
            caller.reset()


@pytest.mark.fault("F46")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("path", ["/tx", "/CORE/x"])
@pytest.mark.parametrize("how", ["short budget", "closed", "reset"])
def test_a_hung_target_opens_though_every_client_is_impatient(how: str, path: str, loop: str) -> None:
    """Once five of them were cut and the first began an attempt's time ago."""
    with running_target() as core, hub_bed(f"CORE={core.url},{LIMITS}", loop=loop) as bed:
        core.ctl(mode="hang")
        end = time.monotonic() + 20.0
        while bed.state() != "OPEN" and time.monotonic() < end:
            leave(bed, how, path)
        assert bed.state() == "OPEN"
        refused = ask(bed.port, "POST", "/tx", TX)
        assert refused.code == "E904"
        assert "cut by their callers" in refused.json()["detail"]
        assert bed.codes().keys() <= {"E904", "E905", "E906", "C499"}


@pytest.mark.fault("F46")
@pytest.mark.parametrize("loop", LOOPS)
def test_while_the_target_answers_others_impatient_clients_count_for_nothing(loop: str) -> None:
    """Over several attempts' time, 3 cuts to each answer, and with a threshold of 4 never 4 without an answer between."""

    def script(connection: RawConnection) -> None:
        while request := connection.read_request():
            if b"/hang" in request:
                connection.hang()
            connection.send(response(200))

    limits = "connect=0.1,read=0.1,fail-threshold=4"
    with raw_server(script) as server, hub_bed(f"CORE={server.url},{limits}", loop=loop) as bed:
        for _ in range(6):
            for _ in range(3):
                assert ask(bed.port, "GET", "/CORE/hang", headers={"X-Budget-Ms": "30"}).code == "E906"
            assert ask(bed.port, "GET", "/CORE/x").status == 200
            assert bed.run(lambda hub: hub.backends["CORE"].breaker.failures) == 0
        assert bed.state() == "CLOSED"
        assert bed.codes() == {"E906": 18, "0000": 6}


@pytest.mark.fault("F46")
@pytest.mark.parametrize("loop", LOOPS)
def test_many_at_once_that_leave_early_do_not_open_a_target_that_is_merely_slow(loop: str) -> None:
    """The cuts of a moment are no evidence: nobody has waited an attempt's time yet."""
    gate = threading.Event()

    def script(connection: RawConnection) -> None:
        while connection.read_request():
            gate.wait(30)
            connection.send(response(200))

    with raw_server(script) as server, hub_bed(f"CORE={server.url},read=20,max-inflight=100", loop=loop) as bed:
        callers = [Caller(bed.port) for _ in range(50)]
        for caller in callers:
            caller.begin("GET", "/CORE/x", headers={"X-Budget-Ms": "50"})
        assert {caller.answer().code for caller in callers} == {"E906"}
        assert bed.state() == "CLOSED"
        gate.set()
        for caller in callers:
            caller.close()
        assert ask(bed.port, "GET", "/CORE/x").status == 200
