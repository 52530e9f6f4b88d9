"""``seawall fanout`` tells each call what is left, and shows what the callee received."""

from __future__ import annotations

import json
import re
import time

import pytest

from seawall.faults.loopback import silent
from tests.cli.measured import document, interrupted, lines
from tests.hub.raw import RawConnection, raw_server, response

pytestmark = pytest.mark.req("BUDGET-7")

Capture = pytest.CaptureFixture[str]


def echoing(connection: RawConnection) -> None:
    told = re.search(rb"\r\nX-Budget-Ms: (\d+)\r\n", connection.read_request())
    assert told is not None
    time.sleep(0.02)
    connection.send(response(200, json.dumps({"received": int(told[1])}).encode()))


def test_each_row_shows_what_was_sent_and_received(capsys: Capture) -> None:
    with raw_server(echoing) as target:
        code, told = document(capsys, "fanout", f"{target.url}/", "--n", "3", "--budget-ms", "20000")
    assert (code, told["schema"], told["url"]) == (0, "seawall.fanout/1", f"{target.url}/budget?ms=200")
    sent = [row["sent_budget_ms"] for row in told["calls"]]
    assert sent == [row["received"] for row in told["calls"]]
    assert 20000 > sent[0] > sent[1] > sent[2] > 0
    assert all(row["elapsed_ms"] >= 20 for row in told["calls"])
    assert [request.partition(b" HTTP")[0] for request in target.requests] == [b"GET /budget?ms=200"] * 3


def test_with_nothing_left_no_call_is_made(capsys: Capture) -> None:
    with silent() as port:
        code, told = document(
            capsys, "fanout", f"http://127.0.0.1:{port}", "--n", "3", "--budget-ms", "300", "--connect", "60")
    assert code == 124
    assert [row["phase"] for row in told["calls"]] == ["read", "no_budget", "no_budget"]
    assert [row["sent_budget_ms"] for row in told["calls"][1:]] == [0, 0]
    assert [row["received"] for row in told["calls"]] == [None] * 3


def test_people_get_a_table(capsys: Capture) -> None:
    with raw_server(echoing) as target:
        code, (heading, row), err = lines(capsys, "fanout", target.url, "--n", "1", "--budget-ms", "20s", "--ms", "50")
    assert heading.split() == ["sent_budget_ms", "received", "phase", "status", "elapsed_ms"]
    assert row.split()[0] == row.split()[1]
    assert (code, err) == (0, "")
    assert target.requests[0].startswith(b"GET /budget?ms=50 ")


@pytest.mark.parametrize(("args", "err"), [
    (["http://x/?a=b", "--n", "1", "--budget-ms", "5"], "error: 'http://x/?a=b' has a query; give the URL that /budget"),
    (["http://x/", "--n", "0", "--budget-ms", "5"], "error: invalid value for '--n': is a whole number from 1 to 100000"),
    (["http://x/", "--n", "1"], "error: missing option '--budget-ms'"),
    (["x", "--n", "1", "--budget-ms", "5"], "error: 'x' is no URL to call: "),
])
def test_a_usage_fault_says_what_to_write(args: list[str], err: str, capsys: Capture) -> None:
    code, out, told = lines(capsys, "fanout", *args)
    assert (code, out) == (2, [])
    assert told.startswith(err)


def test_ctrl_c_prints_the_calls_so_far() -> None:
    code, told, err = interrupted("fanout", "URL", "--n", "5", "--budget-ms", "60000", after=2)
    assert (code, err, told["interrupted"]) == (130, "", True)
    assert [row["phase"] for row in told["calls"]] == ["done", "read"]
