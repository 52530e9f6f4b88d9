"""urllib3, for the conformance suite."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import urllib3
from urllib3.exceptions import EmptyPoolError, HTTPError, MaxRetryError, ProtocolError, ReadTimeoutError
from urllib3.exceptions import TimeoutError as LimitError

import seawall
from seawall.adapters.urllib3 import protect
from tests.adapters.subjects import Got, Stream, Subject


class Urllib3(Subject):
    """urllib3, in threads."""

    name = "urllib3"
    refused = HTTPError
    late = LimitError
    broken = (MaxRetryError, ProtocolError)
    unreached = (MaxRetryError,)
    slow = (MaxRetryError, ReadTimeoutError)
    full = (EmptyPoolError,)

    def __init__(self, wall: seawall.Wall | None, *, connections: int | None = None, **options: Any) -> None:
        more: dict[str, Any] = {} if connections is None else {"maxsize": connections, "block": True}
        self.client = protect(urllib3.PoolManager(timeout=5.0, **more), wall, **options)

    def ask(
        self, method: str, url: str, *, body: bytes | Iterable[bytes] | None = None, headers: dict[str, str] | None = None,
        read: float | None = None, redirects: bool = False, wish: dict[str, Any] | None = None,
    ) -> Got:  # fmt: skip
        more: dict[str, Any] = {} if read is None else {"timeout": urllib3.Timeout(5.0, read=read)}
        response = self.client.request(method, url, body=body, headers=headers, redirect=redirects, **more)
        return Got(response.status, response.data)

    def stream(self, url: str) -> Stream:
        response = self.client.request("GET", url, preload_content=False, redirect=False)
        parts = response.stream(1)
        return Stream(response.status, lambda: next(parts, b""), response.close, response)

    def close(self) -> None:
        self.client.clear()
