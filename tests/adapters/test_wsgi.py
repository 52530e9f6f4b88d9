"""The WSGI middleware: the same time in each step of an answer, and what is answered instead; bare, and under gunicorn."""

from __future__ import annotations

import contextvars
import io
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from wsgiref.util import FileWrapper, setup_testing_defaults
from wsgiref.validate import validator

import pytest

import seawall
from seawall import BudgetHeaders, ConfigError
from seawall.adapters.wsgi import Middleware, flask_errors
from seawall.deadline import Deadline
from tests.adapters.webservers import Server, a_long_stream_outlives_the_default_and_not_its_callers_budget, running
from tests.clock import ManualClock

LATE = 10.0  # s: far too late

OPEN = seawall.CircuitOpenError("CORE", "is open", "OPEN", 1.2)
PLAIN = [("Content-Type", "text/plain")]


class Answered:
    """What a server got of one request: as PEP 3333 says, the head goes out with the first byte of the body."""

    def __init__(
        self, app: Any, method: str = "GET", header: str | None = None, wsgi: dict[str, Any] | None = None
    ) -> None:
        self.heads: list[tuple[str, list[tuple[str, str]]]] = []
        self.out: list[bytes] = []
        self.error: Exception | None = None
        given = {"REQUEST_METHOD": method, **(wsgi or {})} | ({} if header is None else {"HTTP_X_BUDGET_MS": header})
        try:
            self.body = app(given, self._start)
            try:
                for part in self.body:
                    assert self.heads
                    self.out.append(part)
            finally:
                if hasattr(self.body, "close"):
                    self.body.close()
                    self.body.close()  # a server's second one must not reach the app
        except Exception as error:
            self.error = error

    def _start(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], object]:
        assert not self.heads, "gunicorn would send the headers of both"
        self.heads.append((status, headers))
        return self.out.append

    @property
    def status(self) -> str:
        [(status, _)] = self.heads
        return status

    def problem(self) -> tuple[str, str]:
        [(status, headers)] = self.heads
        assert self.error is None
        body = b"".join(self.out)
        assert dict(headers)["Content-Type"] == "application/problem+json"
        assert dict(headers)["Content-Length"] == str(len(body))
        members = json.loads(body)
        assert members["code"] == dict(headers)["X-Seawall-Code"]
        return status, members["code"]


class Body:
    """A body in steps, which notes the time left in each, and how often it was closed."""

    def __init__(self, *steps: bytes | Exception | Callable[[], bytes]) -> None:
        self._steps, self.left, self.closed = iter(steps), list[float | None](), 0

    def __iter__(self) -> Body:
        return self

    def __next__(self) -> bytes:
        self.left.append(seawall.remaining())
        step = next(self._steps)
        if isinstance(step, Exception):
            raise step
        return step if isinstance(step, bytes) else step()

    def close(self) -> None:
        self.left.append(seawall.remaining())
        self.closed += 1


def app_of(body: Iterable[bytes] | Exception, status: str = "200 OK") -> Any:
    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        if isinstance(body, Exception):
            raise body
        start_response(status, PLAIN)
        return body

    return app


def test_the_callers_budget_is_in_force_in_each_step_and_no_longer_afterwards() -> None:
    body = Body(b"a", b"", b"b")
    got = Answered(Middleware(app_of(body)), header="5000")
    assert (got.status, got.out, body.closed, got.error) == ("200 OK", [b"a", b"", b"b"], 1, None)
    assert [None if seconds is None else round(seconds) for seconds in body.left] == [5, 5, 5, 5, 5]
    assert seawall.remaining() is None


def test_a_default_covers_what_comes_before_the_first_part() -> None:
    body = Body(b"", b"a", b"b")
    got = Answered(Middleware(app_of(body), default_ms=5000))
    assert got.out == [b"a", b"b"]
    assert [None if seconds is None else round(seconds) for seconds in body.left] == [5, 5, None, None, None]


