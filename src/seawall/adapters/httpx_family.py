"""httpx and httpx2: one adapter for two libraries that share all but their classes.

A transport stands between the client and its own transport. Time is cut where bytes are read and written: the network
backend of httpcore's pool is put into one that allows each read and write only what is left of the attempt
(:mod:`seawall.adapters.httpx_sockets`). So neither a head nor a body that comes byte by byte lasts longer, in threads and
in tasks, and the client's own time limits stay as they are.
"""

from __future__ import annotations

from math import inf
from types import ModuleType
from typing import Any

from ..errors import SeawallError
from ..wall import Wall
from .attempt import Attempt
from .exchange import Exchange
from .httpx_bodies import AsyncBody, HttpxAnswer, SyncBody
from .httpx_sockets import paced
from .native import Natives
from .protection import Protection, Wish
from .twice import sdk_repeats, warn_of_retries

__all__ = ["AsyncGate", "Family", "Gate", "SyncGate", "protect"]


class Family:
    """What httpx, or httpx2, calls its things.

    Args:
        http: The module ``httpx`` or ``httpx2``.
        core: The module ``httpcore`` or ``httpcore2``.
        module: The adapter in which the errors stand.
    """

    def __init__(self, http: ModuleType, core: ModuleType, module: str) -> None:
        self.http: Any = http
        self.core: Any = core
        # A client takes a stream of its own base class only.
        self.sync_body: Any = type("Body", (SyncBody, self.http.SyncByteStream), {})
        self.async_body: Any = type("AsyncBody", (AsyncBody, self.http.AsyncByteStream), {})
        self.natives = Natives(
            module,
            refused=self.http.TransportError,
            late=self.http.TimeoutException,
            timeouts=(self.http.TimeoutException,),
            unsent=(self.http.ConnectError, self.http.ConnectTimeout),
            own=(self.http.PoolTimeout, self.http.UnsupportedProtocol, self.http.LocalProtocolError),
            request="_request",
        )


class Gate:
    """What the sync and the async transport share: each request goes through it.

    Args:
        wall: Holds the targets. Default: :data:`seawall.adapters.wall`. Or a protection that was made before.
        inner: The transport that does the work. Default: the library's own, as a client without ``transport=`` has it.
        options: As :class:`~seawall.adapters.protection.Protection` takes them.

    Raises:
        TypeError, ConfigError: An option that cannot work.
    """

    family: Family
    inner_kind: str  # name of the transport that is the default

    def __init__(self, wall: Wall | Protection | None = None, *, inner: Any = None, **options: Any) -> None:
        self.protection = Protection.of(wall, options)
        self.inner = inner = getattr(self.family.http, self.inner_kind)() if inner is None else inner
        self.paced = paced(self.family, inner)
        retries = getattr(getattr(inner, "_pool", None), "_retries", 0)
        if isinstance(retries, int) and retries:
            warn_of_retries(
                None, f"{type(inner).__name__}(retries={retries})", retries + 1,
                "Leave retries= away, and give the target a retry.",
            )  # fmt: skip

    def exchange(self, request: Any) -> Exchange:
        """The way of one request."""
        url, wish = request.url, None
        if "seawall" in request.extensions:
            wish = _wish(request.extensions["seawall"])
        origin = url.raw_scheme, url.raw_host, url.port  # url.host is decoded anew each time
        target = self.protection.known.get(origin)
        if target is None or wish is not None:
            target = self.protection.find(url.scheme, url.host, url.port, wish, origin)
        again = False
        if target.retry is not None:  # reading a header costs as much as all the policies
            headers = request.headers
            again = self.protection.may_repeat(request.method, headers.get("idempotency-key"), wish) and _is_whole(request)
            sdk = headers.get("x-stainless-retry-count", "0")
            if sdk != "0":
                sdk_repeats(target, sdk)
        first = None if self.protection.first is None else self.protection.first_of(request)
        return Exchange(target, self.protection, self.family.natives, again, first)

    def prepare(self, attempt: Attempt, request: Any) -> None:
        """Tell the callee what is left, and wait no longer than that for a connection."""
        left = attempt.remaining()
        for name, value in self.protection.told(left, request.headers).items():
            request.headers[name] = value
        limits = request.extensions.get("timeout")
        cut = {"pool": left} if self.paced else dict.fromkeys(("connect", "read", "write", "pool"), left)
        if limits is not None:
            cut = {name: left if limits.get(name) is None else min(left, limits[name]) for name in cut}
        request.extensions = {**request.extensions, "timeout": {**(limits or {}), **cut}}


