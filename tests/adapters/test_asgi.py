"""The ASGI middleware: whose time a request has, what ends it, and what is answered then; bare, and under real servers."""

from __future__ import annotations

import asyncio
import contextvars
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any

import pytest

import seawall
from seawall import BudgetHeaders, ConfigError
from seawall.adapters.asgi import Middleware
from tests.adapters.webservers import Server, a_long_stream_outlives_the_default_and_not_its_callers_budget, running
from tests.aio import run_async

SHORT, LATE = 0.1, 10.0  # s: what ends by itself, and what would be far too late

OPEN = seawall.CircuitOpenError("CORE", "is open", "OPEN", 1.2)
START = {"type": "http.response.start", "status": 200, "headers": []}
Send = Callable[[dict[str, Any]], Awaitable[None]]
Work = Callable[[Send], Awaitable[None]]


def part(body: bytes, more: bool = True) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}


class Asked:
    """One request to an app behind the middleware, as a server would make it."""

    def __init__(self, work: Work, method: str = "GET", headers: Any = (), **settings: Any) -> None:
        self.sent: list[dict[str, Any]] = []
        self.called = False

        async def app(scope: Any, receive: Any, send: Any) -> None:
            self.called = True
            await work(send)

        self._through = Middleware(app, **settings)
        self._scope = {"type": "http", "method": method, "headers": headers}

    async def served(self) -> Asked:
        async def receive() -> dict[str, Any]:
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            self.sent.append(dict(message))

        await self._through(self._scope, receive, send)
        return self

    def problem(self) -> tuple[int, str]:
        """Status and code of the answer, which is one of ours."""
        start, body = self.sent
        headers = dict(start["headers"])
        assert headers[b"content-type"] == b"application/problem+json"
        assert headers[b"content-length"] == str(len(body["body"])).encode()
        assert body["more_body"] is False
        members = json.loads(body["body"])
        assert headers[b"x-seawall-code"].decode() == members["code"]
        return start["status"], members["code"]


def budget_of(ms: int) -> list[tuple[bytes, bytes]]:
    return [(b"host", b"x"), (b"x-budget-ms", str(ms).encode())]


async def never(send: Send) -> None:
    await asyncio.sleep(LATE * 3)


async def refused(send: Send) -> None:
    raise OPEN


def test_the_callers_budget_is_in_force_in_the_app_and_no_longer_afterwards() -> None:
    left: list[float | None] = []

    async def work(send: Send) -> None:
        left.append(seawall.remaining())

    async def main() -> float | None:
        await Asked(work, headers=budget_of(5000)).served()
        await Asked(work).served()
        await Asked(work, headers=budget_of(5000), max_ms=1000).served()
        await Asked(work, headers=budget_of(5000), trust=False).served()
        await Asked(work, headers=budget_of(5000), wire=BudgetHeaders(max_ms=2000)).served()
        return seawall.remaining()

    assert run_async(main()) is None
    assert [None if seconds is None else round(seconds) for seconds in left] == [5, None, 1, None, 2]


@pytest.mark.parametrize("settings", [{"headers": budget_of(100)}, {"default_ms": 100}], ids=["caller's", "default"])
def test_what_is_too_slow_is_cancelled_and_answered(settings: Any) -> None:
    asked = run_async(Asked(never, **settings).served(), LATE)
    assert asked.problem() == (504, "E906")


def test_a_refusal_is_answered_with_or_without_a_budget() -> None:
    for headers in ((), budget_of(5000)):
        asked = run_async(Asked(refused, headers=headers).served())
        assert asked.problem() == (503, "E904")
        assert dict(asked.sent[0]["headers"])[b"retry-after"] == b"2"


def test_a_refusal_alone_in_a_group_of_tasks_is_answered() -> None:
    async def work(send: Send) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_raised(OPEN))

    assert run_async(Asked(work).served()).problem() == (503, "E904")


async def _raised(error: BaseException) -> None:
    raise error


def test_with_nothing_left_the_app_is_not_called() -> None:
    for settings in ({"headers": budget_of(0)}, {"headers": budget_of(5000), "max_ms": 0}):
        asked = run_async(Asked(never, **settings).served())
        assert asked.problem() == (504, "E906")
        assert not asked.called


def test_the_answer_to_head_has_no_body() -> None:
    asked = run_async(Asked(refused, method="HEAD").served())
    assert asked.sent[1] == part(b"", more=False)
    assert int(dict(asked.sent[0]["headers"])[b"content-length"]) > 0


def test_other_errors_go_on_as_they_are() -> None:
    error = LookupError("x")
    asked = Asked(lambda send: _raised(error), headers=budget_of(5000))
    with pytest.raises(LookupError) as raised:
        run_async(asked.served())
    assert raised.value is error
    assert asked.sent == []


