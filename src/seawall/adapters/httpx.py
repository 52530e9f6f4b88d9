"""Budget, breaker and bulkhead for httpx: ``pip install seawall[httpx]``.

::

    client = seawall.adapters.httpx.protect(httpx.Client(), wall)

or, where the client is made::

    client = httpx.AsyncClient(transport=seawall.adapters.httpx.AsyncTransport(wall))

For httpx2 see :mod:`seawall.adapters.httpx2`: its classes are others, and the two do not mix.
"""

from __future__ import annotations

from typing import Any, TypeVar

from ..wall import Wall
from .extras import needing
from .httpx_family import AsyncGate, Family, SyncGate
from .httpx_family import protect as _protect
from .protection import Protection

with needing("httpx"):
    import httpcore
    import httpx

__all__ = ["AsyncTransport", "Transport", "protect"]

C = TypeVar("C", httpx.Client, httpx.AsyncClient)

_family = Family(httpx, httpcore, __name__)
natives = _family.natives


class Transport(SyncGate, httpx.BaseTransport):
    """A transport for :class:`httpx.Client` whose requests go through the targets of ``wall``.

    Arguments as of :class:`~seawall.adapters.httpx_family.Gate`. Errors that come out of a request are Seawall's and
    httpx's: a refusal is an ``httpx.TransportError``, the end of the budget or of ``total`` an
    ``httpx.TimeoutException``.
    """

    family = _family


class AsyncTransport(AsyncGate, httpx.AsyncBaseTransport):
    """:class:`Transport` for :class:`httpx.AsyncClient`. Waiting, in line and between attempts, is asyncio's."""

    family = _family


def protect(client: C, wall: Wall | Protection | None = None, **options: Any) -> C:
    """Let all requests of ``client`` go through the targets of ``wall``; its mounts and proxies too. Returns ``client``.

    Args:
        client: Not used yet: connections that are open already are not cut at the end of a budget.
        wall: Holds the targets. Default: :data:`seawall.adapters.wall`. Or a protection that was made before.
        options: As :class:`~seawall.adapters.protection.Protection` takes them.
    """
    kind = AsyncTransport if isinstance(client, httpx.AsyncClient) else Transport
    _protect(client, kind, Protection.of(wall, options))
    return client
