"""``seawall probe`` shows the three shapes of failure, offline, in a table, a document and a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seawall.cli.main import main
from seawall.faults.loopback import refusing
from tests.cli.measured import document, interrupted, lines
from tests.hub.raw import answering, raw_server, response

pytestmark = pytest.mark.req("BUDGET-2")

Capture = pytest.CaptureFixture[str]
SHORT = ("--connect", "0.1", "--read", "0.1")


def test_three_rows_say_kind_target_time_and_error(capsys: Capture) -> None:
    code, told = document(capsys, "probe", "--connect", "0.1", "--read", "0.2")
    assert (code, told["schema"]) == (0, "seawall.probe/1")
    rows = told["probes"]
    assert all(set(row) == {"kind", "target", "elapsed_ms", "error"} for row in rows)
    assert [(row["kind"], row["error"]) for row in rows] == [
        ("refused", "connection refused"), ("connect_timeout", "no connection within 0.1 s"),
        ("read_timeout", "no byte for 0.2 s")]
    assert rows[1]["elapsed_ms"] >= 100
    assert rows[2]["elapsed_ms"] >= 200


def test_without_flags_a_refusal_is_at_once_and_the_others_take_their_limits(capsys: Capture) -> None:
    code, (_, *rows), err = lines(capsys, "probe")
    took = {row.split()[0]: float(row.split()[2]) for row in rows}
    assert (code, err) == (0, "")
    assert took["refused"] < took["connect_timeout"]
    assert took["connect_timeout"] >= 300
    assert took["read_timeout"] >= 1000


def test_the_file_holds_the_same_document(tmp_path: Path, capsys: Capture) -> None:
    _, told = document(capsys, "probe", *SHORT, "-o", str(tmp_path / "probe.json"))
    assert json.loads((tmp_path / "probe.json").read_text()) == told


def test_a_file_that_cannot_be_written_is_said_before_anything_is_measured(tmp_path: Path, capsys: Capture) -> None:
    code, out, err = lines(capsys, "probe", "-o", str(tmp_path / "none" / "probe.json"))
    assert (code, out) == (2, [])
    assert err.startswith(f"error: cannot write {tmp_path}/none/probe.json (no such file or directory)\nhint: ")


def test_an_address_that_refuses_shows_no_connect_timeout(capsys: Capture) -> None:
    with refusing() as port:
        code, out, err = lines(capsys, "probe", *SHORT, "--unreachable", f"127.0.0.1:{port}")
    assert (code, len(out)) == (1, 4)
    assert err == f"warning: 127.0.0.1:{port} shows no connect_timeout: connection refused\n"


def test_a_partner_that_answers_shows_no_read_timeout(capsys: Capture) -> None:
    with raw_server(answering(response(200))) as partner:
        code, told = document(capsys, "probe", "--connect", "0.2", "--read", "5", "--partner", partner.url)
    assert (code, told["probes"][2]["error"]) == (1, "none: it answered, with status 200")
    assert told["probes"][2]["target"] == f"{partner.url}/slow?ms=6000"


def test_a_partner_that_is_not_there_is_unavailable(capsys: Capture) -> None:
    with refusing() as port:
        assert main(["probe", *SHORT, "--partner", f"http://127.0.0.1:{port}"]) == 69
    assert "shows no read_timeout: connection refused" in capsys.readouterr().err


@pytest.mark.parametrize(("args", "err"), [
    (["--unreachable", "a/b"], "error: 'a/b' is no address: an address has no path; write 192.0.2.1, or 192.0.2.1:80\n"),
    (["--partner", "127.0.0.1:8014"], "error: '127.0.0.1:8014' is no URL to call: "),
    (["--partner", "http://x/?a"], "error: 'http://x/?a' has a query"),
    (["--read", "x"], "error: invalid value for '--read'"),
])
def test_a_usage_fault_says_what_to_write(args: list[str], err: str, capsys: Capture) -> None:
    code, out, told = lines(capsys, "probe", *args)
    assert (code, out) == (2, [])
    assert told.startswith(err)


def test_ctrl_c_prints_what_was_measured(tmp_path: Path) -> None:
    file = tmp_path / "probe.json"
    code, told, err = interrupted("probe", "--connect", "0.3", "--read", "60", "--partner", "URL", "-o", str(file))
    assert (code, err, told["interrupted"]) == (130, "", True)
    assert [row["kind"] for row in told["probes"]] == ["refused", "connect_timeout", "read_timeout"]
    assert told["probes"][2]["error"].startswith("interrupted")
    assert json.loads(file.read_text()) == told
