"""The clients of the conformance suite, each behind the same few methods, so that one set of cases does for all.

A sync client is called as it is; an async one in an event loop of its own, one step after another, so that a case can be
written as if it were sync. What only tasks can do stands in ``test_tasks.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import seawall

T = TypeVar("T")


class Got(NamedTuple):
    """An answer, read to its end."""

    status: int
    body: bytes


class Stream:
    """An answer whose body is read as the test wants."""

    def __init__(
        self, status: int, part: Callable[[], bytes], close: Callable[[], object], response: Any = None
    ) -> None:
        self.status, self.part, self.close, self.response = status, part, close, response  # part: b"" at the end


class Subject:
    """One client behind an adapter.

    Attributes:
        name: For the table.
        refused, late: The client's own classes that our errors are of as well.
        broken: What it raises itself where an answer breaks off.
        unreached: What it raises itself where nobody listens.
        slow: What it raises itself at its own read limit.
        full: What it raises itself where its own pool has no connection free; ``None``: it cannot be told to.
        body_late: What comes out of a body that is read past the end of the time.
    """

    name = ""
    tasks = False
    repeats = False  # whether the client itself sends once more what failed by a lost connection
    keeps = False  # whether a response that was dropped stays alive until its connection ends
    refused: type[Exception]
    late: type[Exception]
    broken: tuple[type[Exception], ...]
    unreached: tuple[type[Exception], ...]
    slow: tuple[type[Exception], ...]
    full: tuple[type[Exception], ...] | None = None
    body_late: tuple[type[BaseException], ...] = (seawall.DeadlineExceededError, seawall.TimeoutExceededError)

    def __init__(self, wall: seawall.Wall | None, *, connections: int | None = None, **options: Any) -> None:
        raise NotImplementedError

    def ask(
        self, method: str, url: str, *, body: bytes | Iterable[bytes] | None = None, headers: dict[str, str] | None = None,
        read: float | None = None, redirects: bool = False, wish: dict[str, Any] | None = None,
    ) -> Got:  # fmt: skip
        """A request, and its answer read to its end. ``read``: the client's own limit of silence, in seconds."""
        raise NotImplementedError

    def stream(self, url: str) -> Stream:
        """A GET whose body is read as the test wants."""
        raise NotImplementedError

    def close(self) -> None:
        """The end of the client."""
        raise NotImplementedError

    def get(self, url: str, **more: Any) -> Got:
        """:meth:`ask` with GET."""
        return self.ask("GET", url, **more)


class HttpxSync(Subject):
    """httpx, and httpx2, in threads."""

    http: Any
    adapter: Any

    def __init__(self, wall: seawall.Wall | None, *, connections: int | None = None, **options: Any) -> None:
        limits = self.http.Limits(max_connections=connections) if connections else self.http.Limits()
        client = self.http.Client(timeout=self.http.Timeout(5.0), limits=limits, trust_env=False)
        self.client = self.adapter.protect(client, wall, **options)

    def _request(
        self, method: str, url: str, body: Any, headers: dict[str, str] | None, read: float | None, wish: Any
    ) -> Any:
        more: dict[str, Any] = {} if read is None else {"timeout": self.http.Timeout(5.0, read=read)}
        if wish is not None:
            more["extensions"] = {"seawall": wish}
        return self.client.build_request(method, url, content=body, headers=headers, **more)

    def ask(
        self, method: str, url: str, *, body: bytes | Iterable[bytes] | None = None, headers: dict[str, str] | None = None,
        read: float | None = None, redirects: bool = False, wish: dict[str, Any] | None = None,
    ) -> Got:  # fmt: skip
        request = self._request(method, url, body, headers, read, wish)
        response = self.client.send(request, follow_redirects=redirects)
        return Got(response.status_code, response.content)

    def stream(self, url: str) -> Stream:
        response = self.client.send(self.client.build_request("GET", url), stream=True)
        parts = response.iter_raw()
        return Stream(response.status_code, lambda: next(parts, b""), response.close, response)

    def close(self) -> None:
        self.client.close()


class HttpxAsync(HttpxSync):
    """httpx, and httpx2, in tasks."""

    tasks = True

    def __init__(self, wall: seawall.Wall | None, *, connections: int | None = None, **options: Any) -> None:
        self.runner = asyncio.Runner()
        limits = self.http.Limits(max_connections=connections) if connections else self.http.Limits()
        client = self.http.AsyncClient(timeout=self.http.Timeout(5.0), limits=limits, trust_env=False)
        self.client = self.adapter.protect(client, wall, **options)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do it in the client's loop, in the context of the test."""
        return in_loop(self.runner, work)

    def ask(
        self, method: str, url: str, *, body: bytes | Iterable[bytes] | None = None, headers: dict[str, str] | None = None,
        read: float | None = None, redirects: bool = False, wish: dict[str, Any] | None = None,
    ) -> Got:  # fmt: skip
        async def work() -> Got:
            content = body if body is None or isinstance(body, bytes) else _aiter(body)
            request = self._request(method, url, content, headers, read, wish)
            response = await self.client.send(request, follow_redirects=redirects)
            return Got(response.status_code, response.content)

        return self.run(work())

    def stream(self, url: str) -> Stream:
        async def work() -> Any:
            return await self.client.send(self.client.build_request("GET", url), stream=True)

        response = self.run(work())
        parts = response.aiter_raw()

        async def part() -> bytes:
            return await anext(parts, b"")

        return Stream(response.status_code, lambda: self.run(part()), lambda: self.run(response.aclose()), response)

    def close(self) -> None:
        self.run(self.client.aclose())
        self.runner.close()


def in_loop(runner: asyncio.Runner, work: Coroutine[Any, Any, T]) -> T:
    """Run it in the loop, with the context variables of this moment: the budget of the test is in force."""
    import contextvars

    return runner.run(work, context=contextvars.copy_context())


async def _aiter(parts: Iterable[bytes]) -> Any:
    for part in parts:
        yield part


def _httpx(kind: type[HttpxSync], module: str) -> type[Subject]:
    from importlib import import_module

    http = import_module(module)
    names = {
        "name": f"{module} {'async' if kind.tasks else 'sync'}", "http": http,
        "adapter": import_module(f"seawall.adapters.{module}"),
        "refused": http.TransportError, "late": http.TimeoutException,
        "broken": (http.RemoteProtocolError, http.ReadError), "unreached": (http.ConnectError,),
        "slow": (http.ReadTimeout,), "full": (http.PoolTimeout,),
    }  # fmt: skip
    return type(f"{kind.__name__}_{module}", (kind,), names)


def subjects() -> Iterator[type[Subject]]:
    """All of them."""
    from tests.adapters import subject_aiohttp, subject_requests, subject_urllib3

    for module in ("httpx", "httpx2"):
        yield _httpx(HttpxSync, module)
        yield _httpx(HttpxAsync, module)
    yield subject_requests.Requests
    yield subject_urllib3.Urllib3
    yield subject_aiohttp.Aiohttp
