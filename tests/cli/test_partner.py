"""``seawall partner`` as a user runs it: a process, curl-like requests, signals."""

from __future__ import annotations

import http.client
import re
import signal

import pytest

from seawall.cli.main import main
from seawall.faults.running import running_partner
from tests.cli.test_target import ask, started

pytestmark = pytest.mark.req("BUDGET-1")


@pytest.mark.parametrize("command", [("partner",), ("fake", "partner")])
def test_it_says_where_it_listens_and_serves(command: tuple[str, ...]) -> None:
    with started("--seed", "5", command=command) as (_, port, line):
        assert line == (
            f"partner listening on http://127.0.0.1:{port} (seed 5); /slow?ms=N, /status/N, /drip?bytes=N&every_ms=M, "
            "/flaky?fail=K, /budget?ms=N, /_stats\n")
        assert ask(port, "GET", "/slow?ms=5")[0] == 200
        assert ask(port, "POST", "/status/418", "ignored")[0] == 418
        assert ask(port, "GET", "/_stats")[1]["requests"] == {"/slow": 1, "/status/418": 1}


def test_a_run_with_the_seed_that_was_told_fails_alike() -> None:
    def outcomes(port: int) -> list[int]:
        return [ask(port, "GET", "/flaky?rate=0.5")[0] for _ in range(30)]

    with started(command=("partner",)) as (_, port, line):
        first = outcomes(port)
    seed = re.search(r"\(seed (\d+)\)", line)
    assert seed
    with started("--seed", seed[1], command=("partner",)) as (_, port, _):
        assert outcomes(port) == first


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it_silently_though_a_call_is_running(number: signal.Signals, code: int) -> None:
    with started(command=("partner",)) as (process, port, _):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("GET", "/slow?ms=3600000")
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
        connection.close()
    assert (process.returncode, out, err) == (code, "", "")


def test_the_default_port_is_8014(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["partner", "--help"]) == 0
    told = capsys.readouterr().out
    assert "[default: 8014" in " ".join(told.split())
    assert told.startswith("Examples:\n  seawall partner --port 8014\n")


def test_a_port_in_use_is_said_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    with running_partner() as other:
        assert main(["partner", "--port", str(other.port)]) == 69
    assert capsys.readouterr().err == (
        f"error: cannot listen on 127.0.0.1:{other.port} (the port is in use)\n"
        "hint: another partner may be running there; --port takes another\n")


def test_a_seed_that_is_no_number_is_a_usage_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["partner", "--seed", "x"]) == 2
    assert capsys.readouterr().err.startswith("error: invalid value for '--seed'")
