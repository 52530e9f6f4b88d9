"""aiohttp's client, for the conformance suite."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

import aiohttp

import seawall
from seawall.adapters.aiohttp import middleware
from tests.adapters.subjects import Got, Stream, Subject, in_loop

T = TypeVar("T")


class Aiohttp(Subject):
    """aiohttp, in tasks."""

    name = "aiohttp"
    tasks = True
    repeats = keeps = True
    refused = aiohttp.ClientConnectionError
    late = aiohttp.ServerTimeoutError
    broken = (
        aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, aiohttp.ClientResponseError, aiohttp.ClientOSError,
    )  # fmt: skip
    unreached = (aiohttp.ClientConnectorError,)
    slow = (aiohttp.SocketTimeoutError,)
    full = (aiohttp.ConnectionTimeoutError,)

    def __init__(self, wall: seawall.Wall | None, *, connections: int | None = None, **options: Any) -> None:
        through = middleware(wall, **options)
        self.runner = asyncio.Runner()
        self.session = self.run(self._open(through, connections))

    async def _open(self, through: Any, connections: int | None) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=connections or 100)
        return aiohttp.ClientSession(middlewares=(through,), connector=connector)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do it in the client's loop, in the context of the test."""
        return in_loop(self.runner, work)

    def ask(
        self, method: str, url: str, *, body: bytes | Iterable[bytes] | None = None, headers: dict[str, str] | None = None,
        read: float | None = None, redirects: bool = False, wish: dict[str, Any] | None = None,
    ) -> Got:  # fmt: skip
        async def parts(given: Iterable[bytes]) -> Any:
            for part in given:
                yield part

        async def work() -> Got:
            data = body if body is None or isinstance(body, bytes) else parts(body)
            limits = aiohttp.ClientTimeout(total=30, sock_read=read)
            async with self.session.request(
                method, url, data=data, headers=headers, allow_redirects=redirects, timeout=limits
            ) as response:
                return Got(response.status, await response.read())

        return self.run(work())

    def stream(self, url: str) -> Stream:
        async def work() -> aiohttp.ClientResponse:
            return await self.session.get(url)

        async def close() -> None:
            response.close()

        response = self.run(work())
        return Stream(
            response.status, lambda: self.run(response.content.readany()), lambda: self.run(close()), response
        )

    def close(self) -> None:
        self.run(self.session.close())
        self.runner.close()
