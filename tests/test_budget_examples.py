"""The examples of the budget do by hand, with their flags, what the commands of the same names do."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from seawall.faults.loopback import black_hole, refusing, silent
from tests.hub.raw import RawConnection, answering, raw_server, response

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "budget"


def printed(name: str, *flags: str) -> Any:
    """The one document that the example prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", f"{name}.py", *flags], cwd=EXAMPLES, capture_output=True, text=True, timeout=60,
        check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def url(port: int) -> str:
    return f"http://127.0.0.1:{port}/"


@pytest.mark.req("BUDGET-3")
def test_call_says_where_it_ended() -> None:
    limits = ("--connect", "0.2", "--read", "0.2")
    with refusing() as nobody, black_hole() as hole, silent() as quiet, raw_server(answering(response(500))) as target:
        ends = [printed("call", *limits, where) for where in (url(nobody), url(hole), url(quiet), target.url)]
    assert [(end["phase"], end["status"]) for end in ends] == [
        ("connect", None), ("connect", None), ("read", None), ("done", 500)]
    assert [end["elapsed_ms"] >= 200 for end in ends[1:3]] == [True, True]


@pytest.mark.req("BUDGET-4")
@pytest.mark.req("BUDGET-5")
def test_deadline_ends_with_the_budget_and_skips_what_has_no_room() -> None:
    def drip(connection: RawConnection) -> None:
        connection.read_request()
        connection.drip(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 5000, 0.02)

    with raw_server(answering(response(200))) as target, raw_server(drip) as slow:
        told = printed("deadline", "--budget-ms", "500", "--min-ms", "50", "--url", target.url, *["--url", slow.url] * 2)
    assert [row["phase"] for row in told["calls"]] == ["done", "total", "no_budget"]
    assert [row["url"] for row in told["calls"]] == [target.url, slow.url, slow.url]
    assert (told["skipped"], told["calls"][2]["elapsed_ms"]) == (1, 0)
    assert 500 <= told["spent_ms"] < 15_000
    assert 500 >= told["calls"][0]["read_timeout_ms"] >= told["calls"][1]["read_timeout_ms"] > 0


@pytest.mark.req("BUDGET-6")
def test_retry_stops_for_each_of_its_three_reasons() -> None:
    answers = [response(200), response(503), response(429)]

    def flaky(connection: RawConnection) -> None:
        connection.read_request()
        connection.send(answers.pop())

    flags = ("--budget-ms", "20000", "--base-ms", "20", "--max-attempts", "3")
    with raw_server(flaky) as target:
        told = printed("retry", *flags, target.url)
    assert (told["stopped_reason"], [row["status"] for row in told["attempts"]]) == ("success", [429, 503, 200])
    assert [row["wait_ceiling_ms"] for row in told["attempts"]] == [20, 40, 80]
    assert all(row["waited_ms"] <= row["wait_ceiling_ms"] for row in told["attempts"])
    with refusing() as port:
        told = printed("retry", *flags, url(port))
        assert (told["stopped_reason"], len(told["attempts"])) == ("attempts", 3)
        told = printed("retry", "--budget-ms", "200", "--base-ms", "50", "--max-attempts", "1000", url(port))
        assert told["stopped_reason"] == "budget"
        told = printed("retry", "--budget-ms", "0", "--base-ms", "50", "--max-attempts", "9", url(port))
        assert told == {"attempts": [], "stopped_reason": "budget"}


@pytest.mark.req("BUDGET-1")
@pytest.mark.req("BUDGET-7")
def test_fanout_tells_the_partner_what_is_left_and_the_partner_echoes_it() -> None:
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "partner.py", "--port", "0"], cwd=EXAMPLES, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        listening = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
        assert listening is not None
        rows = printed("fanout", listening[0], "--n", "2", "--budget-ms", "20000")["calls"]
        process.terminate()
        assert (process.communicate(timeout=20), process.returncode) == (("", ""), 0)
    finally:
        process.kill()
        process.communicate(timeout=20)
    sent = [row["sent_budget_ms"] for row in rows]
    assert sent == [row["received"] for row in rows]
    assert 20000 > sent[0] >= sent[1] + 200 > 200
    assert all(row["elapsed_ms"] >= 200 for row in rows)
