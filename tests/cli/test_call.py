"""``seawall call`` says in one document or one table where a call ended, and its exit code says it too."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from seawall.cli.main import main
from seawall.faults.loopback import black_hole, refusing, silent
from tests.cli.measured import document, interrupted, lines
from tests.hub.raw import answering, raw_server, response

pytestmark = pytest.mark.req("BUDGET-3")

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("status", [200, 301, 404, 500])
def test_any_answer_is_done(status: int, capsys: Capture) -> None:
    with raw_server(answering(response(status, b"body"))) as target:
        code, told = document(capsys, "call", "--connect", "5", "--read", "5", target.url)
    assert told.pop("elapsed_ms") > 0
    assert (code, told) == (0, {
        "schema": "seawall.call/1", "url": target.url, "phase": "done", "status": status, "error": None, "body_bytes": 4})


def test_refused_is_connect(capsys: Capture) -> None:
    with refusing() as port:
        code, told = document(capsys, "call", f"http://127.0.0.1:{port}/")
    assert (code, told["phase"], told["status"], told["error"]) == (69, "connect", None, "connection refused")


@pytest.mark.parametrize(("place", "flags", "phase", "code"), [
    (black_hole, ["--connect", "0.1"], "connect", 69),
    (silent, ["--read", "0.1"], "read", 69),
    (silent, ["--read", "100ms"], "read", 69),
    (silent, ["--total", "0.1"], "total", 124),
])
def test_each_limit_has_its_phase_and_its_exit_code(
    place: type, flags: list[str], phase: str, code: int, capsys: Capture
) -> None:
    with place() as port:
        found, told = document(capsys, "call", *flags, f"http://127.0.0.1:{port}/")
    assert (found, told["phase"]) == (code, phase)
    assert told["elapsed_ms"] >= 100


def test_people_get_a_table(capsys: Capture) -> None:
    with raw_server(answering(response(404))) as target:
        code, (heading, row), err = lines(capsys, "call", target.url)
    assert heading.split() == ["phase", "status", "elapsed_ms", "error"]
    phase, status, _, error = row.split()
    assert (code, phase, status, error, err) == (0, "done", "404", "-", "")


@pytest.mark.parametrize(("expected", "code", "err"), [
    ("404", 0, ""), ("200", 1, "error: status 404 (expected 200)\n"),
])
def test_an_expected_status_is_checked(expected: str, code: int, err: str, capsys: Capture) -> None:
    with raw_server(answering(response(404))) as target:
        found, _, told = lines(capsys, "call", target.url, "--expect", expected)
    assert (found, told) == (code, err)


def test_a_call_without_an_answer_is_no_matter_of_what_was_expected(capsys: Capture) -> None:
    with refusing() as port:
        assert lines(capsys, "call", f"http://127.0.0.1:{port}/", "--expect", "200")[0] == 69


def test_the_request_is_what_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "body.json").write_text("from a file")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"from stdin")))
    with raw_server(answering(response(200))) as target:
        assert main(["call", target.url, "-d", "as it stands", "-H", "X-Budget-Ms: 5"]) == 0
        assert main(["call", target.url, "-X", "PUT", "-d", f"@{tmp_path / 'body.json'}"]) == 0
        assert main(["call", target.url, "-d", "-"]) == 0
        assert main(["call", target.url, "-X", "DELETE"]) == 0
    first, second, third, fourth = target.requests
    assert first.startswith(b"POST / HTTP/1.1\r\n")
    assert b"\r\nX-Budget-Ms: 5\r\n" in first
    assert first.endswith(b"\r\n\r\nas it stands")
    assert second.startswith(b"PUT /")
    assert second.endswith(b"from a file")
    assert third.endswith(b"from stdin")
    assert fourth.startswith(b"DELETE /")


def test_a_body_is_sent_in_the_bytes_in_which_it_was_given() -> None:
    with raw_server(answering(response(200))) as target:
        assert main(["call", target.url, "-d", os.fsdecode(b"\xff\xc3\xa9")]) == 0
    assert target.requests[0].endswith(b"\r\n\r\n\xff\xc3\xa9")


def test_a_body_from_a_standard_input_that_is_closed_is_a_usage_fault(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    code, out, told = lines(capsys, "call", "http://127.0.0.1:1/", "-d", "-")
    assert (code, out) == (2, [])
    assert told == "error: cannot read standard input (it is closed)\nhint: -d takes the body itself, @FILE, or - for " \
        "standard input\n"


@pytest.mark.parametrize(("args", "err"), [
    (["127.0.0.1:1"], "error: '127.0.0.1:1' is no URL to call: it has no scheme; write http://127.0.0.1:1\nhint: as"),
    (["http://x/", "--read", "0"], "error: invalid value for '--read': is more than 0"),
    (["http://x/", "--read", "nan"], "error: invalid value for '--read': 'nan' is not a time"),
    (["http://x/", "--connect", "-1"], "error: invalid value for '--connect': '-1' is not a time"),
    (["http://x/", "-H", "nothing"], "error: 'nothing' is no header: write 'Name: value'\nhint: "),
    (["http://x/", "-H", "Content-Length: 5"], "error: the header Content-Length is written by the call itself\nhint: "),
    (["http://x/", "-X", "G T"], "error: 'G T' is no method"),
    (["http://x/", "-d", "@/no/such/file"], "error: cannot read /no/such/file (no such file or directory)\nhint: -d takes"),
    ([], "error: missing argument 'URL'\nhint: seawall call --help\n"),
])
def test_what_cannot_be_called_is_a_usage_fault(args: list[str], err: str, capsys: Capture) -> None:
    code, out, told = lines(capsys, "call", *args)
    assert (code, out) == (2, [])
    assert told.startswith(err)


def test_a_read_limit_that_cannot_be_reached_is_warned_of(capsys: Capture) -> None:
    with raw_server(answering(response(200))) as target:
        _, _, err = lines(capsys, "call", target.url, "--read", "5", "--total", "3")
        assert err == "warning: --read 5 is longer than --total 3: the total always ends first\n"
        assert lines(capsys, "call", target.url, "--total", "1")[2] == ""  # the default was not asked for


def test_ctrl_c_prints_how_far_it_had_come() -> None:
    code, told, err = interrupted("call", "URL", "--read", "60")
    assert (code, err) == (130, "")
    assert (told["phase"], told["interrupted"], told["status"]) == ("read", True, None)
    assert told["error"] == "interrupted, waiting for the whole answer"
