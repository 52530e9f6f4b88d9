"""What only tasks and threads can show: cancellation, many at once, context variables, and what a loop goes on doing."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Iterator
from typing import Any

import aiohttp
import httpx
import httpx2
import pytest

import seawall
from seawall import Bulkhead, CircuitBreaker, Retry, Wall
from seawall.adapters import aiohttp as aiohttp_adapter
from seawall.adapters import httpx as httpx_adapter
from seawall.adapters import httpx2 as httpx2_adapter
from tests.adapters.served import Served

WHO = contextvars.ContextVar("who", default="nobody")


class Httpx:
    """One GET through httpx, or httpx2."""

    def __init__(self, http: Any, adapter: Any, wall: Wall) -> None:
        self.client = adapter.protect(http.AsyncClient(trust_env=False, timeout=30), wall, target="CORE")

    async def get(self, url: str) -> int:
        return int((await self.client.get(url)).status_code)

    async def close(self) -> None:
        await self.client.aclose()


class Aiohttp:
    """One GET through aiohttp."""

    def __init__(self, wall: Wall) -> None:
        self.session = aiohttp.ClientSession(middlewares=(aiohttp_adapter.middleware(wall, target="CORE"),))

    async def get(self, url: str) -> int:
        async with self.session.get(url) as response:
            await response.read()
            return response.status

    async def close(self) -> None:
        await self.session.close()


def made(name: str, wall: Wall) -> Any:
    if name == "aiohttp":
        return Aiohttp(wall)
    return Httpx(httpx, httpx_adapter, wall) if name == "httpx" else Httpx(httpx2, httpx2_adapter, wall)


every_client = pytest.mark.parametrize("name", ["httpx", "httpx2", "aiohttp"])


def in_flight(wall: Wall) -> int:
    bulkhead = wall["CORE"].snapshot().bulkhead
    assert bulkhead is not None
    return bulkhead.in_flight


@every_client
@pytest.mark.parametrize("path", ["/hang", "/drip?ms=20", "/driphead?ms=20"])
def test_a_task_that_is_cancelled_gives_its_place_back(name: str, path: str, served: Served) -> None:
    """The cancellation comes out as one, the target is not blamed, and its connection is closed."""

    async def main() -> None:
        wall = Wall()
        wall.target("CORE", breaker=CircuitBreaker(1), bulkhead=Bulkhead(1))
        client = made(name, wall)
        task = asyncio.create_task(client.get(served.url + path))
        while not served.asked:
            await asyncio.sleep(0.005)
        assert in_flight(wall) == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert in_flight(wall) == 0
        assert wall["CORE"].breaker is not None
        assert wall["CORE"].breaker.state == "CLOSED"
        assert await client.get(f"{served.url}/ok") == 200
        await client.close()

    asyncio.run(main())
    assert served.left.wait(10)


@every_client
def test_many_at_once_stand_in_line(name: str, served: Served) -> None:
    async def main() -> None:
        wall = Wall()
        wall.target("CORE", bulkhead=Bulkhead(3, max_queue=50))
        client = made(name, wall)
        assert await asyncio.gather(*(client.get(f"{served.url}/slow?ms=5") for _ in range(30))) == [200] * 30
        bulkhead = wall["CORE"].snapshot().bulkhead
        assert bulkhead is not None
        assert (bulkhead.peak_active, bulkhead.in_flight, bulkhead.completed) == (3, 0, 30)
        await client.close()

    asyncio.run(main())


@every_client
def test_a_wait_between_attempts_leaves_the_loop_running(name: str, served: Served) -> None:
    async def main() -> int:
        wall = Wall()
        wall.target("CORE", breaker=CircuitBreaker(9), retry=Retry(2, base_delay=0.2, jitter=None, retry_budget=None))
        client = made(name, wall)
        ticks, task = 0, asyncio.create_task(client.get(f"{served.url}/flaky?fail=1"))
        while not task.done():
            await asyncio.sleep(0.01)
            ticks += 1
        assert await task == 200
        await client.close()
        return ticks

    assert asyncio.run(main()) >= 5


@every_client
def test_each_request_has_the_budget_of_its_own_task(name: str, served: Served) -> None:
    async def one(client: Any, seconds: float) -> None:
        WHO.set(str(seconds))
        async with seawall.budget(seconds):
            assert await client.get(f"{served.url}/ok?for={seconds}") == 200
        assert WHO.get() == str(seconds)

    async def main() -> None:
        client = made(name, Wall())
        await asyncio.gather(*(one(client, seconds) for seconds in (1.0, 5.0, 9.0)))
        await client.close()

    asyncio.run(main())
    for asked in served.asked:
        most = float(asked.path.partition("for=")[2]) * 1000
        assert most - 900 < int(asked.headers["x-budget-ms"]) <= most


@pytest.mark.parametrize(("http", "adapter"), [(httpx, httpx_adapter), (httpx2, httpx2_adapter)])
def test_threads_share_a_client_and_its_target(http: Any, adapter: Any, served: Served) -> None:
    wall = Wall()
    statuses: list[int] = []
    wall.target("CORE", bulkhead=Bulkhead(3, max_queue=50))
    with adapter.protect(http.Client(trust_env=False), wall, target="CORE") as client:

        def work() -> None:
            statuses.extend(client.get(f"{served.url}/slow?ms=2").status_code for _ in range(5))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    bulkhead = wall["CORE"].snapshot().bulkhead
    assert bulkhead is not None
    assert (statuses, bulkhead.peak_active, bulkhead.in_flight) == ([200] * 40, 3, 0)


@pytest.mark.parametrize(("http", "adapter"), [(httpx, httpx_adapter), (httpx2, httpx2_adapter)])
def test_a_transport_without_sockets_is_cut_as_well(http: Any, adapter: Any) -> None:
    """An application in the same process, as in tests: in tasks it is cancelled at the end."""

    async def hang(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(60)

    async def main() -> None:
        transport = adapter.AsyncTransport(Wall(), inner=http.ASGITransport(app=hang))
        async with http.AsyncClient(transport=transport, base_url="http://app") as client:
            with seawall.budget(0.1), pytest.raises(seawall.DeadlineExceededError) as error:
                await client.get("/")
            assert isinstance(error.value, http.TimeoutException)

    asyncio.run(main())


@pytest.mark.parametrize(("http", "adapter"), [(httpx, httpx_adapter), (httpx2, httpx2_adapter)])
def test_an_interrupt_in_a_body_is_no_answer(http: Any, adapter: Any) -> None:
    """Ctrl-C while a body is read says nothing about the target: its row of failures stands."""

    def parts(self: object) -> Iterator[bytes]:
        yield b"half"
        raise KeyboardInterrupt

    interrupted = type("Interrupted", (http.SyncByteStream,), {"__iter__": parts})

    def answer(request: Any) -> Any:
        return http.Response(503) if request.url.path == "/bad" else http.Response(200, stream=interrupted())

    wall = Wall()
    wall.target("CORE", breaker=CircuitBreaker(9))
    transport = adapter.Transport(wall, inner=http.MockTransport(answer), target="CORE")
    with http.Client(transport=transport, base_url="http://core") as client:
        assert client.get("/bad").status_code == 503
        with pytest.raises(KeyboardInterrupt):
            client.get("/good")
    breaker, bulkhead = wall["CORE"].snapshot().breaker, wall["CORE"].snapshot().bulkhead
    assert breaker is not None
    assert bulkhead is not None
    assert (breaker.failures, bulkhead.in_flight) == (1, 0)


@pytest.mark.parametrize(("http", "adapter"), [(httpx, httpx_adapter), (httpx2, httpx2_adapter)])
def test_a_request_that_cannot_be_sent_is_nobodys_failure(http: Any, adapter: Any) -> None:
    wall = Wall()
    wall.target("CORE", breaker=CircuitBreaker(1), retry=Retry(3, base_delay=0.001))
    with adapter.protect(http.Client(trust_env=False), wall, target="CORE") as client:
        for url in ("nowhere", "ftp://core/"):
            with pytest.raises(http.UnsupportedProtocol):
                client.get(url)
    assert wall["CORE"].breaker is not None
    assert (wall["CORE"].breaker.state, in_flight(wall)) == ("CLOSED", 0)


def test_aiohttp_is_not_given_limits_that_it_cannot_hold() -> None:
    for word in ("first", "gap"):
        with pytest.raises(seawall.ConfigError, match=f"{word}= is not for aiohttp"):
            aiohttp_adapter.middleware(Wall(), total=5.0, **{word: 1.0})


@pytest.mark.parametrize(("http", "adapter"), [(httpx, httpx_adapter), (httpx2, httpx2_adapter)])
def test_mounts_are_protected_too_and_twice_is_once(http: Any, adapter: Any, served: Served) -> None:
    wall = Wall()
    client = http.Client(mounts={"http://": http.HTTPTransport()}, trust_env=False)
    assert adapter.protect(adapter.protect(client, wall, target="CORE"), wall, target="CORE") is client
    with client:
        assert client.get(f"{served.url}/ok").status_code == 200
    bulkhead = wall["CORE"].snapshot().bulkhead
    assert bulkhead is not None
    assert bulkhead.completed == 1


@pytest.mark.parametrize(("http", "adapter"), [(httpx, httpx_adapter), (httpx2, httpx2_adapter)])
def test_one_request_may_go_to_another_target(http: Any, adapter: Any, served: Served) -> None:
    wall = Wall()
    wall.target("PAY", breaker=CircuitBreaker(9), retry=Retry(2, base_delay=0.001))
    with adapter.protect(http.Client(trust_env=False), wall, target="CORE") as client:
        wish = {"seawall": {"target": "PAY", "idempotent": True}}
        assert client.post(f"{served.url}/flaky?fail=1", extensions=wish).status_code == 200
        with pytest.raises(TypeError, match="takes"):
            client.get(f"{served.url}/ok", extensions={"seawall": {"targte": "PAY"}})
    assert [target.name for target in wall] == ["PAY"]
    with pytest.raises(TypeError, match=r"takes a Client"):
        adapter.protect(object(), wall)
