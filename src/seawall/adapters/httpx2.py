"""Budget, breaker and bulkhead for httpx2: ``pip install seawall[httpx2]``.

::

    client = seawall.adapters.httpx2.protect(httpx2.Client(), wall)

or, where the client is made::

    client = httpx2.AsyncClient(transport=seawall.adapters.httpx2.AsyncTransport(wall))

For httpx see :mod:`seawall.adapters.httpx`: its classes are others, and the two do not mix.
"""

from __future__ import annotations

from typing import Any, TypeVar

from ..wall import Wall
from .extras import needing
from .httpx_family import AsyncGate, Family, SyncGate
from .httpx_family import protect as _protect
from .protection import Protection

with needing("httpx2"):
    import httpcore2
    import httpx2

__all__ = ["AsyncTransport", "Transport", "protect"]

C = TypeVar("C", httpx2.Client, httpx2.AsyncClient)

_family = Family(httpx2, httpcore2, __name__)
natives = _family.natives


class Transport(SyncGate, httpx2.BaseTransport):
    """A transport for :class:`httpx2.Client` whose requests go through the targets of ``wall``.

    Arguments as of :class:`~seawall.adapters.httpx_family.Gate`. Errors that come out of a request are Seawall's and
    httpx2's: a refusal is an ``httpx2.TransportError``, the end of the budget or of ``total`` an
    ``httpx2.TimeoutException``.
    """

    family = _family


class AsyncTransport(AsyncGate, httpx2.AsyncBaseTransport):
    """:class:`Transport` for :class:`httpx2.AsyncClient`. Waiting, in line and between attempts, is asyncio's."""

    family = _family


def protect(client: C, wall: Wall | Protection | None = None, **options: Any) -> C:
    """Let all requests of ``client`` go through the targets of ``wall``; its mounts and proxies too. Returns ``client``.

    Args:
        client: Not used yet: connections that are open already are not cut at the end of a budget.
        wall: Holds the targets. Default: :data:`seawall.adapters.wall`. Or a protection that was made before.
        options: As :class:`~seawall.adapters.protection.Protection` takes them.
    """
    kind = AsyncTransport if isinstance(client, httpx2.AsyncClient) else Transport
    _protect(client, kind, Protection.of(wall, options))
    return client