def test_a_budget_of_the_bodys_own_lives_from_one_step_to_the_next() -> None:
    left: list[float | None] = []

    def parts() -> Iterator[bytes]:
        with seawall.budget(3.0):
            yield b"a"
            left.append(seawall.remaining())
            yield b"b"
        left.append(seawall.remaining())

    got = Answered(Middleware(app_of(parts())), header="9000")
    assert [round(seconds or 0) for seconds in left] == [3, 9]
    assert got.error is None


def test_no_budget_no_settings_and_a_stranger_change_nothing() -> None:
    for settings, header in (({}, None), ({"trust": False}, "0")):
        body = Body(b"a")
        assert Answered(Middleware(app_of(body), **settings), header=header).out == [b"a"]  # type: ignore[arg-type]
        assert body.left == [None, None, None]


@pytest.mark.parametrize("body", [
    OPEN, Body(OPEN, b"more"), Body(b"", b"", OPEN), ExceptionGroup("tasks", [OPEN]),
], ids=["call", "first step", "after empty parts", "group"])  # fmt: skip
def test_a_refusal_before_the_first_byte_is_answered_and_the_body_closed(body: Any) -> None:
    got = Answered(Middleware(app_of(body)))
    assert got.problem() == ("503 Service Unavailable", "E904")
    assert dict(got.heads[0][1])["Retry-After"] == "2"
    assert getattr(body, "closed", 1) == 1


def test_a_refusal_after_the_first_byte_goes_on_to_the_server() -> None:
    body = Body(b"a", OPEN)
    got = Answered(Middleware(app_of(body)))
    assert (got.status, got.out, got.error, body.closed) == ("200 OK", [b"a"], OPEN, 1)


@pytest.mark.parametrize("error", [LookupError("x"), ConfigError("x")])
@pytest.mark.parametrize("early", [True, False])
def test_other_errors_go_on_as_they_are(error: Exception, early: bool) -> None:
    got = Answered(Middleware(app_of(error if early else Body(error))), header="5000")
    assert got.error is error
    assert got.heads == []


def test_with_nothing_left_the_app_is_not_called() -> None:
    def app(environ: Any, start_response: Any) -> Any:
        raise AssertionError("it was called")

    for settings in ({}, {"max_ms": 0}):
        got = Answered(Middleware(app, **settings), header="5000" if settings else "0")  # type: ignore[arg-type]
        assert got.problem() == ("504 Gateway Timeout", "E906")


def test_the_answer_to_head_has_no_body() -> None:
    got = Answered(Middleware(app_of(OPEN)), method="HEAD")
    assert b"".join(got.out) == b""
    assert int(dict(got.heads[0][1])["Content-Length"]) > 0


def late_by_hand(whole: bool, *steps: Any) -> tuple[Answered, Body]:
    """A body whose steps may move the clock."""
    body = Body(*steps)
    wire = BudgetHeaders(clock=CLOCK, default_ms=None if whole else 1000)
    return Answered(Middleware(app_of(body), wire=wire), header="1000" if whole else None), body


CLOCK = ManualClock()


def after(seconds: float, data: bytes) -> Callable[[], bytes]:
    def step() -> bytes:
        CLOCK.advance(seconds)
        return data

    return step


def test_the_callers_budget_ends_a_body_between_two_parts() -> None:
    got, body = late_by_hand(True, b"a", after(0.5, b"b"), after(0.6, b"c"), b"d")
    assert (got.out, body.closed) == ([b"a", b"b"], 1)
    assert isinstance(got.error, seawall.DeadlineExceededError)
    assert str(got.error) == "the budget of 1000 ms is spent"


def test_a_default_ends_no_body_that_has_begun() -> None:
    got, _ = late_by_hand(False, b"a", after(5.0, b"b"), b"c")
    assert (got.out, got.error) == ([b"a", b"b", b"c"], None)


def test_what_is_there_though_late_is_handed_on_with_its_proper_end() -> None:
    got, _ = late_by_hand(True, after(5.0, b"a"))
    assert (got.status, got.out, got.error) == ("200 OK", [b"a"], None)


def test_a_deadline_noticed_in_the_app_is_answered() -> None:
    def step() -> bytes:
        CLOCK.advance(5.0)
        seawall.check()
        return b"never"

    got, _ = late_by_hand(True, step)
    assert got.problem() == ("504 Gateway Timeout", "E906")