def _wish(wish: Any) -> Wish:
    if not isinstance(wish, dict) or set(wish) - {"target", "idempotent"}:
        raise TypeError(f'extensions={{"seawall": ...}} takes {{"target": "CORE", "idempotent": True}}, not {wish!r}')
    return Wish(wish.get("target"), wish.get("idempotent"))


class SyncGate(Gate):
    """The way of a request in a thread."""

    inner_kind = "HTTPTransport"

    def handle_request(self, request: Any) -> Any:
        """Send ``request`` behind its target's policies, and return the response."""
        if not request.url.raw_host:
            return self.inner.handle_request(request)  # which says what is wrong with it

        def send(attempt: Attempt) -> HttpxAnswer:
            if attempt.end != inf:
                self.prepare(attempt, request)
            response = self.inner.handle_request(request)
            return HttpxAnswer(response, self.family.sync_body(response.stream, attempt, self, request))

        try:
            return self.exchange(request).run(send)
        except SeawallError as error:
            raise self.family.natives.of(error, request) from None

    def __enter__(self) -> Any:
        """Open the transport inside."""
        self.inner.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        """Close the transport inside."""
        self.inner.__exit__(*error)

    def close(self) -> None:
        """Close the transport inside."""
        self.inner.close()


class AsyncGate(Gate):
    """The way of a request in a task."""

    inner_kind = "AsyncHTTPTransport"

    async def handle_async_request(self, request: Any) -> Any:
        """Send ``request`` behind its target's policies, and return the response."""
        if not request.url.raw_host:
            return await self.inner.handle_async_request(request)

        async def send(attempt: Attempt) -> HttpxAnswer:
            if attempt.end != inf:
                self.prepare(attempt, request)
            waiting = self.inner.handle_async_request(request)
            # Without sockets to go by it is cancelled at the end.
            response = await (waiting if self.paced or attempt.end == inf else _until(attempt, waiting))
            return HttpxAnswer(response, self.family.async_body(response.stream, attempt, self, request))

        try:
            return (await self.exchange(request).arun(send)).response
        except SeawallError as error:
            raise self.family.natives.of(error, request) from None

    async def __aenter__(self) -> Any:
        """Open the transport inside."""
        await self.inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        """Close the transport inside."""
        await self.inner.__aexit__(*error)

    async def aclose(self) -> None:
        """Close the transport inside."""
        await self.inner.aclose()


async def _until(attempt: Attempt, waiting: Any) -> Any:
    from ..drivers.ends import until  # not at the top: it imports asyncio

    return await until(attempt, waiting)


def protect(client: Any, kind: type[Gate], protection: Protection) -> None:
    """Put each transport of ``client`` into one of ``kind``, unless it is one already."""
    transport, mounts = getattr(client, "_transport", None), getattr(client, "_mounts", None)
    if transport is None or not isinstance(mounts, dict):
        raise TypeError(
            f"protect() takes a Client or an AsyncClient, not {client!r}: for others write  transport=Transport(wall)"
        )
    if not isinstance(transport, Gate):
        client._transport = kind(protection, inner=transport)
    for pattern, mounted in mounts.items():
        if mounted is not None and not isinstance(mounted, Gate):
            mounts[pattern] = kind(protection, inner=mounted)


def _is_whole(request: Any) -> bool:
    """Whether its body is at hand, and can be sent a second time."""
    try:
        return request.content is not None
    except RuntimeError:  # RequestNotRead: it comes from an iterator
        return False
