"""The commands that measure share their help, their tables, and a line on a terminal that says that it goes on."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
import time

import pytest

from seawall.cli import progress
from seawall.cli.main import main
from seawall.cli.progress import Progress
from seawall.cli.table import floor_ms, ms, table

COMMANDS = ("probe", "call", "deadline", "retry", "fanout")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_begins_with_examples_and_tells_the_exit_codes(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "-h"]) == 0
    out = capsys.readouterr().out
    first, second, *_ = out.splitlines()
    assert (first, second.split()[:2]) == ("Examples:", ["seawall", command])
    assert "Exit codes" in out
    assert "130 interrupted" in " ".join(out.split())
    assert "[required]  [required]" not in out


def test_measuring_loads_no_event_loop_and_no_tls() -> None:
    """First output within a tenth of a second: what a plain call does not need is not loaded."""
    code = (
        "import sys; from seawall.cli.main import main; main(['call', 'http://127.0.0.1:1/'])\n"
        "print({'asyncio', 'ssl', 'http'} & set(sys.modules), file=sys.stderr)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == "set()\n"


def test_numbers_stand_to_the_right_and_nothing_is_a_hyphen() -> None:
    rows: list[dict[str, object]] = [{"phase": "done", "status": 200, "elapsed_ms": 7.25, "error": None},
                                     {"phase": "no_budget", "status": None, "elapsed_ms": 1000.0, "error": "late"}]
    assert table(rows, ("phase", "status", "elapsed_ms", "error")) == [
        "phase      status  elapsed_ms  error",
        "done          200         7.2  -",
        "no_budget       -      1000.0  late",
    ]
    assert table([], ("phase", "status")) == ["phase  status"]


def test_milliseconds_are_told_to_a_tenth_and_what_is_left_never_as_more() -> None:
    assert (ms(0.00126), ms(1.0)) == (1.3, 1000.0)
    assert (floor_ms(0.00129), floor_ms(1.0)) == (1.2, 1000.0)


class Terminal(io.StringIO):
    def __init__(self, is_terminal: bool = True) -> None:
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "AFTER", 0.01)
    monkeypatch.setattr(progress, "EVERY", 0.01)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.usefixtures("impatient")
def test_a_terminal_shows_what_goes_on_and_is_left_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    end = time.monotonic() + 20
    with Progress("call: 1 of 2") as shown:
        while "1 of 2" not in terminal.getvalue() and time.monotonic() < end:
            time.sleep(0.005)
        shown.what = "call: 2 of 2"
        while "2 of 2" not in terminal.getvalue() and time.monotonic() < end:
            time.sleep(0.005)
    said = terminal.getvalue()
    assert said.startswith("\r\x1b[Kcall: 1 of 2  0.")
    assert "call: 2 of 2" in said
    assert said.endswith(" s\r\x1b[K")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("is_terminal", "term"), [(False, "xterm"), (True, "dumb"), (True, "")])
def test_nowhere_else_is_anything_shown(is_terminal: bool, term: str, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(is_terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", term)
    with Progress("call"):
        assert [thread.name for thread in threading.enumerate() if thread.name == "progress"] == []
    assert terminal.getvalue() == ""


def test_what_is_over_within_a_second_needs_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with Progress("call"):
        pass
    assert terminal.getvalue() == ""
