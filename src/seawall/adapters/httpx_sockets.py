"""httpcore's network backend, put into one that lets no read, write or connect last longer than the attempt it is for.

A read limit counts from byte to byte: who sends one byte a second is never silent. Here each read is allowed what is left
in all. Which attempt it is for stands in a context variable, :data:`seawall.adapters.attempt.running`.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from .attempt import running

if TYPE_CHECKING:
    from .httpx_family import Family

__all__ = ["paced"]

PIECE = 65536  # bytes written under one limit: a slow reader is looked at in between


def paced(family: Family, transport: Any) -> bool:
    """Pace the pool of ``transport``; whether it has one. Connections that are open already stay as they are."""
    pool = getattr(transport, "_pool", None)
    backend = getattr(pool, "_network_backend", None)
    if pool is None or backend is None:
        return False
    if not isinstance(backend, _Backend):
        kind = _AsyncBackend if hasattr(pool, "handle_async_request") else _SyncBackend
        pool._network_backend = kind(backend, family.core)
    return True


def _cut(own: float | None, late: type[Exception]) -> float | None:
    attempt = running.get()
    if attempt is None or attempt.end == inf:  # a gap comes with a total
        return own
    left = attempt.cut(own)
    if left is not None and left <= 0.0:
        raise late("the time of the attempt is over")
    return left


class _Stream:
    """A connection; what is not paced goes through."""

    def __init__(self, inner: Any, core: Any) -> None:
        self._inner, self._core = inner, core
        self.close = getattr(inner, "close", None)
        self.aclose = getattr(inner, "aclose", None)
        self.get_extra_info = inner.get_extra_info


class _SyncStream(_Stream):
    def read(self, max_bytes: int, timeout: float | None = None) -> Any:
        return self._inner.read(max_bytes, _cut(timeout, self._core.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if not buffer:
            return
        if len(buffer) <= PIECE:
            self._inner.write(buffer, _cut(timeout, self._core.WriteTimeout))
            return
        view = memoryview(buffer)
        for start in range(0, len(buffer), PIECE):
            self._inner.write(view[start : start + PIECE], _cut(timeout, self._core.WriteTimeout))

    def start_tls(self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None) -> Any:
        limit = _cut(timeout, self._core.ConnectTimeout)
        return _SyncStream(self._inner.start_tls(ssl_context, server_hostname, limit), self._core)


class _AsyncStream(_Stream):
    async def read(self, max_bytes: int, timeout: float | None = None) -> Any:
        return await self._inner.read(max_bytes, _cut(timeout, self._core.ReadTimeout))

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), PIECE):
            await self._inner.write(buffer[start : start + PIECE], _cut(timeout, self._core.WriteTimeout))

    async def start_tls(self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None) -> Any:
        limit = _cut(timeout, self._core.ConnectTimeout)
        return _AsyncStream(await self._inner.start_tls(ssl_context, server_hostname, limit), self._core)


class _Backend:
    """A backend; ``sleep`` goes through."""

    def __init__(self, inner: Any, core: Any) -> None:
        self._inner, self._core = inner, core
        self.sleep = inner.sleep


class _SyncBackend(_Backend):
    def connect_tcp(self, host: str, port: int, timeout: float | None = None, **options: Any) -> Any:
        limit = _cut(timeout, self._core.ConnectTimeout)
        return _SyncStream(self._inner.connect_tcp(host, port, timeout=limit, **options), self._core)

    def connect_unix_socket(self, path: str, timeout: float | None = None, **options: Any) -> Any:
        limit = _cut(timeout, self._core.ConnectTimeout)
        return _SyncStream(self._inner.connect_unix_socket(path, timeout=limit, **options), self._core)


class _AsyncBackend(_Backend):
    async def connect_tcp(self, host: str, port: int, timeout: float | None = None, **options: Any) -> Any:
        limit = _cut(timeout, self._core.ConnectTimeout)
        return _AsyncStream(await self._inner.connect_tcp(host, port, timeout=limit, **options), self._core)

    async def connect_unix_socket(self, path: str, timeout: float | None = None, **options: Any) -> Any:
        limit = _cut(timeout, self._core.ConnectTimeout)
        return _AsyncStream(await self._inner.connect_unix_socket(path, timeout=limit, **options), self._core)
