"""Each refusal and each time limit has one answer, the hub's; errors that are not Seawall's have none."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

import seawall
from seawall import BudgetHeaders, ConfigError
from seawall.adapters.answers import Answer, answer
from seawall.adapters.httpx import natives
from seawall.adapters.middleware import Around
from seawall.deadline import Deadline
from seawall.hub.answers import problem as of_the_hub

OPEN = seawall.CircuitOpenError("CORE", "is open", "OPEN", 1.2)


def members(problem: Answer | None) -> dict[str, Any]:
    assert problem is not None
    found: dict[str, Any] = json.loads(problem.body)
    assert found["status"] == problem.status
    assert dict(problem.headers)["Content-Length"] == str(len(problem.body))
    assert dict(problem.headers).get("X-Seawall-Code") == found.get("code")
    return found


@pytest.mark.parametrize(("error", "status", "code"), [
    (OPEN, 503, "E904"),
    (seawall.BulkheadFullError("CORE", "is full"), 503, "E905"),
    (seawall.NoThreadError("CORE", "has no thread"), 503, "E905"),
    (seawall.NoBudgetError("CORE", "has no time"), 504, "E906"),
    (Deadline.after(0.2).exceeded(), 504, "E906"),
    (seawall.TimeoutExceededError("CORE", 2.0), 504, "E902"),
    (seawall.RejectedError("CORE", "is closed for today"), 503, None),
], ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None)  # fmt: skip
def test_each_error_has_its_status_and_its_code(error: Exception, status: int, code: str | None) -> None:
    found = members(answer(error))
    assert (found["status"], found.get("code"), found["detail"]) == (status, code, str(error))
    assert found["type"] == "about:blank"


def test_an_open_circuit_is_answered_in_full() -> None:
    problem = answer(OPEN)
    assert members(problem) == {
        "type": "about:blank", "title": "the circuit of the target is open", "status": 503, "code": "E904",
        "detail": "CORE is open; next trial in 1.2 s", "target": "CORE", "retry_after_ms": 1200,
    }  # fmt: skip
    assert problem is not None
    assert dict(problem.headers) == {
        "Content-Type": "application/problem+json", "X-Seawall-Code": "E904", "Retry-After": "2",
        "Content-Length": str(len(problem.body)),
    }  # fmt: skip


def test_the_members_are_those_of_the_hub() -> None:
    head, body = of_the_hub("E904", str(OPEN), target="CORE", retry_after=1.2)
    assert members(answer(OPEN)) == {"type": "about:blank", **json.loads(body)}
    assert b"Retry-After: 2\r\n" in head
    assert b"X-Seawall-Code: E904\r\n" in head


@pytest.mark.parametrize(("wait", "header", "ms"), [
    (0.0, "1", 0), (0.001, "1", 1), (1.0, "1", 1000), (1.0001, "2", 1001), (-3.0, "1", 0), (float("inf"), "1", 1000),
    (None, "1", 1000),
])  # fmt: skip
def test_retry_after_is_in_whole_seconds_rounded_up(wait: float | None, header: str, ms: int) -> None:
    problem = answer(seawall.CircuitOpenError("CORE", "is open", "OPEN", wait))
    assert members(problem)["retry_after_ms"] == ms
    assert problem is not None
    assert dict(problem.headers)["Retry-After"] == header


def test_what_nobody_knows_is_not_said() -> None:
    problem = answer(seawall.BulkheadFullError("", "is full"))
    assert {"target", "retry_after_ms"} & set(members(problem)) == set()
    assert problem is not None
    assert "Retry-After" not in dict(problem.headers)


def test_an_error_that_is_a_clients_own_as_well_is_answered() -> None:
    error = natives.of(OPEN)
    assert isinstance(error, httpx.TransportError)
    assert members(answer(error)) == members(answer(OPEN))


class Limited(Exception):
    """As other libraries have it."""


Limited.__name__ = "RateLimitedError"


@pytest.mark.parametrize("error", [
    ValueError("x"), TimeoutError(), ConfigError("x"), KeyboardInterrupt(), Limited(), seawall.SeawallError("x"),
    ExceptionGroup("two", [OPEN, OPEN]),
])  # fmt: skip
def test_other_errors_have_no_answer(error: BaseException) -> None:
    assert answer(error) is None


def test_the_only_member_of_a_group_is_answered_and_a_cause_is_not() -> None:
    assert members(answer(ExceptionGroup("a", [ExceptionGroup("b", [OPEN])])))["code"] == "E904"
    caused = ValueError("x")
    caused.__cause__ = OPEN
    assert answer(caused) is None


def test_a_middleware_takes_a_wire_or_its_settings() -> None:
    wire = BudgetHeaders()
    assert Around(None, wire=wire).wire is wire
    made = Around(None, max_ms=2000, default_ms=500).wire
    assert (made.read({}), made.read({"X-Budget-Ms": "9000"})) == (0.5, 2.0)
    assert Around(None, default_ms=500, trust=False).wire.read({"X-Budget-Ms": "9000"}) == 0.5
    both: tuple[dict[str, Any], ...] = ({"max_ms": 2000}, {"default_ms": 500}, {"trust": False})
    for settings in both:
        with pytest.raises(ConfigError, match=r"said to BudgetHeaders"):
            Around(None, wire=wire, **settings)
    number: Any = 5000
    with pytest.raises(TypeError, match=r"wire= takes a seawall.BudgetHeaders"):
        Around(None, wire=number)


@pytest.mark.parametrize(("headers", "theirs"), [
    ({}, False), ({"X-Budget-Ms": "soon"}, False), ({"X-Budget-Ms": "1000"}, True), ({"X-Budget-Ms": "9000"}, True),
    ([(b"grpc-timeout", b"1S")], True), ({"HTTP_X_BUDGET_MS": "7"}, True),
])  # fmt: skip
def test_whose_budget_it_is_goes_by_the_headers_and_not_by_the_number(headers: Any, theirs: bool) -> None:
    """Also where the caller asks for just what the default is, or is cut down to it."""
    assert BudgetHeaders(max_ms=1000, default_ms=1000).asked(headers) is theirs
    assert BudgetHeaders(max_ms=1000, default_ms=1000, trust=False).asked(headers) is False


def test_a_header_that_is_not_read_makes_no_budget_the_callers() -> None:
    wire = BudgetHeaders(names="grpc-timeout", default_ms=1000)
    assert wire.asked({"X-Budget-Ms": "500"}) is False