def test_a_setting_that_cannot_work_is_no_refusal() -> None:
    with pytest.raises(ConfigError):
        run_async(Asked(lambda send: _raised(ConfigError("x"))).served())


def test_once_the_answer_has_begun_a_refusal_goes_on_to_the_server() -> None:
    async def work(send: Send) -> None:
        await send(START)
        raise OPEN

    asked = Asked(work)
    with pytest.raises(seawall.CircuitOpenError):
        run_async(asked.served())
    assert asked.sent == [START]


def test_the_callers_budget_covers_the_body() -> None:
    async def work(send: Send) -> None:
        await send(START)
        await send(part(b"a"))
        await never(send)

    asked = Asked(work, headers=budget_of(100), default_ms=60_000)
    with pytest.raises(seawall.DeadlineExceededError, match=r"budget of 100 ms is spent") as raised:
        run_async(asked.served(), LATE)
    assert isinstance(raised.value.__cause__, asyncio.CancelledError)
    assert asked.sent == [START, part(b"a")]


def test_a_default_ends_with_the_start_of_the_answer() -> None:
    """Neither does the timer fire, nor are the guards of the body told of a deadline that has passed."""
    left: list[float | None] = []

    async def work(send: Send) -> None:
        left.append(seawall.remaining())
        await send(START)
        await asyncio.sleep(3 * SHORT)
        left.append(seawall.remaining())
        await send(part(b"a", more=False))

    asked = run_async(Asked(work, default_ms=SHORT * 1000).served())
    assert asked.sent == [START, part(b"a", more=False)]
    assert left[0] is not None
    assert left[1] is None


def test_what_is_done_after_the_answer_is_not_the_callers_any_more() -> None:
    done: list[float | None] = []

    async def work(send: Send) -> None:
        await send(START)
        await send(part(b"a", more=False))
        await asyncio.sleep(3 * SHORT)
        done.append(seawall.remaining())

    run_async(Asked(work, headers=budget_of(int(SHORT * 1000))).served())
    assert done == [None]


def test_a_budget_of_the_apps_own_stays_where_the_default_ends() -> None:
    left: list[float | None] = []

    async def work(send: Send) -> None:
        with seawall.budget(3.0):
            await send(START)
            left.append(seawall.remaining())
        await send(part(b"", more=False))

    run_async(Asked(work, default_ms=5000).served())
    assert left[0] is not None


def test_a_task_that_was_there_before_the_answer_has_no_deadline_to_run_into_either() -> None:
    left: list[float | None] = []

    async def work(send: Send) -> None:
        begun = asyncio.Event()

        async def body() -> None:
            await begun.wait()
            left.append(seawall.remaining())

        async with asyncio.TaskGroup() as group:
            group.create_task(body())
            await send(START)
            begun.set()

    run_async(Asked(work, default_ms=5000).served())
    assert (left[0] or 0.0) > 1000


def test_an_answer_sent_by_another_task_ends_the_default_too() -> None:
    """As Starlette's older middlewares do it."""

    async def work(send: Send) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(streamed(send))

    async def streamed(send: Send) -> None:
        await send(START)
        await asyncio.sleep(3 * SHORT)
        await send(part(b"a", more=False))

    asked = run_async(Asked(work, default_ms=SHORT * 1000).served())
    assert asked.sent[-1] == part(b"a", more=False)


def test_a_clients_cancellation_stays_one() -> None:
    async def main() -> list[dict[str, Any]]:
        begun = asyncio.Event()

        async def work(send: Send) -> None:
            begun.set()
            await never(send)

        asked = Asked(work, headers=budget_of(60_000))
        task = asyncio.create_task(asked.served())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return asked.sent

    assert run_async(main()) == []


def test_no_timer_is_left_behind() -> None:
    async def work(send: Send) -> None:
        await send(START)
        await send(part(b"", more=False))

    async def half(send: Send) -> None:
        await send(START)

    async def main() -> list[asyncio.TimerHandle]:
        await Asked(half, headers=budget_of(60_000)).served()
        await Asked(work, headers=budget_of(60_000)).served()
        await Asked(work, default_ms=60_000).served()
        await Asked(refused, headers=budget_of(60_000)).served()
        scheduled: list[asyncio.TimerHandle] = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
        return [timer for timer in scheduled if not timer.cancelled() and "End._fire" in repr(timer)]

    assert run_async(main()) == []


