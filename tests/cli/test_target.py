"""``seawall target`` as a user runs it: a process, curl-like requests, signals."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from seawall.cli.main import main
from seawall.faults.running import running_target


@contextmanager
def started(*args: str, command: tuple[str, ...] = ("target",)) -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    """The process, its port, and the line it said."""
    process = subprocess.Popen(
        [sys.executable, "-m", "seawall", *command, "--port", "0", *args],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        assert found, line or process.communicate(timeout=20)
        yield process, int(found[1]), line
    finally:
        process.kill()
        process.communicate(timeout=20)


def ask(port: int, method: str, path: str, body: str | None = None) -> tuple[int, Any]:
    """As curl does: its JSON goes out marked as a form."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path, body, {"Content-Type": "application/x-www-form-urlencoded"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


@pytest.mark.req("HUB-8")
@pytest.mark.parametrize("command", [("target",), ("fake", "target")])
def test_it_says_where_it_listens_and_does_as_told(command: tuple[str, ...]) -> None:
    with started("--name", "CLAIM", "--balance", "50", command=command) as (_, port, line):
        assert line == (
            f"target CLAIM listening on http://127.0.0.1:{port} (balance 50); POST /tx, POST /_ctl, GET /_stats\n")
        assert ask(port, "POST", "/tx", '{"target":"CLAIM","amount":51}')[1]["code"] == "B201"
        assert ask(port, "POST", "/_ctl", '{"mode":"fail"}')[0] == 200
        assert ask(port, "POST", "/tx", '{"target":"CLAIM","amount":5}')[0] == 500
        stats = ask(port, "GET", "/_stats")[1]
        assert (stats["calls"], stats["max_inflight"], stats["mode"]) == (2, 1, "fail")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it_silently_though_a_call_is_running(number: signal.Signals, code: int) -> None:
    with started() as (process, port, _):
        ask(port, "POST", "/_ctl", '{"mode":"hang"}')
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("POST", "/tx", "{}")
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
        connection.close()
    assert (process.returncode, out, err) == (code, "", "")


@pytest.mark.req("HUB-8")
def test_the_default_port_is_9201_and_the_default_name_core(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["target", "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "[default: 9201" in told
    assert "[default: CORE]" in told


def test_a_port_in_use_is_said_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    with running_target() as other:
        assert main(["target", "--port", str(other.port)]) == 69
    assert capsys.readouterr().err == (
        f"error: cannot listen on 127.0.0.1:{other.port} (the port is in use)\n"
        "hint: another target may be running there; --port takes another\n")


def test_an_address_of_another_machine_is_said_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["target", "--host", "192.0.2.1", "--port", "0"]) == 69
    assert capsys.readouterr().err.endswith("hint: --host takes an address of this machine\n")
