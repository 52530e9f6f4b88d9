"""aiohttp with a retry, a budget and a breaker, against `seawall partner`; its URL may be given as argument."""

import asyncio
import sys

import aiohttp

import seawall
from seawall.adapters.aiohttp import middleware

partner = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8014"
wall = seawall.Wall()
wall.target("CORE", retry=seawall.Retry(3, base_delay=0.01), breaker=seawall.CircuitBreaker(3, reset_timeout=30.0))


async def status(session: aiohttp.ClientSession, path: str) -> int:
    async with session.get(partner + path) as response:
        await response.read()
        return response.status


async def main() -> None:
    async with aiohttp.ClientSession(middlewares=(middleware(wall, target="CORE"),)) as session:
        print("fails twice:", await status(session, "/flaky?fail=2&key=aiohttp"))
        try:
            with seawall.budget(0.3):
                await status(session, "/drip?bytes=1000&every_ms=50")
        except aiohttp.ServerTimeoutError as error:
            print("a byte each 50 ms:", type(error).__name__)
        print("is down:", await status(session, "/status/500"))
        try:
            await status(session, "/status/200")
        except aiohttp.ClientConnectionError as error:
            print("is left alone:", type(error).__name__)


asyncio.run(main())
