"""A plain streaming reverse proxy on aiohttp, as one would write it: no breaker, no limit, no log.

    python aiohttp_proxy.py PORT UPSTREAM_PORT
    python aiohttp_proxy.py PORT NAME=UPSTREAM_PORT ...    (/NAME/path goes there as /path)

It runs on uvloop where that is installed, as the hub does.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable, Iterable

import aiohttp
from aiohttp import web

HOP_BY_HOP = {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}


def passed_on(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The headers that belong to the message, not to the connection."""
    return [(k, v) for k, v in headers if k.lower() not in HOP_BY_HOP]


def client() -> aiohttp.ClientSession:
    """One session with an unlimited pool, nothing added to requests and nothing decoded."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=3600), auto_decompress=False,
        timeout=aiohttp.ClientTimeout(total=120), cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"))


class Proxy:
    """The request handler."""

    def __init__(self, session: aiohttp.ClientSession, routes: dict[str, int]) -> None:
        self._session = session
        self._routes = routes

    def url(self, path: str) -> str:
        """Where a path goes."""
        if "" in self._routes:
            return f"http://127.0.0.1:{self._routes['']}{path}"
        name, _, rest = path[1:].partition("/")
        return f"http://127.0.0.1:{self._routes[name]}/{rest}"

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Relay one request, its body and its answer in pieces as they come."""
        body = request.content if request.body_exists else None
        async with self._session.request(request.method, self.url(request.raw_path), data=body, allow_redirects=False,
                                         headers=passed_on(request.headers.items())) as answer:
            out = web.StreamResponse(status=answer.status, headers=passed_on(answer.headers.items()))
            await out.prepare(request)
            async for chunk in answer.content.iter_any():
                await out.write(chunk)
            await out.write_eof()
            return out


async def serve(port: int, routes: dict[str, int]) -> None:
    """Serve until the process is ended."""
    server = web.Server(Proxy(client(), routes), access_log=None, keepalive_timeout=3600)
    await asyncio.get_running_loop().create_server(server, "127.0.0.1", port, backlog=4096)
    gc.collect()
    gc.freeze()
    await asyncio.Event().wait()


def fastest_loop() -> Callable[[], asyncio.AbstractEventLoop]:
    """uvloop's event loop, or asyncio's own where uvloop is not installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


def main() -> None:
    """Read the arguments and serve."""
    routes = {name: int(up) for name, _, up in (arg.rpartition("=") for arg in sys.argv[2:])}
    with asyncio.Runner(loop_factory=fastest_loop()) as runner:
        runner.run(serve(int(sys.argv[1]), routes))


if __name__ == "__main__":
    main()
