"""What the hub's own code costs per exchange, without sockets: GET 1 KiB through its protocol objects.

    python bench/code_cost.py                    microseconds, best of 15
    python bench/code_cost.py --instructions     counted by valgrind's callgrind: runs agree within 0.5 %

The transports are stubs and the loop never runs, so neither kernel nor event loop is in the figure. Microseconds depend
on the machine and its mood; instructions do not, so a change of the code that costs one percent shows.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import time
from collections.abc import Sequence
from typing import cast

from rig import load, procs, tools

from seawall.hub.client import Client
from seawall.hub.server import Hub
from seawall.hub.settings import read_settings
from seawall.hub.upstream import Upstream

REQUEST = load.request_bytes("/1k")
RESPONSE = b"\r\n".join((
    b"HTTP/1.1 200 OK", b"Server: nginx/1.22.1", b"Date: Sun, 29 Nov 2026 18:00:00 GMT",
    b"Content-Type: application/octet-stream", b"Content-Length: 1024", b"Last-Modified: Sun, 29 Nov 2026 17:59:00 GMT",
    b"Connection: keep-alive", b'ETag: "656778a4-400"', b"Accept-Ranges: bytes", b"", b"x" * 1024))
BATCH, BATCHES, WARM = 2000, 15, 2000
COUNTED = (500, 2500)  # exchanges in two runs; their difference leaves the start of the interpreter out


class StubTransport:
    """Takes what is written and keeps the last of it."""

    last = b""

    def write(self, data: bytes) -> None:
        """Keep it."""
        self.last = data

    def is_closing(self) -> bool:
        """Never."""
        return False

    def get_extra_info(self, name: str) -> object:
        """An address for ``peername``."""
        return ("127.0.0.1", 1) if name == "peername" else None

    def pause_reading(self) -> None:
        """Nothing is read here."""

    def resume_reading(self) -> None:
        """Nothing is read here."""

    def close(self) -> None:
        """The hub must not: each exchange keeps both connections."""
        raise AssertionError("the hub closed a connection that it should have kept")

    abort = close


class Pair:
    """A client's connection and an idle one to the target, in one hub: the only part that knows the hub's classes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        settings = read_settings(targets=["T=http://127.0.0.1:9"], default="T", admin="off", breaker_log=os.devnull,
                                 max_inflight="4096", budget_ms="30000", read="20", connect="2")
        hub = Hub(settings, loop)
        backend = hub.backends["T"]
        self.to_client, self.to_target = StubTransport(), StubTransport()
        self.client, self.upstream = Client(hub), Upstream(backend)
        self.client.connection_made(cast(asyncio.Transport, self.to_client))
        self.upstream.connection_made(cast(asyncio.Transport, self.to_target))
        backend.put_back(self.upstream, hub.now())

    def exchange(self, count: int) -> None:
        """``count`` requests and their answers, one after another."""
        request, answer = self.client.data_received, self.upstream.data_received
        for _ in range(count):
            request(REQUEST)
            answer(RESPONSE)

    def check(self) -> None:
        """What was passed on must be what a relay passes on; else the cost is that of something else."""
        sent, got = self.to_target.last, self.to_client.last
        right = (sent.startswith(b"GET /1k HTTP/1.1\r\n") and b"traceparent: " in sent and b"keep-alive" not in sent
                 and got.startswith(b"HTTP/1.1 200 OK\r\n") and got.endswith(b"\r\n\r\n" + b"x" * 1024))
        if not right:
            raise procs.BenchError(f"the hub did not relay: to the target {sent[:200]!r}, to the client {got[:200]!r}")


def warm_pair(loop: asyncio.AbstractEventLoop) -> Pair:
    """A pair that has relayed a while."""
    pair = Pair(loop)
    pair.exchange(WARM)
    pair.check()
    return pair


def microseconds() -> float:
    """The best batch."""
    loop = asyncio.new_event_loop()
    try:
        pair, best = warm_pair(loop), float("inf")
        for _ in range(BATCHES):
            began = time.perf_counter()
            pair.exchange(BATCH)
            best = min(best, time.perf_counter() - began)
        return best / BATCH * 1e6
    finally:
        loop.close()


def instructions() -> float:
    """Counted by callgrind in two runs of this file."""
    tools.need("valgrind")
    found = []
    for count in COUNTED:
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable, __file__,
                   "--only-run", str(count)]
        _, said = procs.output_of(command, 300, {**os.environ, "PYTHONHASHSEED": "0"})
        collected = re.search(r"Collected : (\d+)", said)
        if not collected:
            raise procs.BenchError("callgrind counted nothing")
        found.append(int(collected[1]))
    return (found[1] - found[0]) / (COUNTED[1] - COUNTED[0])


def only_run(count: int) -> None:
    """A fixed number of exchanges, for callgrind."""
    loop = asyncio.new_event_loop()
    warm_pair(loop).exchange(count)
    loop.close()


def run(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--instructions", action="store_true", help="count instructions too (about a minute)")
    p.add_argument("--only-run", type=int, metavar="N", help=argparse.SUPPRESS)
    a = p.parse_args(argv)
    if a.only_run is not None:
        only_run(a.only_run)
        return 0
    with procs.bounded(700):
        print(f"hub code per exchange, GET 1 KiB: {microseconds():.2f} µs (CPython {sys.version.split()[0]})")
        if a.instructions:
            print(f"hub code per exchange, GET 1 KiB: {instructions():.0f} instructions")
    return 0


if __name__ == "__main__":
    sys.exit(procs.main_guard(run))