@pytest.mark.parametrize("ready", [[b"a", b"b"], (b"ab",), []], ids=["list", "tuple", "nothing"])
def test_a_body_that_is_ready_is_handed_on_as_it_is(ready: Any) -> None:
    """So that the server can count its parts and say the length."""
    got = Answered(Middleware(app_of(ready)), header="5000")
    assert got.body is ready
    assert got.status == "200 OK"


def test_a_file_is_handed_on_as_it_is() -> None:
    file = FileWrapper(io.BytesIO(b"abc"))
    got = Answered(Middleware(app_of(file)), header="5000", wsgi={"wsgi.file_wrapper": FileWrapper})
    assert got.body is file
    assert got.out == [b"abc"]


def test_a_generator_that_starts_its_answer_in_its_first_step_works() -> None:
    def app(environ: Any, start_response: Any) -> Iterator[bytes]:
        start_response("201 Created", PLAIN)
        yield b"a"

    got = Answered(Middleware(app), header="5000")
    assert (got.status, got.out) == ("201 Created", [b"a"])


def test_a_body_without_bytes_has_its_head() -> None:
    body = Body(b"", b"")
    got = Answered(Middleware(app_of(body, "204 No Content")))
    assert (got.status, got.out, body.closed) == ("204 No Content", [], 1)


def writing(*said: Any) -> Any:
    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        write = start_response("200 OK", PLAIN)
        for data in said:
            if isinstance(data, Exception):
                raise data
            write(data)
        return [b"end"]

    return app


def test_write_sends_the_head_and_then_a_refusal_goes_on() -> None:
    assert Answered(Middleware(writing(b"", b"a", b"", b"b")), header="5000").out == [b"a", b"b", b"end"]
    got = Answered(Middleware(writing(b"a", OPEN)))
    assert (got.status, got.out, got.error) == ("200 OK", [b"a"], OPEN)
    assert Answered(Middleware(writing(b"", OPEN))).problem() == ("503 Service Unavailable", "E904")


def test_an_app_may_think_again_before_the_first_byte_and_not_without_saying_so() -> None:
    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        start_response("200 OK", PLAIN)
        start_response("500 Oh", PLAIN, (ValueError, ValueError("x"), None) if "say" in environ else None)
        return [b"a"]

    assert Answered(Middleware(app), wsgi={"say": True}).status == "500 Oh"
    assert isinstance(Answered(Middleware(app)).error, AssertionError)


def test_after_the_first_byte_the_server_is_told_what_the_app_says() -> None:
    told: list[Any] = []

    def start(status: str, headers: Any, exc_info: Any = None) -> Callable[[bytes], object]:
        told.append((status, exc_info))
        return lambda data: None

    def app(environ: Any, start_response: Any) -> Iterator[bytes]:
        start_response("200 OK", PLAIN)
        yield b"a"
        start_response("500 Oh", PLAIN, "info")

    assert list(Middleware(app)({"REQUEST_METHOD": "GET"}, start)) == [b"a"]
    assert told == [("200 OK", None), ("500 Oh", "info")]


def test_a_body_that_nobody_reads_is_closed_once() -> None:
    body = Body(b"a")
    answered: Any = Middleware(app_of(body))({"REQUEST_METHOD": "GET"}, lambda *given: lambda data: None)
    answered.close()
    answered.close()
    assert body.closed == 1
    assert list(answered) == []


def test_what_a_step_sets_is_seen_in_the_next_and_not_outside() -> None:
    word: contextvars.ContextVar[str] = contextvars.ContextVar("word", default="")
    seen: list[str] = []

    def parts() -> Iterator[bytes]:
        seen.append(word.get())
        token = word.set("two")
        yield b"a"
        seen.append(word.get())
        word.reset(token)

    def app(environ: Any, start_response: Any) -> Iterator[bytes]:
        start_response("200 OK", PLAIN)
        word.set("one")
        return parts()

    assert Answered(Middleware(app)).error is None
    assert seen == ["one", "two"]
    assert word.get() == ""


