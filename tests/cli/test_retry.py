"""``seawall retry`` repeats a call as long as it pays, shows each wait with its ceiling, and says why it stopped."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.faults.loopback import refusing, silent
from tests.cli.measured import document, interrupted, lines
from tests.hub.raw import RawConnection, Script, answering, raw_server, response

pytestmark = pytest.mark.req("BUDGET-6")

Capture = pytest.CaptureFixture[str]
FLAGS = ("--budget-ms", "20000", "--base-ms", "20", "--max-attempts", "4")
SHAPE = {"n", "phase", "status", "elapsed_ms", "wait_ceiling_ms", "waited_ms", "retry_after_ms", "error"}


def flaky(fails: int, *more: str) -> Script:
    """Answers 503 so many times, then 200."""
    answered = 0

    def script(connection: RawConnection) -> None:
        nonlocal answered
        connection.read_request()
        answered += 1
        connection.send(response(503 if answered <= fails else 200))

    return script


def of(told: dict[str, Any], name: str) -> list[Any]:
    return [row[name] for row in told["attempts"]]


def test_it_stops_at_the_first_success(capsys: Capture) -> None:
    with raw_server(flaky(2)) as target:
        code, told = document(capsys, "retry", target.url, *FLAGS, "--seed", "1")
    assert (code, told["schema"], told["stopped_reason"]) == (0, "seawall.retry/1", "success")
    assert all(set(row) == SHAPE for row in told["attempts"])
    assert (of(told, "n"), of(told, "status"), of(told, "phase")) == ([1, 2, 3], [503, 503, 200], ["done"] * 3)
    assert of(told, "wait_ceiling_ms") == [20, 40, 80]
    assert all(0 <= row["waited_ms"] < row["wait_ceiling_ms"] for row in told["attempts"])
    assert told["attempts"][-1]["waited_ms"] == 0


def test_it_stops_when_the_attempts_are_used_up(capsys: Capture) -> None:
    with refusing() as port:
        code, told = document(capsys, "retry", f"http://127.0.0.1:{port}/", *FLAGS)
    assert (code, told["stopped_reason"], of(told, "phase")) == (69, "attempts", ["connect"] * 4)


def test_it_stops_when_wait_and_call_no_longer_fit(capsys: Capture) -> None:
    with raw_server(answering(response(503))) as target:
        code, told = document(
            capsys, "retry", target.url, "--budget-ms", "500", "--base-ms", "100", "--max-attempts", "1000", "--seed", "5")
    assert (code, told["stopped_reason"]) == (124, "budget")
    assert told["attempts"][-1]["waited_ms"] == 0
    assert sum(of(told, "waited_ms")) < 500


def test_a_target_that_hangs_ends_with_the_budget(capsys: Capture) -> None:
    with silent() as port:
        code, told = document(capsys, "retry", f"http://127.0.0.1:{port}/", "--budget-ms", "300", "--base-ms", "10",
                              "--max-attempts", "50", "--read", "0.1", "--connect", "60")
    assert (code, told["stopped_reason"]) == (124, "budget")
    assert of(told, "phase")[0] == "read"
    assert told["spent_ms"] < 15_000


def test_a_budget_that_ends_the_first_attempt_is_the_reason_too(capsys: Capture) -> None:
    with silent() as port:
        code, told = document(capsys, "retry", f"http://127.0.0.1:{port}/", "--budget-ms", "200", "--base-ms", "10",
                              "--max-attempts", "3")
    assert (code, told["stopped_reason"], of(told, "n")) == (124, "budget", [1])


def test_without_a_budget_nothing_is_called(capsys: Capture) -> None:
    with raw_server(answering(response(200))) as target:
        code, told = document(capsys, "retry", target.url, "--budget-ms", "0", "--base-ms", "1", "--max-attempts", "3")
        assert target.connections == 0
    assert (code, told["stopped_reason"], of(told, "phase"), of(told, "elapsed_ms")) == (124, "budget", ["no_budget"], [0])


def test_a_target_that_asks_for_a_pause_gets_it_or_is_left_alone(capsys: Capture) -> None:
    patient = answering(response(429, Retry_After="0"), response(200))

    def script(connection: RawConnection) -> None:
        patient(connection)

    with raw_server(script) as target:
        code, told = document(capsys, "retry", target.url, *FLAGS[:-1], "2", "--base-ms", "5000")
        assert (code, told["stopped_reason"]) == (69, "attempts")
        assert of(told, "retry_after_ms") == [0, 0]
        assert told["attempts"][0]["waited_ms"] == 0
    with raw_server(answering(response(429, Retry_After="3600"))) as target:
        code, told = document(capsys, "retry", target.url, *FLAGS)
    assert (code, told["stopped_reason"], of(told, "retry_after_ms")) == (75, "pushback", [3_600_000])


@pytest.mark.parametrize(("status", "on", "attempts", "reason"), [
    (404, None, 1, "success"), (404, "404", 4, "attempts"), (429, None, 4, "attempts"), (503, "connect", 1, "success"),
])
def test_what_is_worth_another_attempt_can_be_said(
    status: int, on: str | None, attempts: int, reason: str, capsys: Capture
) -> None:
    with raw_server(answering(response(status))) as target:
        _, told = document(capsys, "retry", target.url, *FLAGS, *(["--on", on] if on else []))
    assert (len(told["attempts"]), told["stopped_reason"]) == (attempts, reason)


def test_a_seed_draws_the_same_waits_again(capsys: Capture) -> None:
    with refusing() as port:
        first, again = (document(capsys, "retry", f"http://127.0.0.1:{port}/", *FLAGS, "--seed", "7")[1] for _ in range(2))
    assert of(first, "waited_ms") == of(again, "waited_ms")


def test_people_get_a_table_and_the_reason(capsys: Capture) -> None:
    with raw_server(flaky(1)) as target:
        code, (heading, *rows, reason), err = lines(capsys, "retry", target.url, *FLAGS)
    assert heading.split() == ["n", "phase", "status", "elapsed_ms", "wait_ceiling_ms", "waited_ms"]
    assert [row.split()[:3] for row in rows] == [["1", "done", "503"], ["2", "done", "200"]]
    assert reason.startswith("success, after ")
    assert (code, err) == (0, "")


@pytest.mark.parametrize(("args", "err"), [
    (["--on", "sometimes"], "error: 'sometimes' is nothing to retry on: connect, read, total, a status as 404"),
    (["--max-delay-ms", "5"], "error: --max-delay-ms 5 is less than --base-ms 20 (the first wait would be cut already)\n"),
    (["--max-attempts", "0"], "error: invalid value for '--max-attempts': is a whole number from 1 to 10000, not 0"),
    (["--seed", "x"], "error: invalid value for '--seed'"),
])
def test_a_usage_fault_says_what_to_write(args: list[str], err: str, capsys: Capture) -> None:
    code, out, told = lines(capsys, "retry", "http://127.0.0.1:1/", *FLAGS, *args)
    assert (code, out) == (2, [])
    assert told.startswith(err)


def test_ctrl_c_prints_the_attempts_so_far() -> None:
    code, told, err = interrupted("retry", "URL", "--budget-ms", "60000", "--base-ms", "1", "--max-attempts", "9",
                                  "--read", "60", after=3)
    assert (code, err, told["interrupted"], told["stopped_reason"]) == (130, "", True, "interrupted")
    assert of(told, "phase") == ["done", "done", "read"]
