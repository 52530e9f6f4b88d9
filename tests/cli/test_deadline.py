"""``seawall deadline``: however many calls, however slow, the whole ends with the budget, and says what each had left."""

from __future__ import annotations

import time
from typing import Any

import pytest

from seawall.faults.loopback import refusing, silent
from tests.cli.measured import document, interrupted, lines
from tests.hub.raw import RawConnection, answering, raw_server, response

Capture = pytest.CaptureFixture[str]
LATE_MS = 15_000  # far more than a loaded machine adds, far less than the targets here would take


def sleeping(connection: RawConnection) -> None:
    connection.read_request()
    time.sleep(0.05)
    connection.send(response(200))


def dripping(connection: RawConnection) -> None:
    connection.read_request()
    connection.drip(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 5000, 0.02)


def of(rows: list[dict[str, Any]], name: str) -> list[Any]:
    return [row[name] for row in rows]


@pytest.mark.req("BUDGET-4")
def test_each_call_is_told_with_what_was_left_for_it(capsys: Capture) -> None:
    with raw_server(sleeping) as target:
        code, told = document(capsys, "deadline", "--budget-ms", "20000", *["--url", target.url] * 3)
    assert (code, told["schema"], told["budget_ms"], told["skipped"]) == (0, "seawall.deadline/1", 20000, 0)
    assert of(told["calls"], "phase") == ["done"] * 3
    assert of(told["calls"], "status") == [200] * 3
    assert of(told["calls"], "url") == [target.url] * 3
    left = 20000.0
    for row in told["calls"]:
        assert row["read_timeout_ms"] <= left
        left -= row["elapsed_ms"]
    assert 150 <= sum(of(told["calls"], "elapsed_ms")) <= told["spent_ms"] < LATE_MS


@pytest.mark.req("BUDGET-4")
def test_the_whole_ends_with_the_budget_though_targets_hang_and_drip(capsys: Capture) -> None:
    with silent() as port, raw_server(dripping) as drip:
        hang = f"http://127.0.0.1:{port}/"
        for urls, phases in (
            ([hang, drip.url], ["read", "no_budget"]), ([drip.url, hang, hang], ["total", "no_budget", "no_budget"]),
        ):
            flags = [word for url in urls for word in ("--url", url)]
            code, told = document(capsys, "deadline", "--budget-ms", "400", "--connect", "60", *flags)
            assert (code, of(told["calls"], "phase"), told["skipped"]) == (124, phases, len(urls) - 1)
            assert 400 <= told["spent_ms"] < LATE_MS


@pytest.mark.req("BUDGET-5")
def test_too_little_left_costs_nothing_and_is_counted(capsys: Capture) -> None:
    with raw_server(sleeping) as target, raw_server(answering(response(200))) as other:
        code, told = document(
            capsys, "deadline", "--budget-ms", "20000", "--min-ms", "19970", "--url", target.url, *["--url", other.url] * 2)
        assert other.connections == 0
    assert (code, told["skipped"]) == (124, 2)
    assert [(row["phase"], row["elapsed_ms"], row["status"]) for row in told["calls"][1:]] == [("no_budget", 0, None)] * 2


@pytest.mark.req("BUDGET-5")
@pytest.mark.parametrize("min_ms", ["0", "100"])
def test_with_nothing_left_no_call_is_made_whatever_the_minimum(min_ms: str, capsys: Capture) -> None:
    with raw_server(answering(response(200))) as target:
        code, told = document(capsys, "deadline", "--budget-ms", "0", "--min-ms", min_ms, "--url", target.url)
        assert target.connections == 0
    assert (code, of(told["calls"], "phase"), of(told["calls"], "read_timeout_ms"), told["skipped"]) == (
        124, ["no_budget"], [0], 1)


def test_a_refused_call_is_unavailable_and_the_next_is_made(capsys: Capture) -> None:
    with refusing() as port, raw_server(answering(response(500))) as target:
        code, told = document(
            capsys, "deadline", "--budget-ms", "20000", "--url", f"http://127.0.0.1:{port}", "--url", target.url)
    assert (code, of(told["calls"], "phase")) == (69, ["connect", "done"])


def test_people_get_a_table_and_a_sum(capsys: Capture) -> None:
    with raw_server(answering(response(200))) as target:
        code, (heading, row, total), err = lines(capsys, "deadline", "--budget-ms", "20s", "--url", target.url)
    assert heading.split() == ["phase", "status", "read_timeout_ms", "elapsed_ms", "url"]
    assert row.split()[0] == "done"
    assert total.startswith("spent ")
    assert total.endswith(" of 20000 ms, 0 skipped")
    assert (code, err) == (0, "")


@pytest.mark.parametrize(("args", "code", "err"), [
    (["--budget-ms", "500"], 2, "error: missing option '--url'\nhint: seawall deadline --help\n"),
    (["--url", "http://x/"], 2, "error: missing option '--budget-ms'\nhint: "),
    (["--budget-ms", "0.5", "--url", "http://x/"], 2, "error: invalid value for '--budget-ms': '0.5' is not a whole"),
    (["--budget-ms", "-5", "--url", "http://x/"], 2, "error: invalid value for '--budget-ms': '-5' is not a whole number"),
    (["--budget-ms", "5", "--min-ms", "9", "--url=http://x/"], 124, "warning: --min-ms 9 is more than --budget-ms 5: no "),
    (["--budget-ms", "5", "--url", "http://x/", "--url", "x"], 2, "error: 'x' is no URL to call: "),
])
def test_a_setting_that_cannot_work_is_said(args: list[str], code: int, err: str, capsys: Capture) -> None:
    found, _, told = lines(capsys, "deadline", *args)
    assert found == code
    assert told.startswith(err)


def test_ctrl_c_prints_the_calls_so_far() -> None:
    code, told, err = interrupted("deadline", "--budget-ms", "60000", *["--url", "URL"] * 3, after=2)
    assert (code, err, told["interrupted"]) == (130, "", True)
    assert of(told["calls"], "phase") == ["done", "read"]
    assert of(told["calls"], "status") == [503, None]
