"""Starlette behind Seawall's middleware: ``uvicorn --app-dir examples/adapters asgi_app:app --port 8015``."""

import asyncio
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

import seawall
from seawall.adapters.asgi import Middleware

core = seawall.Target("CORE", breaker=seawall.CircuitBreaker(1, reset_timeout=30.0))


@core
async def ask_core() -> str:
    raise ConnectionError("CORE is down")


def said() -> str:
    left = seawall.remaining()
    return "no budget\n" if left is None else f"{left:.1f} s left\n"


async def left(request: Request) -> PlainTextResponse:
    return PlainTextResponse(said())


def left_in_a_thread(request: Request) -> PlainTextResponse:
    return PlainTextResponse(said())


async def slow(request: Request) -> PlainTextResponse:
    await asyncio.sleep(30)
    return PlainTextResponse("nobody waits for this\n")


async def balance(request: Request) -> PlainTextResponse:
    try:
        return PlainTextResponse(await ask_core())
    except ConnectionError as error:  # a refusal of Seawall's goes on to the middleware
        return PlainTextResponse(f"{error}\n", 502)


async def ticks(request: Request) -> StreamingResponse:
    async def parts() -> AsyncIterator[str]:
        for number in range(20):
            yield f"{number} "
            await asyncio.sleep(0.1)
        yield said()

    return StreamingResponse(parts(), media_type="text/plain")


app = Starlette(routes=[
    Route("/left", left),
    Route("/left-in-a-thread", left_in_a_thread),
    Route("/slow", slow),
    Route("/balance", balance),
    Route("/ticks", ticks),
])  # fmt: skip
app.add_middleware(Middleware, max_ms=10_000, default_ms=1_000)
