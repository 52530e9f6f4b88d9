"""The partner: each path misbehaves in its own way, on time, and what happened is counted."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from seawall.faults.running import RunningServer, running_partner

pytestmark = pytest.mark.req("BUDGET-1")

HOUR = 3_600_000


@pytest.fixture
def partner(caplog: pytest.LogCaptureFixture) -> Iterator[RunningServer]:
    """A partner whose callbacks all ended well: asyncio logs those that raised."""
    with running_partner(seed=7) as server:
        yield server
    assert [record.getMessage() for record in caplog.get_records("call") if record.name == "asyncio"] == []


@contextmanager
def connected(partner: RunningServer) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", partner.port), timeout=20) as sock:
        yield sock


def exchanged(
    partner: RunningServer, path: str, method: str = "GET", body: bytes | None = None, budget: str | None = None
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", partner.port, timeout=20)
    try:
        connection.request(method, path, body, {} if budget is None else {"X-Budget-Ms": budget})
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


def ask(partner: RunningServer, path: str, budget: str | None = None) -> tuple[int, Any]:
    answer, content = exchanged(partner, path, budget=budget)
    return answer.status, json.loads(content)


def budgeted(partner: RunningServer, ms: int, budget: str) -> tuple[int, Any]:
    return ask(partner, f"/budget?ms={ms}", budget)


def raw(partner: RunningServer, request: bytes) -> bytes:
    """What comes until the partner ends the connection."""
    with connected(partner) as sock:
        sock.sendall(request)
        chunks = []
        while chunk := sock.recv(65536):
            chunks.append(chunk)
        return b"".join(chunks)


def get(path: str, version: str = "1.1") -> bytes:
    return f"GET {path} HTTP/{version}\r\nHost: x\r\n\r\n".encode()


def test_slow_answers_after_the_milliseconds_it_is_asked_for(partner: RunningServer) -> None:
    begun = time.monotonic()
    status, answer = ask(partner, "/slow?ms=60")
    assert time.monotonic() - begun >= 0.06
    assert (status, answer["path"], answer["ms"]) == (200, "/slow", 60)
    assert answer["slept_ms"] >= 60
    assert ask(partner, "/slow?ms=0")[0] == 200


def test_slow_callers_do_not_wait_for_one_another(partner: RunningServer) -> None:
    with connected(partner) as first, connected(partner) as second:
        first.sendall(get(f"/slow?ms={HOUR}"))
        second.sendall(get(f"/slow?ms={HOUR}"))
        assert partner.wait_for(in_flight=2)["max_inflight"] == 2
        assert ask(partner, "/slow?ms=1")[0] == 200


@pytest.mark.parametrize("status", [200, 201, 302, 400, 404, 418, 429, 500, 503, 599])
def test_status_answers_any_status(partner: RunningServer, status: int) -> None:
    answer, content = exchanged(partner, f"/status/{status}")
    assert (answer.status, json.loads(content)) == (status, {"path": "/status", "status": status})
    assert answer.getheader("Location") == ("/slow?ms=0" if status == 302 else None)
    assert answer.getheader("Retry-After") is None


@pytest.mark.parametrize("status", [204, 205, 304])
def test_a_status_without_a_body_has_none_and_the_connection_goes_on(partner: RunningServer, status: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", partner.port, timeout=20)
    try:
        for _ in range(2):
            connection.request("GET", f"/status/{status}")
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (status, b"")
    finally:
        connection.close()


def test_an_interim_status_goes_out_before_an_answer(partner: RunningServer) -> None:
    with connected(partner) as sock:
        sock.sendall(get("/status/103"))
        got = b""
        while not got.endswith(b"}\n"):
            got += sock.recv(65536)
    assert got.startswith(b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert b'"status": 103' in got


def test_switching_protocols_ends_the_connection(partner: RunningServer) -> None:
    answer = raw(partner, get("/status/101"))
    assert answer == b"HTTP/1.1 101 Switching Protocols\r\nConnection: close\r\n\r\n"


def test_http_1_0_is_never_sent_an_interim_status(partner: RunningServer) -> None:
    assert raw(partner, get("/status/103", "1.0")).startswith(b"HTTP/1.1 400 ")
    assert raw(partner, get("/status/101", "1.0")).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(("path", "status", "text"), [
    ("/status/503?retry_after=2", 503, "2"),
    ("/status/429?retry_after=Wed,+21+Oct+2015+07:28:00+GMT", 429, "Wed, 21 Oct 2015 07:28:00 GMT"),
    ("/status/200?retry_after=soon", 200, "soon"),
    ("/flaky?fail=1&retry_after=0.5", 503, "0.5"),
])
def test_retry_after_says_what_it_is_told_to(partner: RunningServer, path: str, status: int, text: str) -> None:
    answer, _ = exchanged(partner, path)
    assert (answer.status, answer.getheader("Retry-After")) == (status, text)


def test_drip_sends_the_head_at_once_and_then_one_byte_at_a_time(partner: RunningServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", partner.port, timeout=20)
    try:
        connection.request("GET", f"/drip?bytes=2&every_ms={HOUR // 2}")
        answer = connection.getresponse()  # comes with the head
        assert (answer.status, answer.getheader("Content-Length")) == (200, "2")
        assert answer.getheader("Content-Type") == "text/plain"
        assert partner.stats()["in_flight"] == 1
    finally:
        connection.close()
    partner.wait_for(in_flight=0, left=1)


def test_a_drip_comes_whole_in_the_end_and_takes_bytes_times_ms(partner: RunningServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", partner.port, timeout=20)
    try:
        for size, every_ms in ((5, 10), (3, 0), (0, 10), (1, 1)):
            begun = time.monotonic()
            connection.request("GET", f"/drip?bytes={size}&every_ms={every_ms}")
            assert connection.getresponse().read() == b"." * size
            assert time.monotonic() - begun >= size * every_ms / 1000
    finally:
        connection.close()
    assert (partner.stats()["total"], partner.stats()["left"]) == (4, 0)


def test_a_drip_gives_its_first_bytes_long_before_its_last(partner: RunningServer) -> None:
    with connected(partner) as sock:
        sock.sendall(get("/drip?bytes=72000&every_ms=50"))
        got = b""
        while not got.endswith(b"\r\n\r\n..."):
            got += sock.recv(1)
        assert partner.stats()["in_flight"] == 1


def test_flaky_fails_the_first_k_requests_and_then_no_more(partner: RunningServer) -> None:
    assert [ask(partner, "/flaky?fail=2")[0] for _ in range(4)] == [503, 503, 200, 200]
    assert ask(partner, "/flaky?fail=2")[1] == {"path": "/flaky", "key": "", "number": 5, "failed": False}


def test_flaky_counts_each_key_by_itself(partner: RunningServer) -> None:
    path = "/flaky?fail=1&status=500&key="
    assert [ask(partner, path + key)[0] for key in ("a", "b", "a", "b")] == [500, 500, 200, 200]
    assert ask(partner, "/flaky?fail=1&key=c")[1] == {"path": "/flaky", "key": "c", "number": 1, "failed": True}
    assert ask(partner, "/flaky")[0] == 503  # the key of those that give none; one failure is the default


def outcomes(partner: RunningServer, key: str, number: int = 40) -> list[int]:
    connection = http.client.HTTPConnection("127.0.0.1", partner.port, timeout=20)
    try:
        found = []
        for _ in range(number):
            connection.request("GET", f"/flaky?rate=0.3&key={key}")
            answer = connection.getresponse()
            answer.read()
            found.append(answer.status)
        return found
    finally:
        connection.close()


def test_flaky_fails_by_chance_alike_for_one_seed_whoever_comes_first(partner: RunningServer) -> None:
    """Two callers at once, in an order that nobody knows: each sees what it saw alone."""
    with running_partner(seed=7) as again, ThreadPoolExecutor(2) as pool:
        at_once = list(pool.map(lambda key: outcomes(again, key), ("a", "b")))
    assert at_once == [outcomes(partner, "a"), outcomes(partner, "b")]
    assert {status for found in at_once for status in found} == {200, 503}
    with running_partner(seed=8) as other:
        assert outcomes(other, "a") != at_once[0]


def test_the_share_of_chance_failures_is_about_the_rate(partner: RunningServer) -> None:
    assert 60 <= outcomes(partner, "share", 300).count(503) <= 120
    assert {ask(partner, "/flaky?rate=0")[0] for _ in range(5)} == {200}
    assert {ask(partner, "/flaky?rate=1")[0] for _ in range(5)} == {503}


def test_behind_the_first_failures_chance_decides(partner: RunningServer) -> None:
    assert [ask(partner, "/flaky?fail=2&rate=0&key=k")[0] for _ in range(3)] == [503, 503, 200]


def test_budget_works_and_tells_what_it_received(partner: RunningServer) -> None:
    begun = time.monotonic()
    status, answer = budgeted(partner, 30, "60000")
    assert time.monotonic() - begun >= 0.03
    assert (status, answer["received"], answer["stopped_early"]) == (200, 60000, False)
    assert answer["worked_ms"] >= 30


@pytest.mark.parametrize(("budget", "received"), [
    ("700, 60000", 700), ("abc", "abc"), ("-5", "-5"), ("1.5", "1.5"), ("9" * 20, "9" * 20), ("\u00b2", "\u00b2"),
    ("abc, 900", 900), ("", ""),
])
def test_a_budget_that_cannot_be_read_comes_back_as_text_and_binds_nobody(
    partner: RunningServer, budget: str, received: int | str
) -> None:
    status, answer = budgeted(partner, 1, budget)
    assert (status, answer["received"], answer["stopped_early"]) == (200, received, False)


def test_without_a_budget_it_received_null(partner: RunningServer) -> None:
    status, answer = ask(partner, "/budget?ms=1")
    assert (status, answer["received"], answer["stopped_early"]) == (200, None, False)
    assert partner.stats()["budgets"] == []


@pytest.mark.parametrize("budget", [0, 5, 60])
def test_a_budget_smaller_than_the_work_ends_it_early_and_in_time(partner: RunningServer, budget: int) -> None:
    status, answer = budgeted(partner, HOUR, str(budget))
    assert (status, answer["received"], answer["ms"], answer["stopped_early"]) == (504, budget, HOUR, True)
    assert answer["worked_ms"] >= max(0, budget - 10)
    assert f"the budget is {budget} ms" in answer["detail"]


def test_it_gives_up_so_early_that_the_caller_still_hears_it(partner: RunningServer) -> None:
    """On a quiet machine; of several tries one is enough to show where the timer stands."""
    assert any(budgeted(partner, HOUR, "150")[1]["worked_ms"] < 150 for _ in range(10))


def test_a_budget_that_the_work_would_use_up_is_not_enough_and_one_ms_more_is(partner: RunningServer) -> None:
    assert budgeted(partner, 20, "20")[0] == 504
    assert budgeted(partner, 20, "21")[0] == 200


def test_the_statistics_count_requests_by_path_and_keep_the_last_budgets(partner: RunningServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", partner.port, timeout=20)
    try:
        for number in range(120):
            connection.request("GET", "/status/204", headers={"X-Budget-Ms": str(number)})
            connection.getresponse().read()
    finally:
        connection.close()
    for path in ("/slow?ms=0", "/slow?ms=x", "/nowhere", "/elsewhere", "/status/99", "/_stats"):
        ask(partner, path)
    budgeted(partner, 0, "x" * 500)
    status, stats = ask(partner, "/_stats")
    assert (status, stats) == (200, partner.stats())
    assert stats["requests"] == {"/budget": 1, "/slow": 2, "/status": 1, "/status/204": 120, "other": 2}
    assert (stats["total"], stats["in_flight"], stats["left"], stats["seed"]) == (126, 0, 0, 7)
    assert stats["max_inflight"] == 1
    assert stats["budgets"] == [*range(21, 120), "x" * 100]


@pytest.mark.parametrize("path", [f"/slow?ms={HOUR}", f"/budget?ms={HOUR}", f"/drip?bytes=1&every_ms={HOUR}"])
def test_a_caller_that_leaves_ends_the_work_at_once(partner: RunningServer, path: str) -> None:
    with connected(partner) as sock:
        sock.sendall(get(path))
        partner.wait_for(in_flight=1)
    assert partner.wait_for(in_flight=0)["left"] == 1


@pytest.mark.parametrize("path", ["/slow?ms=400", "/budget?ms=400", "/drip?bytes=1&every_ms=400"])
def test_work_that_nobody_waits_for_does_not_end_a_second_time(partner: RunningServer, path: str) -> None:
    with connected(partner) as sock:
        sock.sendall(get(path))
        partner.wait_for(in_flight=1)
    partner.wait_for(in_flight=0, left=1)
    ask(partner, "/slow?ms=420")  # longer than what was given up would have taken
    assert (partner.stats()["in_flight"], partner.stats()["left"]) == (0, 1)


@pytest.mark.parametrize(("path", "parameter", "says"), [
    ("/slow", "ms", "ms is missing: a whole number from 0 to 3600000"),
    ("/slow?ms=3600001", "ms", "ms is a whole number from 0 to 3600000, not '3600001'"),
    ("/slow?ms=1&ms=2", "ms", "'ms' is given twice"),
    ("/slow?ms=1&a=2", "a", "unknown parameter 'a'; known: ms"),
    ("/drip?bytes=1&every_ms=1&byte=2", "byte", "unknown parameter 'byte' (did you mean 'bytes'?); known: bytes, every_ms"),
    ("/status", "status", "status is a whole number from 100 to 599, not ''"),
    ("/status/600", "status", "not '600'"),
    ("/status/200/1", "status", "not '200/1'"),
    ("/status/200?retry_after=1%0d%0aX:+1", "retry_after", "printable ASCII"),
    ("/status/200?retry_after=", "retry_after", "1 to 200"),
    ("/drip?bytes=1", "every_ms", "every_ms is missing"),
    ("/drip?bytes=1048577&every_ms=0", "bytes", "from 0 to 1048576"),
    ("/drip?bytes=3601&every_ms=1000", "every_ms", "bytes times every_ms is at most 3600000, not 3601000"),
    ("/flaky?fail=-1", "fail", "fail is a whole number from 0"),
    ("/flaky?status=200", "status", "from 400 to 599"),
    ("/flaky?rate=30", "rate", "rate is a share from 0 to 1, as 0.3, not '30'"),
    ("/budget?ms=1s", "ms", "not '1s'"),
])
def test_a_wrong_parameter_is_answered_400_with_its_name_and_what_it_takes(
    partner: RunningServer, path: str, parameter: str, says: str
) -> None:
    status, answer = ask(partner, path)
    assert (status, answer["status"], answer["parameter"]) == (400, 400, parameter)
    assert says in answer["detail"]


def test_a_path_that_is_none_is_answered_404_with_those_there_are(partner: RunningServer) -> None:
    status, answer = ask(partner, "/slwo?ms=1")
    assert (status, answer["status"]) == (404, 404)
    assert answer["detail"] == "there is no path '/slwo' (did you mean '/slow'?)"
    assert answer["paths"] == [
        "/slow?ms=N", "/status/N", "/drip?bytes=N&every_ms=M", "/flaky?fail=K", "/budget?ms=N", "/_stats"]
    assert ask(partner, "/")[0] == 404


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"])
def test_any_method_is_taken_and_its_body_dropped(partner: RunningServer, method: str) -> None:
    for path in ("/status/418", "/slow?ms=1", "/drip?bytes=2&every_ms=0"):
        answer, _ = exchanged(partner, path, method, b"x" * 100_000)
        assert answer.status == (418 if "status" in path else 200)


@pytest.mark.parametrize("path", ["/slow?ms=1", "/status/503", "/drip?bytes=3&every_ms=3600", "/flaky", "/_stats"])
def test_head_is_answered_without_a_body_and_the_connection_goes_on(partner: RunningServer, path: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", partner.port, timeout=20)
    try:
        for _ in range(2):
            connection.request("HEAD", path)
            answer = connection.getresponse()
            assert answer.read() == b""
            assert int(answer.getheader("Content-Length", "0")) > 0
    finally:
        connection.close()


@pytest.mark.parametrize("path", ["/slow?ms=1", "/status/503", "/drip?bytes=3&every_ms=1", "/budget?ms=1", "/nowhere"])
def test_http_1_0_is_answered_and_its_connection_ended(partner: RunningServer, path: str) -> None:
    answer = raw(partner, f"GET {path} HTTP/1.0\r\n\r\n".encode())
    assert b"\r\nConnection: close\r\n" in answer
    assert b"\r\nContent-Length: " in answer


def test_requests_sent_ahead_are_answered_in_order(partner: RunningServer) -> None:
    last = b"GET /status/404 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    answer = raw(partner, get("/slow?ms=20") + get("/drip?bytes=2&every_ms=5") + get("/budget?ms=5") + last)
    places = [answer.index(part) for part in (b'"/slow"', b"\r\n\r\n..HTTP", b'"/budget"', b"HTTP/1.1 404 ")]
    assert places == sorted(places)
    assert partner.stats()["max_inflight"] == 1


def test_bytes_that_are_no_request_are_answered_400(partner: RunningServer) -> None:
    answer = raw(partner, b"NONSENSE\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"detail": "the first line is not METHOD TARGET HTTP/1.1"' in answer
    assert partner.stats()["total"] == 0


def test_a_partner_that_cannot_listen_says_so(partner: RunningServer) -> None:
    with pytest.raises(OSError, match="in use"), running_partner(port=partner.port):
        pass
