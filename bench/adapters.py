"""What an adapter adds to a keep-alive GET over its client: the same client with and without it, in turn, in one run.

    python bench/adapters.py                     every client that is installed
    python bench/adapters.py --only httpx --rounds 40
    python bench/adapters.py --limit             under a budget, so that each read is cut and the callee is told

Each round times some hundred GETs of each of the two, in random order; the ratio is taken inside the round, and the
median over the rounds is the figure. The server answers from a process of its own. Limit: at most 1.05.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import contextvars
import multiprocessing
import random
import socket
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module, metadata

import seawall

MOST = 1.05
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"ok\": true} "


def serve(listener: socket.socket) -> None:
    class Answering(asyncio.Protocol):
        def connection_made(self, transport):
            self.transport = transport

        def data_received(self, data):
            if data.endswith(b"\r\n\r\n"):
                self.transport.write(ANSWER)

    async def main():
        server = await asyncio.get_running_loop().create_server(Answering, sock=listener)
        await server.serve_forever()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())


@contextlib.contextmanager
def server() -> Iterator[str]:
    listener = socket.create_server(("127.0.0.1", 0))
    process = multiprocessing.get_context("fork").Process(target=serve, args=(listener,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        process.terminate()
        process.join(10)
        listener.close()


def sync_pair(bare, ours, get, close) -> tuple[Callable, Callable, Callable]:
    def timed(client, times):
        began = time.perf_counter()
        for _ in range(times):
            get(client)
        return time.perf_counter() - began

    return (lambda n: timed(bare, n)), (lambda n: timed(ours, n)), lambda: (close(bare), close(ours))


def httpx_pair(name: str, url: str) -> tuple[Callable, Callable, Callable]:
    http, adapter = import_module(name), import_module(f"seawall.adapters.{name}")
    bare, ours = http.Client(trust_env=False), adapter.protect(http.Client(trust_env=False), seawall.Wall())
    return sync_pair(bare, ours, lambda client: client.get(url), lambda client: client.close())


def async_pair(clients, get, close) -> tuple[Callable, Callable, Callable]:
    runner = asyncio.Runner()

    async def timed(client, times):
        began = time.perf_counter()
        for _ in range(times):
            await get(client)
        return time.perf_counter() - began

    bare, ours = runner.run(clients())

    def end():
        runner.run(close(bare))
        runner.run(close(ours))
        runner.close()

    def run(client, n):
        return runner.run(timed(client, n), context=contextvars.copy_context())

    return (lambda n: run(bare, n)), (lambda n: run(ours, n)), end


def ahttpx_pair(name: str, url: str):
    http, adapter = import_module(name), import_module(f"seawall.adapters.{name}")

    async def clients():
        return http.AsyncClient(trust_env=False), adapter.protect(http.AsyncClient(trust_env=False), seawall.Wall())

    return async_pair(clients, lambda client: client.get(url), lambda client: client.aclose())


def aiohttp_pair(url: str):
    aiohttp, adapter = import_module("aiohttp"), import_module("seawall.adapters.aiohttp")

    async def clients():
        return aiohttp.ClientSession(), aiohttp.ClientSession(middlewares=(adapter.middleware(seawall.Wall()),))

    async def get(client):
        async with client.get(url) as response:
            await response.read()

    return async_pair(clients, get, lambda client: client.close())


def requests_pair(url: str):
    requests, adapter = import_module("requests"), import_module("seawall.adapters.requests")
    bare, ours = requests.Session(), adapter.mount(requests.Session(), seawall.Wall())
    bare.trust_env = ours.trust_env = False
    return sync_pair(bare, ours, lambda client: client.get(url), lambda client: client.close())


def urllib3_pair(url: str):
    urllib3, adapter = import_module("urllib3"), import_module("seawall.adapters.urllib3")
    bare, ours = urllib3.PoolManager(), adapter.protect(urllib3.PoolManager(), seawall.Wall())
    return sync_pair(bare, ours, lambda client: client.request("GET", url), lambda client: client.clear())


PAIRS = {
    "httpx": lambda url: httpx_pair("httpx", url),
    "httpx async": lambda url: ahttpx_pair("httpx", url),
    "httpx2": lambda url: httpx_pair("httpx2", url),
    "httpx2 async": lambda url: ahttpx_pair("httpx2", url),
    "requests": requests_pair,
    "urllib3": urllib3_pair,
    "aiohttp": aiohttp_pair,
}


def measure(pair, rounds: int, times: int, budget: float | None) -> list[float]:
    bare, ours, end = pair
    ratios = []
    try:
        with seawall.budget(budget) if budget else contextlib.nullcontext():
            bare(times), ours(times)  # warm
            for _ in range(rounds):
                order = [("bare", bare), ("ours", ours)]
                random.shuffle(order)
                took = {name: run(times) for name, run in order}
                ratios.append(took["ours"] / took["bare"])
    finally:
        end()
    return sorted(ratios)


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=60)
    p.add_argument("--times", type=int, default=100, help="GETs of each in a round (100)")
    p.add_argument("--only", nargs="+", choices=PAIRS, default=list(PAIRS), metavar="CLIENT")
    p.add_argument("--limit", action="store_true", help="under a budget of an hour")
    p.add_argument("--quick", action="store_true", help="hardly any rounds: shows that it works, the figures mean nothing")
    args = p.parse_args()
    rounds, times = (3, 20) if args.quick else (args.rounds, args.times)
    missed = 0
    print(f"A keep-alive GET on loopback, with the adapter / without it; Python {sys.version.split()[0]}, "
          f"{rounds} rounds of {times}{', under a budget' if args.limit else ''}\n")
    print("| client | version | ratio | middle half | at most | |\n| --- | --- | --- | --- | --- | --- |")
    with server() as url:
        for name in args.only:
            library = name.split()[0]
            try:
                version = metadata.version(library)
            except metadata.PackageNotFoundError:
                print(f"| {name} | not installed | | | {MOST} | not measured |")
                continue
            ratios = measure(PAIRS[name](url), rounds, times, 3600.0 if args.limit else None)
            ratio, quarter = statistics.median(ratios), len(ratios) // 4
            held = ratio <= MOST
            missed += not held and not args.limit
            print(f"| {name} | {version} | {ratio:.3f} | {ratios[quarter]:.3f}-{ratios[-1 - quarter]:.3f} | {MOST} | "
                  f"{'held' if held else 'missed'} |", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
