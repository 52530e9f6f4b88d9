"""requests, for the conformance suite."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import requests
from urllib3.exceptions import EmptyPoolError

import seawall
from seawall.adapters.requests import Adapter
from tests.adapters.subjects import Got, Stream, Subject


class Requests(Subject):
    """requests, in threads."""

    name = "requests"
    refused = requests.exceptions.ConnectionError
    late = requests.exceptions.ReadTimeout
    broken = (requests.exceptions.ConnectionError, requests.exceptions.ChunkedEncodingError)
    unreached = (requests.exceptions.ConnectionError,)
    slow = (requests.exceptions.ReadTimeout,)
    full = (EmptyPoolError,)

    def __init__(self, wall: seawall.Wall | None, *, connections: int | None = None, **options: Any) -> None:
        more: dict[str, Any] = {} if connections is None else {"pool_maxsize": connections, "pool_block": True}
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.mount("http://", Adapter(wall, **more, **options))

    def ask(
        self, method: str, url: str, *, body: bytes | Iterable[bytes] | None = None, headers: dict[str, str] | None = None,
        read: float | None = None, redirects: bool = False, wish: dict[str, Any] | None = None,
    ) -> Got:  # fmt: skip
        limits = (5.0, read or 5.0)
        response = self.session.request(
            method, url, data=body, headers=headers, timeout=limits, allow_redirects=redirects
        )
        return Got(response.status_code, response.content)

    def stream(self, url: str) -> Stream:
        response = self.session.get(url, stream=True, timeout=5.0, allow_redirects=False)
        parts = response.iter_content(1)
        return Stream(response.status_code, lambda: next(parts, b""), response.close, response)

    def close(self) -> None:
        self.session.close()
