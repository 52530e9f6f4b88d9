"""Runs a command that measures: its exit code and its document; as a process that Ctrl-C falls into."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import Any

import pytest

from seawall.cli.main import main
from tests.hub.raw import RawConnection, raw_server


def document(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, dict[str, Any]]:
    """Run it with ``--json``; all that stands on standard output is one document."""
    code = main([*args, "--json"])
    (line,) = capsys.readouterr().out.splitlines()
    found = json.loads(line)
    assert isinstance(found, dict)
    return code, found


def lines(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, list[str], str]:
    """Run it for people: exit code, standard output, standard error."""
    code = main(list(args))
    told = capsys.readouterr()
    return code, told.out.splitlines(), told.err


def interrupted(*args: str, after: int = 1) -> tuple[int, dict[str, Any], str]:
    """Ctrl-C falls into its request number ``after``: exit code, document, standard error.

    ``URL`` in ``args`` is the target. It answers the requests before that one with 503.
    """
    process: subprocess.Popen[str] | None = None
    number = 0

    def script(connection: RawConnection) -> None:
        nonlocal number
        connection.read_request()
        number += 1
        if number < after:
            connection.send(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
            return
        assert process is not None
        process.send_signal(signal.SIGINT)
        connection.hang()

    with raw_server(script) as target:
        words = [word.replace("URL", target.url) for word in args]
        process = subprocess.Popen(
            [sys.executable, "-m", "seawall", *words, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
            process.wait(20)
    (line,) = out.splitlines()
    return process.returncode, json.loads(line), err