def test_within_a_budget_of_the_server_it_can_only_shorten() -> None:
    body = Body(b"a")
    with seawall.budget(2.0):
        Answered(Middleware(app_of(body)), header="9000")
    assert round(body.left[0] or 0) == 2


def test_a_wire_together_with_its_settings_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"wire="):
        Middleware(app_of([]), wire=BudgetHeaders(), trust=False)


def test_it_keeps_to_the_letter_of_wsgi_on_both_sides() -> None:
    """Between the standard library's two validators, with bodies of each kind."""

    def generated(environ: Any, start_response: Any) -> Iterator[bytes]:
        start_response("200 OK", PLAIN)
        yield b""
        yield b"end"

    for app, said in ((generated, b"end"), (writing(b"a"), b"aend"), (app_of(Body(b"", b"end")), b"end")):
        environ: dict[str, Any] = {"QUERY_STRING": ""}
        setup_testing_defaults(environ)
        got = Answered(validator(Middleware(validator(app), default_ms=5000)), wsgi=environ)
        assert (got.error, b"".join(got.out)) == (None, said)


def flask_app() -> Any:
    from flask import Flask

    app = Flask("app")
    errors: dict[str, Exception] = {
        "/open": OPEN, "/late": Deadline.after(0.2).exceeded(), "/config": ConfigError("x"), "/other": LookupError("x"),
    }  # fmt: skip

    def view(path: str) -> Any:
        raise errors["/" + path]

    app.add_url_rule("/<path>", view_func=view)
    return app


def test_flask_answers_refusals_itself() -> None:
    app = flask_app()
    flask_errors(app)
    client = app.test_client()
    for path, status in (("/open", 503), ("/late", 504), ("/config", 500), ("/other", 500)):
        with client.get(path) as response:
            assert response.status_code == status
            assert (response.mimetype == "application/problem+json") is (status != 500)
    with client.get("/open") as response:
        assert response.headers.getlist("Retry-After") == ["2"]
        assert response.json["code"] == "E904"
        assert response.headers.getlist("Content-Length") == [str(len(response.data))]
    with client.head("/open") as response:
        assert (response.status_code, response.data) == (503, b"")


def test_without_it_flask_makes_500_of_them() -> None:
    """Why it is needed."""
    app = flask_app()
    app.wsgi_app = Middleware(app.wsgi_app)
    with app.test_client().get("/open") as response:
        assert response.status_code == 500


# -- real servers
SERVERS = {
    f"{app}-{worker}": ("gunicorn", f"wsgi_app:{app}", "-k", worker, *(("--threads", "4") if worker == "gthread" else ()))
    for app in ("app", "plain") for worker in ("sync", "gthread")
}  # fmt: skip


@pytest.fixture(scope="module", params=list(SERVERS))
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with running(*SERVERS[request.param], port_as=("-b", "127.0.0.1:{port}")) as server:
        yield server


def test_the_budget_reaches_an_endpoint(server: Server) -> None:
    assert 2.0 < server.left("/left", X_Budget_Ms="5000") <= 5.0
    assert 0.0 <= server.left("/left") <= 1.0  # the default
    assert 5.0 < server.left("/left", X_Budget_Ms="99000") <= 10.0  # cut down
    assert server.ask("/left", X_Budget_Ms="0").problem()["code"] == "E906"


def test_an_open_circuit_is_answered(server: Server) -> None:
    server.ask("/balance")  # the first one opens it
    got = server.ask("/balance")
    assert (got.status, got.headers["x-seawall-code"], got.problem()["target"]) == (503, "E904", "CORE")
    assert 1 <= int(got.headers["retry-after"]) <= 30
    assert got.whole
    assert server.ask("/balance", "HEAD").status == 503


def test_an_endpoint_that_asks_for_its_time_ends_in_it(server: Server) -> None:
    got = server.ask("/slow", X_Budget_Ms="200")
    assert (got.status, got.problem()["code"], got.whole) == (504, "E906", True)
    assert 0.19 < got.seconds < LATE


def test_a_long_stream_outlives_the_default_and_not_its_callers_budget(server: Server) -> None:
    a_long_stream_outlives_the_default_and_not_its_callers_budget(server)
