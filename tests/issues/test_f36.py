"""F36: a target that drips one byte each 50 ms: no silence exceeds the read limit, and the call ends at the total."""

from __future__ import annotations

import time

import pytest

from seawall import budget
from seawall.measure.call import call
from tests.hub.raw import RawConnection, raw_server, response

pytestmark = pytest.mark.fault("F36")

BODY = b"x" * 2000  # at one byte each 50 ms: 100 seconds
HEAD = response(200, BODY)[: -len(BODY)]
LATE = 20.0  # s


def head_first(connection: RawConnection) -> None:
    connection.read_request()
    connection.send(HEAD)
    connection.drip(BODY, 0.05)


def head_too(connection: RawConnection) -> None:
    connection.read_request()
    connection.drip(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500, 0.05)


def chunks(connection: RawConnection) -> None:
    connection.read_request()
    connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    connection.drip(b"1\r\nx\r\n" * 500, 0.05)


def interim(connection: RawConnection) -> None:
    connection.read_request()
    connection.drip(b"HTTP/1.1 100 Continue\r\n\r\n" * 100, 0.05)


@pytest.mark.parametrize("script", [head_first, head_too, chunks, interim])
def test_it_ends_at_the_total(script: object) -> None:
    with raw_server(script) as target:  # type: ignore[arg-type]
        called = call(target.url, read=5.0, total=0.3)
    assert (called.phase, called.limit) == ("total", "total")
    assert 0.3 <= called.elapsed < LATE
    assert called.status == (200 if script in (head_first, chunks) else None)


def test_it_ends_with_the_budget_of_its_caller() -> None:
    with raw_server(head_first) as target:
        began = time.monotonic()
        with budget(0.3):
            called = call(target.url, read=5.0)
        assert 0.3 <= time.monotonic() - began < LATE
    assert (called.phase, called.limit) == ("total", "budget")


def test_a_read_limit_shorter_than_the_gap_still_ends_it() -> None:
    with raw_server(head_first) as target:
        called = call(target.url, read=0.01, total=LATE)
    assert (called.phase, called.limit) == ("read", "read")
