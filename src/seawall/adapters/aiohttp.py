"""Budget, breaker and bulkhead for aiohttp's client: ``pip install seawall[aiohttp]``.

::

    session = aiohttp.ClientSession(middlewares=(seawall.adapters.aiohttp.middleware(wall),))

A request with ``middlewares=`` of its own goes by those alone: that is how one request gets another target, and also how
one is sent past Seawall by mistake.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf
from typing import Any, TypeAlias
from weakref import ref

from ..drivers.ends import until
from ..errors import ConfigError, SeawallError
from ..wall import Wall
from .attempt import Attempt
from .exchange import KEEP, Exchange
from .extras import needing
from .native import Natives
from .protection import Protection

with needing("aiohttp"):
    import aiohttp
    from aiohttp.payload import BytesPayload

__all__ = ["middleware"]

Handler: TypeAlias = Callable[[aiohttp.ClientRequest], Awaitable[aiohttp.ClientResponse]]
Middleware: TypeAlias = Callable[[aiohttp.ClientRequest, Handler], Awaitable[aiohttp.ClientResponse]]

PATIENCE = 5.0  # s that the rest of a failed answer is waited for, where nothing else limits

natives = Natives(
    __name__,
    refused=aiohttp.ClientConnectionError,
    late=aiohttp.ServerTimeoutError,
    timeouts=(TimeoutError,),
    unsent=(aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError),
    own=(),
)


def middleware(wall: Wall | None = None, **options: Any) -> Middleware:
    """A client middleware whose requests go through the targets of ``wall``.

    Args:
        wall: Holds the targets. Default: :data:`seawall.adapters.wall`.
        options: As :class:`~seawall.adapters.protection.Protection` takes them: ``target``, ``headers``, ``idempotent``,
            ``total``; not ``first`` and ``gap``, since aiohttp does not tell when a part of a body comes.

    Raises:
        TypeError, ConfigError: An option that cannot work.

    Errors that come out of a request are Seawall's and aiohttp's: a refusal is an ``aiohttp.ClientConnectionError``, the
    end of the budget or of ``total`` an ``aiohttp.ServerTimeoutError``, and so a ``TimeoutError``.
    """
    for word, instead in (("first", "total= here"), ("gap", "sock_read= of aiohttp's ClientTimeout")):
        if options.get(word) is not None:
            raise ConfigError(f"{word}= is not for aiohttp, which does not tell when a part comes: take {instead}")
    protection = Protection(wall, **options)

    async def through(request: aiohttp.ClientRequest, handler: Handler) -> aiohttp.ClientResponse:
        url = request.url
        target = protection.find(url.scheme, url.host or "", url.port)
        again = False
        if target.retry is not None:
            key = request.headers.get("Idempotency-Key")
            again = protection.may_repeat(request.method, key) and _is_whole(request.body)
            if hasattr(request.session, "_retry_connection"):
                request.session._retry_connection = False  # its own second attempt on a lost connection: loops multiply

        async def send(attempt: Attempt) -> _Answer:
            if attempt.end == inf:
                return _Answer(await handler(request), attempt)
            request.headers.update(protection.told(attempt.remaining(), request.headers))
            return _Answer(await until(attempt, handler(request)), attempt)

        try:
            response: aiohttp.ClientResponse = (await Exchange(target, protection, natives, again).arun(send)).response
        except SeawallError as error:
            raise natives.of(error) from None
        return response

    return through


def _is_whole(body: object) -> bool:
    """Whether it is at hand, and can be sent a second time."""
    return isinstance(body, (bytes, BytesPayload))


class _Answer:
    """A response; see :class:`seawall.adapters.exchange.Answer`."""

    __slots__ = ("_attempt", "response", "status")

    def __init__(self, response: aiohttp.ClientResponse, attempt: Attempt) -> None:
        self.response, self.status, self._attempt = response, response.status, attempt
        content = response.content
        if content.is_eof() and content.exception() is None:  # it came with its head
            attempt.finish()
            return
        watch = _Watch(response, attempt)
        if response.connection is not None:
            response.connection.add_callback(watch.released)
        content.on_eof(watch.released)

    def header(self, name: str) -> str | None:
        """The value of a header, or ``None``."""
        value: str | None = self.response.headers.get(name)
        return value

    async def keep(self) -> bool:
        """Read the body, if it is short: whether it is at hand as a whole now."""
        content, length = self.response.content, self.response.content_length
        if length is not None and length > KEEP:
            return False
        with suppress(TimeoutError, aiohttp.ClientError, OSError):
            async with asyncio.timeout(min(PATIENCE, self._attempt.remaining())):
                await content.wait_eof()
            await self.response.read()
            return True
        return False  # whoever reads it gets to see why


class _Watch:
    """Holds the attempt's place until the body has come, and ends the body with the attempt's time.

    It knows the response by a weak reference: who drops one gives its connection back at once, as ever.
    """

    __slots__ = ("_attempt", "_content", "_response", "_timer")

    def __init__(self, response: aiohttp.ClientResponse, attempt: Attempt) -> None:
        self._attempt, self._content, self._response = attempt, response.content, ref(response)
        self._timer: asyncio.TimerHandle | None = None
        if attempt.end != inf and not response.content.is_eof():
            self._timer = asyncio.get_running_loop().call_later(attempt.remaining(), self._cut)

    def _cut(self) -> None:
        """The time is over, and the body is not."""
        error = natives.of(self._attempt.exceeded())
        self._attempt.broke(error, natives)
        self._content.set_exception(error)
        response = self._response()
        if response is not None:
            response.close()

    def released(self) -> None:
        """The body has come, or its connection is of no more use."""
        if self._timer is not None:
            self._timer.cancel()
        error = self._content.exception()
        if isinstance(error, (aiohttp.ClientPayloadError, OSError)):  # else it was closed by its reader
            self._attempt.broke(error, natives)
        else:
            self._attempt.finish()