@pytest.mark.parametrize("kind", ["websocket", "lifespan"])
def test_what_is_no_http_passes_untouched(kind: str) -> None:
    seen: list[Any] = []

    async def app(*given: Any) -> None:
        seen.extend([*given, seawall.remaining()])
        raise OPEN

    scope: dict[str, Any] = {"type": kind, "headers": budget_of(0)}
    with pytest.raises(seawall.CircuitOpenError):
        run_async(Middleware(app, default_ms=1)(scope, None, None))  # type: ignore[arg-type]
    assert seen == [scope, None, None, None]
    assert seen[0] is scope


def test_another_loop_library_is_told_so() -> None:
    """Driven by hand, as trio would: no asyncio loop runs in this thread."""
    asked = Asked(refused)

    def by_hand(work: Coroutine[Any, Any, Any]) -> None:
        work.send(None)

    with pytest.raises(RuntimeError, match=r"asgi.Middleware cancels by asyncio"):
        contextvars.copy_context().run(by_hand, asked.served())
    assert not asked.called


def test_a_wire_together_with_its_settings_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"wire="):
        Middleware(never, wire=BudgetHeaders(), max_ms=1)
    with pytest.raises(ConfigError, match=r"max_ms"):
        Middleware(never, max_ms=-1)


def asked_of(app: Any) -> list[Any]:
    """What an app sends for ``GET /``."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    given = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Any:
        return given.pop() if given else await asyncio.Event().wait()  # the client stays

    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": [], "asgi": {"version": "3.0"}}
    run_async(app(scope, receive, send))
    return sent


def test_starlettes_own_error_page_does_not_come_first() -> None:
    """As ``add_middleware`` puts it, below the layer that makes 500 of what is left over."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    async def endpoint(request: Any) -> Any:
        raise OPEN

    app = Starlette(routes=[Route("/", endpoint)])
    app.add_middleware(Middleware)
    sent = asked_of(app)
    assert [message.get("status") for message in sent] == [503, None]


def test_a_body_behind_starlettes_older_kind_of_middleware_outlives_the_default() -> None:
    """It runs in a task of its own, which had the deadline before the answer began."""
    from starlette.applications import Starlette
    from starlette.middleware.base import BaseHTTPMiddleware
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    core = seawall.Target("CORE", breaker=seawall.CircuitBreaker())

    async def endpoint(request: Any) -> Any:
        async def parts() -> Any:
            await asyncio.sleep(3 * SHORT)
            async with core:
                yield b"a"

        return StreamingResponse(parts())

    async def through(request: Any, call_next: Any) -> Any:
        return await call_next(request)

    app = Starlette(routes=[Route("/", endpoint)])
    app.add_middleware(BaseHTTPMiddleware, dispatch=through)
    app.add_middleware(Middleware, default_ms=SHORT * 1000)
    sent = asked_of(app)
    assert [message.get("body") for message in sent if message.get("body")] == [b"a"]


# -- real servers
SERVERS = {
    "uvicorn": ("uvicorn", "asgi_app:app", "--log-level", "warning"),
    "uvicorn-uvloop": ("uvicorn", "asgi_app:app", "--log-level", "warning", "--loop", "uvloop"),
    "granian": ("granian", "--interface", "asgi", "asgi_app:app"),
}


@pytest.fixture(scope="module", params=list(SERVERS))
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with running(*SERVERS[request.param], port_as=("--port", "{port}")) as server:
        yield server


@pytest.mark.parametrize("path", ["/left", "/left-in-a-thread"])
def test_the_budget_reaches_an_endpoint(server: Server, path: str) -> None:
    assert 2.0 < server.left(path, X_Budget_Ms="5000") <= 5.0
    assert 2.0 < server.left(path, grpc_timeout="5S") <= 5.0
    assert 0.0 <= server.left(path) <= 1.0  # the default
    assert 5.0 < server.left(path, X_Budget_Ms="99000") <= 10.0  # cut down


def test_an_open_circuit_is_answered(server: Server) -> None:
    server.ask("/balance")  # the first one opens it
    got = server.ask("/balance")
    assert (got.status, got.headers["x-seawall-code"], got.problem()["target"]) == (503, "E904", "CORE")
    assert 1 <= int(got.headers["retry-after"]) <= 30
    assert got.whole


def test_a_slow_endpoint_is_cut_at_the_callers_end(server: Server) -> None:
    got = server.ask("/slow", X_Budget_Ms="200")
    assert (got.status, got.problem()["code"], got.whole) == (504, "E906", True)
    assert 0.19 < got.seconds < LATE
    assert server.ask("/slow").status == 504
    assert server.ask("/left", X_Budget_Ms="0").status == 504


def test_a_long_stream_outlives_the_default_and_not_its_callers_budget(server: Server) -> None:
    a_long_stream_outlives_the_default_and_not_its_callers_budget(server)
