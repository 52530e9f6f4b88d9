"""F53: the resolver hangs for CORE's name, and CLAIM's connects wait behind it. Here each name has a lookup of its own."""

from __future__ import annotations

import functools
import socket
import threading
from typing import Any

import pytest

from seawall.hub import backend
from seawall.hub.resolver import Resolver
from tests.hub.bed import LOOPS, Caller, answering, ask, hub_bed, raw_server, response


@pytest.mark.fault("F53")
@pytest.mark.req("HUB-5")
@pytest.mark.parametrize("loop", LOOPS)
def test_a_name_server_that_hangs_for_core_delays_nobody_else(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """CORE's calls end at their connect limit; CLAIM's, by name as well and each on a new connection, all go through."""
    well = threading.Event()
    asked: list[str] = []

    def lookup(host: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
        asked.append(host)
        if host == "core.test":
            well.wait(60)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(backend, "Resolver", functools.partial(Resolver, lookup=lookup))
    with raw_server(answering(response(200, b"{}", Connection="close"))) as server:
        targets = f"CORE=http://core.test:{server.port},connect=20,max-inflight=40", f"CLAIM=http://claim.test:{server.port}"
        with hub_bed(*targets, loop=loop, budget_ms="60000") as bed:
            callers = [Caller(bed.port) for _ in range(40)]  # more than a loop's shared pool has threads
            for caller in callers:
                caller.begin("GET", "/CORE/x")
            bed.wait_for(lambda hub: hub.backends["CORE"].bulkhead.in_flight == 40)
            assert [ask(bed.port, "GET", "/CLAIM/x").status for _ in range(50)] == [200] * 50
            assert bed.in_flight("CORE") == 40
            assert sorted(asked) == ["claim.test", "core.test"]
            well.set()
            assert [caller.answer().status for caller in callers] == [200] * 40
            for caller in callers:
                caller.close()


@pytest.mark.fault("F53")
@pytest.mark.parametrize("loop", LOOPS)
def test_a_lookup_that_hangs_or_fails_is_a_failure_to_connect(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """E901 within the connect limit, and a place is held no longer than that."""
    well = threading.Event()

    def lookup(host: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
        if host == "hung.test":
            well.wait(60)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(backend, "Resolver", functools.partial(Resolver, lookup=lookup))
    with hub_bed("HUNG=http://hung.test:9,connect=0.2", "LOST=http://lost.test:9", loop=loop) as bed:
        hung, lost = ask(bed.port, "GET", "/HUNG/x"), ask(bed.port, "GET", "/LOST/x")
        assert [(answer.code, answer.status) for answer in (hung, lost)] == [("E901", 502)] * 2
        assert "within 0.2 s" in hung.json()["detail"]
        assert "Name or service not known" in lost.json()["detail"]
        bed.assert_at_rest()
        well.set()
