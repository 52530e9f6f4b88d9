"""Calls under one budget: each gets what is left, and nothing that a target does makes the whole longer."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable

import pytest

from seawall import Deadline
from seawall.faults.loopback import black_hole, refusing, silent
from seawall.measure.call import call
from seawall.measure.called import Called
from seawall.measure.course import Told, fan_out, in_turn
from seawall.measure.url import Url
from tests.clock import ManualClock
from tests.hub.raw import RawConnection, answering, raw_server, response

LATE = 15.0  # s; far more than a loaded machine adds, far less than the targets here would take


def sleeping(seconds: float) -> Callable[[RawConnection], object]:
    def script(connection: RawConnection) -> None:
        if connection.read_request():
            time.sleep(seconds)
            connection.send(response(200, b"slept"))

    return script


@pytest.mark.req("BUDGET-4")
def test_the_read_limit_of_each_call_is_what_is_left_at_its_beginning() -> None:
    budget = 30.0
    with raw_server(sleeping(0.05)) as target:
        calls = list(in_turn([Url.parse(target.url)] * 4, Deadline.after(budget)))
    assert [called.phase for called in calls] == ["done"] * 4
    left = budget
    for called in calls:
        assert called.read_limit <= left
        left -= called.elapsed
    assert calls[-1].read_limit > budget - LATE


@pytest.mark.req("BUDGET-4")
@pytest.mark.parametrize("number", [1, 20])
def test_however_many_calls_the_whole_ends_with_the_budget(number: int) -> None:
    with silent() as quiet, black_hole() as hole:
        urls = [Url.at("127.0.0.1", (quiet, hole)[n % 2]) for n in range(number)]
        began = time.monotonic()
        calls = list(in_turn(urls, Deadline.after(0.3), connect=60))
        assert 0.3 <= time.monotonic() - began < LATE
    assert len(calls) == number
    assert calls[0].phase == "read"
    assert [called.phase for called in calls[1:]] == ["no_budget"] * (number - 1)


@pytest.mark.req("BUDGET-4")
def test_the_limit_to_connect_is_never_more_than_what_is_left() -> None:
    with black_hole() as hole:
        [called] = in_turn([Url.at("127.0.0.1", hole)], Deadline.after(0.1), connect=60)
    assert (called.phase, called.limit) == ("connect", "budget")
    assert 0.1 <= called.elapsed < LATE


@pytest.mark.req("BUDGET-4")
@pytest.mark.fault("F36")
@pytest.mark.parametrize("head", [b"", response(200, b"x" * 10_000)[:-10_000]], ids=["head", "body"])
def test_a_target_that_drips_cannot_exceed_the_budget(head: bytes) -> None:
    def script(connection: RawConnection) -> None:
        connection.read_request()
        connection.send(head)
        connection.drip(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 10_000, 0.02)

    with raw_server(script) as target:
        began = time.monotonic()
        first, second = in_turn([Url.parse(target.url)] * 2, Deadline.after(0.6))
        assert 0.6 <= time.monotonic() - began < LATE
    assert (first.phase, first.limit, second.phase) == ("total", "budget", "no_budget")


@pytest.mark.req("BUDGET-5")
def test_with_less_than_the_minimum_left_a_call_costs_nothing() -> None:
    with raw_server(sleeping(0.2)) as target, raw_server(answering(response(200))) as other:
        calls = list(in_turn([Url.parse(target.url), Url.parse(other.url)], Deadline.after(30), min_ms=29_900))
        assert other.connections == 0
    assert [(called.phase, called.elapsed) for called in calls[1:]] == [("no_budget", 0.0)]
    assert calls[0].phase == "done"


def echoing(connection: RawConnection) -> None:
    """Echoes the budget it was told, and takes its time."""
    request = connection.read_request()
    told = re.search(rb"\r\nX-Budget-Ms: (\d+)\r\n", request)
    assert told is not None
    time.sleep(0.03)
    connection.send(response(200, json.dumps({"received": int(told[1])}).encode()))


@pytest.mark.req("BUDGET-7")
def test_each_call_is_told_what_is_left_and_less_each_time() -> None:
    with raw_server(echoing) as target:
        calls = list(fan_out(Url.parse(target.url).below("/budget?ms=200"), 4, Deadline.after(30)))
    sent = [told.sent for told in calls]
    assert sent == sorted(set(sent), reverse=True)
    assert sent[0] < 30_000
    assert all(told.received == told.sent for told in calls)
    assert all(sent[n] - sent[n + 1] >= 30 for n in range(3))
    assert all(request.startswith(b"GET /budget?ms=200 HTTP/1.1\r\n") for request in target.requests)


@pytest.mark.req("BUDGET-7")
def test_with_nothing_left_nobody_is_told() -> None:
    with silent() as port:
        first, *others = fan_out(Url.at("127.0.0.1", port), 3, Deadline.after(0.3))
    assert (first.called.phase, first.received) == ("read", None)
    assert 0 < first.sent <= 300
    assert [(told.sent, told.called.phase) for told in others] == [(0, "no_budget")] * 2


@pytest.mark.req("BUDGET-7")
def test_less_than_a_millisecond_is_nothing_to_tell() -> None:
    with raw_server(answering(response(200))) as target:
        [told] = fan_out(Url.parse(target.url), 1, Deadline.after(0.0009, ManualClock()))
        assert target.connections == 0
    assert (told.sent, told.called.phase) == (0, "no_budget")


@pytest.mark.parametrize("body", [
    b"", b"[7]", b"{}", b'{"received": "7"}', b'{"received": true}', b'{"received": 7', b"\xff",
])
def test_what_says_nothing_has_received_nothing(body: bytes) -> None:
    assert Told(7, Called(url="", phase="done", body=body)).received is None


def test_a_refusal_costs_little_and_the_next_call_is_made() -> None:
    with refusing() as port, raw_server(answering(response(200))) as target:
        calls = list(in_turn([Url.at("127.0.0.1", port), Url.parse(target.url)], Deadline.after(60)))
    assert [called.phase for called in calls] == ["connect", "done"]
    assert call(f"http://127.0.0.1:{port}/").phase == "connect"
