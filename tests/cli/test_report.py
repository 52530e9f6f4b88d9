"""``seawall report`` writes the report of a measurement and a plan; the example is what it writes."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from seawall.cli.main import main
from tests.budgetplan.plans import GOOD, changed, written
from tests.budgetplan.reports import PROBE, absent
from tests.cli.measured import lines

pytestmark = pytest.mark.req("BUDGET-9")

Capture = pytest.CaptureFixture[str]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "budget"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """The flags that name a measurement and a plan."""
    return ["--probe", written(tmp_path, PROBE, "probe.json"), "--plan", written(tmp_path, GOOD)]


def test_the_example_is_what_the_command_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """The fix is: cd examples/budget; seawall report --probe probe.json --plan budget_plan.json -o budget_report.md"""
    monkeypatch.chdir(EXAMPLES)
    report = tmp_path / "budget_report.md"
    assert main(["plan", "check", "--strict", "budget_plan.json"]) == 0
    assert main(["report", "--probe", "probe.json", "--plan", "budget_plan.json", "-o", str(report)]) == 0
    told = report.read_text(encoding="utf-8")
    assert told == (EXAMPLES / "budget_report.md").read_text(encoding="utf-8")
    plan, probe = (json.loads((EXAMPLES / name).read_text()) for name in ("budget_plan.json", "probe.json"))
    assert absent([plan, probe], told) == []


def test_without_a_file_it_goes_to_standard_output(files: list[str], tmp_path: Path, capsys: Capture) -> None:
    code, out, err = lines(capsys, "report", *files)
    assert (code, err, out[0]) == (0, "", "# Budget report: 3000 ms for one request")
    report = tmp_path / "budget_report.md"
    assert lines(capsys, "report", *files, "-o", str(report)) == (0, [f"wrote {report}"], "")
    assert report.read_text(encoding="utf-8").splitlines() == out


def test_a_report_replaces_an_older_one(files: list[str], tmp_path: Path, capsys: Capture) -> None:
    report = tmp_path / "budget_report.md"
    report.write_text("x" * 100_000)
    assert main(["report", *files, "-o", str(report)]) == 0
    assert report.stat().st_size < 20_000


@pytest.mark.parametrize(("flags", "first"), [
    (["--lang", "ko"], "# 예산 보고서: 요청 하나에 3000 ms"), (["--html"], "<!doctype html>"),
    (["--html", "--lang", "ko"], "<!doctype html>"),
])  # fmt: skip
def test_it_speaks_korean_and_writes_html(flags: list[str], first: str, files: list[str], capsys: Capture) -> None:
    code, out, _ = lines(capsys, "report", *files, *flags)
    assert (code, out[0]) == (0, first)
    assert ('<html lang="ko">' in out) is (flags == ["--html", "--lang", "ko"])


def test_workers_are_counted_for_the_rates_that_are_given(files: list[str], capsys: Capture) -> None:
    _, out, _ = lines(capsys, "report", *files, "--rate", "200", "--rate", "4", "--rate", "4")
    assert "| A worker comes back after | ms | Workers at 4/s | Workers at 200/s |" in out
    assert "| 30 s | 30000 | 120 | 6000 |" in out


def test_a_plan_with_faults_gets_no_report(files: list[str], tmp_path: Path, capsys: Capture) -> None:
    plan = written(tmp_path, changed(total_ms=2500, worst_case_ms=1))
    report = tmp_path / "budget_report.md"
    code, out, err = lines(capsys, "report", *files, "-o", str(report))
    assert (code, out, report.exists()) == (1, [], False)
    assert err.splitlines() == [
        f"error: {plan}: worst_case_ms: is 1, but 600 + 1200 + 900 + reserve 150 = 2850 ms: write 2850",
        f"error: {plan}: calls: 600 + 1200 + 900 + reserve 150 = 2850 ms, more than total_ms 2500: cut 350 ms somewhere",
        f"hint: `seawall plan check {plan}` tells the lines as well"]


def test_a_measurement_with_faults_is_refused_with_all_of_them(files: list[str], tmp_path: Path, capsys: Capture) -> None:
    probe = written(tmp_path, {"probes": [{"kind": "refuse", "target": "x", "elapsed_ms": -1}]}, "probe.json")
    code, out, err = lines(capsys, "report", *files)
    assert (code, out) == (2, [])
    assert err.splitlines() == [
        f"error: {probe}: probes[0].kind: is 'refuse': did you mean refused?",
        f"error: {probe}: probes[0].elapsed_ms: is -1, less than nothing: write milliseconds, as in 300.4",
        "hint: `seawall probe -o probe.json` writes one"]


@pytest.mark.parametrize("name", ["probe.json", "budget_plan.json"])
def test_a_report_never_replaces_what_it_is_made_of(
    name: str, files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    before = (tmp_path / name).read_text()
    monkeypatch.chdir(tmp_path)
    code, out, err = lines(capsys, "report", *files, "-o", name)
    assert (code, out, (tmp_path / name).read_text()) == (2, [], before)
    assert err == (
        f"error: -o {name} is {tmp_path}/{name} itself (the report would replace it)\nhint: -o budget_report.md\n")


@pytest.mark.parametrize(("output", "why"), [("none/report.md", "no such file or directory"), (".", "is a directory")])
def test_a_file_that_cannot_be_written_is_said(
    output: str, why: str, files: list[str], tmp_path: Path, capsys: Capture
) -> None:
    code, out, err = lines(capsys, "report", *files, "-o", f"{tmp_path}/{output}")
    assert (code, out) == (2, [])
    assert err == (f"error: cannot write {tmp_path}/{output} ({why})\nhint: -o takes a file in a directory that exists\n")


@pytest.mark.parametrize(("args", "err"), [
    (["--plan", "x"], "error: missing option '--probe'"),
    (["--probe", "x"], "error: missing option '--plan'"),
    (["--probe", "-", "--plan", "-"], "error: --probe and --plan are both - (standard input can be read once)\nhint: "),
    (["--probe", "x", "--plan", "y", "--lang", "fr"], "error: invalid value for '--lang'"),
    (["--probe", "x", "--plan", "y", "--rate", "0"], "error: invalid value for '--rate'"),
    (["--probe", "x", "--plan", "/nowhere"], "error: cannot read /nowhere (no such file or directory)\nhint: "),
])  # fmt: skip
def test_a_usage_fault_says_what_to_write(args: list[str], err: str, capsys: Capture) -> None:
    code, out, told = lines(capsys, "report", *args)
    assert (code, out) == (2, [])
    assert told.startswith(err)


def test_one_of_the_files_may_be_standard_input(
    files: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    expected = lines(capsys, "report", *files)
    for place, text in ((1, PROBE), (3, GOOD)):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(json.dumps(text).encode())))
        args = [*files[:place], "-", *files[place + 1:]]
        assert lines(capsys, "report", *args) == expected


def test_what_seawall_probe_writes_is_taken(tmp_path: Path, capsys: Capture) -> None:
    probe = tmp_path / "probe.json"
    assert main(["probe", "--connect", "0.05", "--read", "0.05", "-o", str(probe)]) == 0
    capsys.readouterr()
    code, out, _ = lines(capsys, "report", "--probe", str(probe), "--plan", written(tmp_path, GOOD))
    assert code == 0
    assert absent(json.loads(probe.read_text()), "\n".join(out)) == []
