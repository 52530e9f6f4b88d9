"""Budget, breaker and bulkhead for httpx: ``pip install seawall[httpx]``.

::

    client = seawall.adapters.httpx.protect(httpx.Client(), wall)

or, where the client is made::

    client = httpx.AsyncClient(transport=seawall.adapters.httpx.AsyncTransport(wall))

For httpx2 see :mod:`seawall.adapters.httpx2`: its classes are others, and the two do not mix.
"""

from __future__ import annotations

from typing import Any, TypeVar

import httpcore
import httpx

from ..wall import Wall
from .httpx_family import AsyncGate, Family, Gate, SyncGate
from .httpx_family import protect as _protect
from .protection import Protection

__all__ = ["AsyncTransport", "Transport", "protect"]

C = TypeVar("C", httpx.Client, httpx.AsyncClient)

_family = Family(httpx, httpcore, __name__)
natives = _family.natives


class Transport(SyncGate, httpx.BaseTransport):
    """A transport for :class:`httpx.Client` whose requests go through the targets of ``wall``.

    Args:
        wall: Holds the targets. Default: :data:`seawall.adapters.wall`.
        inner: The transport that does the work. Default: ``httpx.HTTPTransport()``.
        options: As :class:`~seawall.adapters.protection.Protection` takes them: ``target``, ``headers``, ``idempotent``,
            ``total``, ``first``.

    Raises:
        TypeError, ConfigError: An option that cannot work.

    Errors that come out of a request are Seawall's and httpx's: a refusal is an ``httpx.TransportError``, the end of the
    budget or of ``total`` an ``httpx.TimeoutException``.
    """

    def __init__(self, wall: Wall | None = None, *, inner: httpx.BaseTransport | None = None, **options: Any) -> None:
        super().__init__(_family, httpx.HTTPTransport() if inner is None else inner, Protection(wall, **options))


class AsyncTransport(AsyncGate, httpx.AsyncBaseTransport):
    """:class:`Transport` for :class:`httpx.AsyncClient`. Waiting, in line and between attempts, is asyncio's."""

    def __init__(
        self, wall: Wall | None = None, *, inner: httpx.AsyncBaseTransport | None = None, **options: Any
    ) -> None:
        super().__init__(_family, httpx.AsyncHTTPTransport() if inner is None else inner, Protection(wall, **options))


def protect(client: C, wall: Wall | Protection | None = None, **options: Any) -> C:
    """Let all requests of ``client`` go through the targets of ``wall``; its mounts and proxies too. Returns ``client``.

    Args:
        client: Not used yet: connections that are open already are not cut at the end of a budget.
        wall: Holds the targets. Default: :data:`seawall.adapters.wall`. Or a protection that was made before.
        options: As :class:`Transport` takes them.
    """
    protection = wall if isinstance(wall, Protection) else Protection(wall, **options)
    kind: type[Gate] = AsyncGate if isinstance(client, httpx.AsyncClient) else SyncGate
    outside = AsyncTransport if kind is AsyncGate else Transport

    def wrap(inner: Any) -> Any:
        transport: Any = outside.__new__(outside)
        Gate.__init__(transport, _family, inner, protection)
        return transport

    _protect(client, wrap, kind)
    return client
