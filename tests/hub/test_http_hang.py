"""Hundreds of calls that wait for a hung target cost no task and little memory, and nobody else any time."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from seawall.hub.server import Hub
from tests.hub.bed import LOOPS, Caller, HubBed, answering, hub_bed, raw_server, response

WAITING = 500


@contextlib.contextmanager
def hung() -> Iterator[str]:
    """A target whose connections stand and whose answers never come: nobody ever takes them from the backlog."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1024)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@contextlib.contextmanager
def waiting(bed: HubBed, count: int) -> Iterator[list[Caller]]:
    """So many clients, each with a request that stays without answer."""
    with contextlib.ExitStack() as stack:
        callers = [stack.enter_context(Caller(bed.port)) for _ in range(count)]
        for caller in callers:
            caller.begin("GET", "/CORE/x")
        bed.wait_for(lambda hub: hub.backends["CORE"].connections >= count and not hub.arriving)
        yield callers


def tasks(hub: Hub) -> int:
    return len(asyncio.all_tasks(hub.loop))


def resident() -> int:
    """Bytes of memory this process, which the hub is a part of, has in use."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


@pytest.mark.req("HUB-5")
@pytest.mark.parametrize("loop", LOOPS)
def test_five_hundred_calls_hang_and_nobody_notices(loop: str) -> None:
    with hung() as url, raw_server(answering(response(200, b"ok"))) as claim, contextlib.ExitStack() as stack:
        limits = "max-inflight=1000,connect=20,read=60,budget-ms=120000"
        bed = stack.enter_context(hub_bed(f"CORE={url},{limits}", f"CLAIM={claim.url}", loop=loop, drain_timeout="0"))
        other = stack.enter_context(Caller(bed.port))
        assert other.ask("GET", "/CLAIM/x").status == 200
        assert bed.run(tasks) == 1
        before = resident()
        with waiting(bed, WAITING):
            bed.wait_for(lambda hub: tasks(hub) == 1)
            assert bed.in_flight() == WAITING
            began = time.monotonic()
            for _ in range(100):
                assert other.ask("GET", "/CLAIM/x").body == b"ok"
            assert time.monotonic() - began < 10  # a tenth of a second where nothing else runs
            assert bed.run(lambda hub: hub.backends["CLAIM"].latency.quantile(0.5)) < 0.1
            # Sockets and threads of the test are in it too: this sees what is held for each call, roughly.
            assert resident() - before < WAITING * 100_000
        bed.wait_for(lambda hub: hub.backends["CORE"].bulkhead.in_flight == 0)


@pytest.mark.req("HUB-4")
def test_when_the_limit_has_passed_all_of_them_are_answered() -> None:
    with hung() as url, hub_bed(f"CORE={url},max-inflight=1000,connect=20,read=1,budget-ms=60000", loop="uvloop") as bed:
        with waiting(bed, 100) as callers:
            assert {caller.answer().code for caller in callers} == {"E902"}
        assert bed.in_flight() == 0
        assert bed.state() == "OPEN"
