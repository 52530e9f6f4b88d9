"""The command line speaks in two lines, ends with the right code, and shows nobody a traceback who did not ask for one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import seawall
from seawall.cli import main as entry
from seawall.cli import say
from seawall.cli.main import main

PYTHON = [sys.executable, "-m", "seawall"]


def test_help_begins_with_two_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for flag in ("-h", "--help"):
        assert main([flag]) == 0
        out = capsys.readouterr().out.splitlines()
        assert out[0] == "Examples:"
        assert [line.split()[:2] for line in out[1:3]] == [["seawall", "hub"], ["seawall", "target"]]


@pytest.mark.parametrize("command", [["hub"], ["target"], ["fake"], ["fake", "target"]])
def test_the_help_of_each_command_begins_with_examples(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "-h"]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first == "Examples:"
    assert second.startswith("  seawall ")


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"seawall {seawall.__version__}\n"


def test_without_a_command_the_help_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("Examples:")


@pytest.mark.parametrize(("args", "err"), [
    (["hbu"], "error: no such command: hbu\nhint: did you mean seawall hub?\n"),
    (["xyz"], "error: no such command: xyz\nhint: there are: "),
    (["target", "--prot", "1"], "error: no such option: --prot\nhint: did you mean --port?\n"),
    (["hub", "--lisen", ":1"], "error: no such option: --lisen\nhint: did you mean --listen?\n"),
    (["target", "--port", "99999"], "error: invalid value for '--port': 99999 is not in the range 0<=x<=65535\n"
                                    "hint: seawall target --help\n"),
    (["fake", "target", "x"], "error: got unexpected extra argument (x)\nhint: seawall fake target --help\n"),
    (["target", "--name", " "], "error: --name ' ' is no name\nhint: a word such as CORE\n"),
])
def test_a_usage_fault_says_what_and_what_to_do(args: list[str], err: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(err)


@pytest.mark.parametrize(("fault", "code", "err"), [
    (RuntimeError("out of\ncheese"), 70,
     "error: unexpected RuntimeError: out of cheese (a fault of seawall itself)\nhint: SEAWALL_DEBUG=1"),
    (seawall.errors.ConfigError("a: b\nc: d"), 2, "error: a: b\nerror: c: d\n"),
    (say.Stop("no port", "in use", "take another", 69), 69, "error: no port (in use)\nhint: take another\n"),
    (KeyboardInterrupt(), 130, ""),
])
def test_each_way_to_fail_has_its_lines_and_its_code(
    fault: BaseException, code: int, err: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(ctx: object) -> None:
        raise fault

    monkeypatch.delenv("SEAWALL_DEBUG", raising=False)
    monkeypatch.setattr(entry.cli, "invoke", fail)
    assert main(["hub"]) == code
    told = capsys.readouterr()
    assert (told.err == err) if not err else told.err.startswith(err)
    assert "Traceback" not in told.err


@pytest.mark.parametrize("asked", ["variable", "--verbose"])
def test_the_traceback_of_an_unexpected_error_is_shown_on_request(
    asked: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*args: object) -> None:
        raise RuntimeError("cheese")

    monkeypatch.setenv("SEAWALL_DEBUG", "1" if asked == "variable" else "")
    monkeypatch.setattr("seawall.faults.running.run", fail)
    assert main(["target", *(["--verbose"] if asked == "--verbose" else [])]) == 70
    err = capsys.readouterr().err
    assert err.startswith("Traceback (most recent call last):")
    assert "error: unexpected RuntimeError: cheese" in err


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_gone_is_no_error_to_talk_about(unbuffered: str) -> None:
    read, write = os.pipe()
    os.close(read)
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    try:
        done = subprocess.run(
            [*PYTHON, "--help"], stdout=write, stderr=subprocess.PIPE, timeout=60, check=False, env=environment)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [
    "--version", "hub --help", "plan init", "call http://127.0.0.1:1/", "call --json http://127.0.0.1:1/",
    "target --port 0", "hub --listen 127.0.0.1:0 --target A=http://127.0.0.1:1",
])  # fmt: skip
def test_where_the_output_has_no_room_it_says_so(words: str, unbuffered: str) -> None:
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*PYTHON, *words.split()], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
                              check=False, env=environment)  # fmt: skip
    said = "error: cannot write to standard output (no space left on device)\nhint: make room where it goes, or send it"
    assert (done.returncode, done.stderr) == (2, f"{said} elsewhere\n")


def test_where_the_output_cannot_be_written_to_at_all_it_says_so() -> None:
    with Path(os.devnull).open("rb") as unwritable:
        done = subprocess.run([*PYTHON, "--version"], stdout=unwritable, stderr=subprocess.PIPE, text=True, timeout=60,
                              check=False)  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot write to standard output (bad file descriptor)\n")


def test_without_click_it_says_how_to_install_it(tmp_path: Path) -> None:
    code = "import sys; sys.modules['click'] = None; from seawall.__main__ import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr == "error: the command line needs click (it is not installed)\nhint: pip install 'seawall[cli]'\n"


def test_help_imports_no_command_and_no_event_loop() -> None:
    code = (
        "import sys; from seawall.cli.main import main; main(['--help'])\n"
        "print({'asyncio', 'ssl', 'http', 'seawall.cli.hub', 'seawall.cli.target'} & set(sys.modules), file=sys.stderr)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == "set()\n"
