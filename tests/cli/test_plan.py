"""``seawall plan`` checks, drafts and explains budget plans; ends with 0, 1 or 2, and never with a traceback."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from seawall.cli.main import main
from tests.budgetplan.plans import GOOD, changed, written
from tests.budgetplan.reports import PROBE
from tests.cli.measured import document, lines

pytestmark = pytest.mark.req("BUDGET-8")

Capture = pytest.CaptureFixture[str]
SUMMED_UP = "valid: 600 + 1200 + 900 + reserve 150 = 2850 ms of total_ms 3000, 150 ms left over"
ADVISED = changed(calls_2_max_attempts=2)
ADVICE = ("calls[2]: with retries 2 x 450 + 100 = 1000 ms, more than budget_ms 900: set attempt_ms to at most 400 or "
          "max_attempts to at most 1")  # fmt: skip


# -- check


def test_a_good_plan_is_summed_up_in_a_line(tmp_path: Path, capsys: Capture) -> None:
    plan = written(tmp_path, GOOD)
    assert lines(capsys, "plan", "check", plan) == (0, [f"{plan}: {SUMMED_UP}"], "")


def test_every_fault_has_its_line_and_the_exit_code_is_1(tmp_path: Path, capsys: Capture) -> None:
    plan = written(tmp_path, changed(total_ms=2500, reserve_ms=50, calls_1_name="login"))
    code, out, err = lines(capsys, "plan", "check", plan)
    assert (code, err) == (1, "")
    assert out == [
        f"{plan}:3: error: reserve_ms: is 50 ms, less than 100: keep 100 ms or more for serialization, templates and the "
        "answer itself",
        f"{plan}:4: error: worst_case_ms: is 2850, but 600 + 1200 + 900 + reserve 50 = 2750 ms: write 2750",
        f"{plan}:5: error: calls: 600 + 1200 + 900 + reserve 50 = 2750 ms, more than total_ms 2500: cut 250 ms somewhere",
        f"{plan}:14: error: calls[1].name: 'login' is taken by calls[0]: give each call a name of its own",
        f"{plan}: not valid, 4 faults",
    ]


def test_advice_is_a_fault_only_where_that_is_wanted(tmp_path: Path, capsys: Capture) -> None:
    plan = written(tmp_path, ADVISED)
    code, out, _ = lines(capsys, "plan", "check", plan)
    assert (code, out[0], len(out)) == (0, f"{plan}:19: advice: {ADVICE}", 2)
    code, out, _ = lines(capsys, "plan", "check", "--strict", plan)
    assert (code, out) == (1, [f"{plan}:19: error: {ADVICE}", f"{plan}: not valid, 1 fault"])


@pytest.mark.parametrize("flags", [[], ["--format", "github"]])
def test_json_is_one_document_whatever_else_is_asked_for(flags: list[str], tmp_path: Path, capsys: Capture) -> None:
    plan = written(tmp_path, ADVISED)
    code, told = document(capsys, "plan", "check", *flags, plan)
    assert (code, told["schema"], told["file"], told["valid"], told["worst_case_ms"]) == (
        0, "seawall.plan/1", plan, True, 2850)
    assert told["advice"][0]["where"] == "calls[2]"
    assert main(["plan", "check", "--format", "json", plan]) == 0
    assert json.loads(capsys.readouterr().out) == told


def test_json_tells_the_faults_too(tmp_path: Path, capsys: Capture) -> None:
    code, told = document(capsys, "plan", "check", written(tmp_path, changed(total_ms=2849)))
    assert (code, told["valid"]) == (1, False)
    assert told["faults"] == [{
        "where": "calls", "line": 5, "what": "600 + 1200 + 900 + reserve 150 = 2850 ms, more than total_ms 2849",
        "fix": "cut 1 ms somewhere"}]  # fmt: skip


def test_github_annotates_the_lines_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, changed(calls_2_max_attempts=2, reserve_ms=100), "a,b:50%.json")
    code, out, _ = lines(capsys, "plan", "check", "--format", "github", "a,b:50%.json")
    assert (code, out) == (1, [
        "::error file=a%2Cb%3A50%25.json,line=4::worst_case_ms: is 2850, but 600 + 1200 + 900 + reserve 100 = 2800 ms: "
        "write 2800",
        f"::warning file=a%2Cb%3A50%25.json,line=19::{ADVICE}"])
    written(tmp_path, GOOD, "good.json")
    _, out, _ = lines(capsys, "plan", "check", "--format", "github", "good.json")
    assert out == [f"::notice file=good.json::{SUMMED_UP}"]


@pytest.mark.parametrize(("text", "err"), [
    (None, "error: cannot read PLAN (no such file or directory)\nhint: `seawall plan init"),
    ("", "error: PLAN is no budget plan (it is empty)\nhint: "),
    ("[]", "error: PLAN is no budget plan (it is not one object)\nhint: it begins with {; "),
    ('{\n "total_ms": 3000\n "reserve_ms": 1}',
     "error: PLAN is not JSON (line 3, column 2: expecting ',' delimiter)\nhint: "),
])  # fmt: skip
def test_what_is_no_plan_at_all_ends_with_2(text: str | None, err: str, tmp_path: Path, capsys: Capture) -> None:
    plan = tmp_path / "plan.json"
    if text is not None:
        plan.write_text(text)
    for command in ("check", "explain"):
        code, out, told = lines(capsys, "plan", command, str(plan))
        assert (code, out) == (2, [])
        assert told.startswith(err.replace("PLAN", str(plan)))


def test_standard_input_is_named_and_takes_json(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def given(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))

    given(json.dumps(GOOD))
    code, out, _ = lines(capsys, "plan", "check", "-")
    assert (code, out[0][:15]) == (0, "<stdin>: valid:")
    given("{")
    code, _, err = lines(capsys, "plan", "check", "-")
    assert (code, err.partition(" (")[0]) == (2, "error: <stdin> is not JSON")


def test_what_cannot_be_printed_is_said(tmp_path: Path) -> None:
    plan = written(tmp_path, changed(calls_0_name="이름"))
    done = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-m", "seawall", "plan", "explain", plan], capture_output=True, timeout=60,
        check=False, env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": ":".join(sys.path)})  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: cannot print this here (standard output takes ascii, which has no '\\uc774')")


# -- init


def test_a_draft_is_valid_strictly_and_goes_to_standard_output(tmp_path: Path, capsys: Capture) -> None:
    for flags in ([], ["--total-ms", "1200"], ["--reserve-ms", "500"], ["--total-ms", "9000", "--call", "a", "--call", "b",
                                                                       "--call", "c", "--call", "d"]):  # fmt: skip
        code, out, err = lines(capsys, "plan", "init", *flags)
        assert (code, err) == (0, "")
        (tmp_path / "plan.json").write_text("\n".join(out))
        assert lines(capsys, "plan", "check", "--strict", str(tmp_path / "plan.json"))[0] == 0
    assert [call["name"] for call in json.loads("\n".join(out))["calls"]] == ["a", "b", "c", "d"]


def test_a_draft_does_not_replace_a_file_unless_forced(tmp_path: Path, capsys: Capture) -> None:
    plan = tmp_path / "plan.json"
    assert lines(capsys, "plan", "init", "-o", str(plan)) == (0, [f"wrote {plan}"], "")
    before = plan.read_text()
    code, out, err = lines(capsys, "plan", "init", "--total-ms", "500", "-o", str(plan))
    assert (code, out, err) == (
        2, [], f"error: {plan} exists already (it may hold work)\nhint: --force overwrites it\n")
    assert plan.read_text() == before
    assert lines(capsys, "plan", "init", "--total-ms", "500", "--force", "-o", str(plan))[0] == 0
    assert json.loads(plan.read_text())["total_ms"] == 500


def test_a_draft_is_written_in_toml_where_the_name_says_so(tmp_path: Path, capsys: Capture) -> None:
    plan = str(tmp_path / "plan.toml")
    assert main(["plan", "init", "-o", plan]) == 0
    assert main(["plan", "check", "--strict", plan]) == 0


def test_a_draft_takes_the_limits_of_today_from_a_measurement(tmp_path: Path, capsys: Capture) -> None:
    probe = written(tmp_path, PROBE, "probe.json")
    code, out, err = lines(capsys, "plan", "init", "--from", probe)
    made = json.loads("\n".join(out))
    assert (code, err, made["total_ms"]) == (0, "", 3 * 1302 + 100)
    assert {call["attempt_ms"] for call in made["calls"]} == {1302}
    code, out, err = lines(capsys, "plan", "init", "--from", probe, "--total-ms", "1000")
    assert {call["attempt_ms"] for call in json.loads("\n".join(out))["calls"]} == {300}
    assert err == "warning: a silent party takes 1301.9 ms today; the draft allows an attempt 300 ms\n"


def test_a_measurement_of_more_than_a_day_is_none(tmp_path: Path, capsys: Capture) -> None:
    rows = [row | {"elapsed_ms": 1e308} for row in PROBE["probes"]]
    probe = written(tmp_path, PROBE | {"probes": rows}, "probe.json")
    plan = written(tmp_path, GOOD)
    for words in (["plan", "init", "--from", probe], ["report", "--probe", probe, "--plan", plan]):
        code, out, err = lines(capsys, *words)
        assert (code, out, err.count("more than a day")) == (2, [], len(rows))


@pytest.mark.parametrize(("args", "code", "err"), [
    (["--total-ms", "101"], 1, "error: there is too little to divide: 101 ms - reserve 100 = 1 ms for 3 calls\nhint: "),
    (["--call", "a"], 2, "error: calls: there is 1, a plan has 3 or more: "),
    (["--call", "a", "--call", "a", "--call", ""], 2,
     "error: calls[1].name: 'a' is taken by calls[0]: give each call a name of its own\n"
     "error: calls[2].name: is '': write a name"),
    (["--total-ms", "0"], 2, "error: invalid value for '--total-ms'"),
    (["--reserve-ms", "99"], 2, "error: invalid value for '--reserve-ms'"),
    (["--from", "/nowhere/probe.json"], 2, "error: cannot read /nowhere/probe.json (no such file or directory)\nhint: "
     "`seawall probe -o probe.json` writes one\n"),
    (["-o", "/nowhere/plan.json"], 2,
     "error: cannot write /nowhere/plan.json (no such file or directory)\n"
     "hint: -o takes a file in a directory that exists\n"),
])  # fmt: skip
def test_a_draft_that_cannot_be_made_is_said(args: list[str], code: int, err: str, capsys: Capture) -> None:
    ended, out, told = lines(capsys, "plan", "init", *args)
    assert (ended, out) == (code, [])
    assert told.startswith(err)


# -- explain


def test_a_plan_is_explained_in_a_table_and_on_a_time_line(tmp_path: Path, capsys: Capture) -> None:
    code, out, err = lines(capsys, "plan", "explain", written(tmp_path, GOOD))
    assert (code, err) == (0, "")
    assert out[0].split() == ["call", "budget_ms", "share", "max_attempts", "attempt_ms", "wait_ceilings_ms",
                              "retry_worst_ms", "begins_ms", "ends_ms"]  # fmt: skip
    assert out[2].split() == ["price", "1200", "0.40", "3", "300", "100", "+", "200", "1200", "600", "1800"]
    assert out[7].startswith("login     |#####..#####  ")
    assert out[-1] == "600 + 1200 + 900 + reserve 150 = 2850 ms of total_ms 3000, 150 ms left over"


def test_advice_is_a_warning_beside_the_table(tmp_path: Path, capsys: Capture) -> None:
    code, _, err = lines(capsys, "plan", "explain", written(tmp_path, ADVISED))
    assert (code, err) == (0, f"warning: {ADVICE}\n")


def test_programs_get_the_document_of_the_check(tmp_path: Path, capsys: Capture) -> None:
    plan = written(tmp_path, GOOD)
    assert document(capsys, "plan", "explain", plan) == document(capsys, "plan", "check", plan)


def test_a_plan_with_faults_is_not_explained(tmp_path: Path, capsys: Capture) -> None:
    plan = written(tmp_path, changed(total_ms=2000, calls_0_max_attempts=0))
    code, out, err = lines(capsys, "plan", "explain", plan)
    assert (code, out) == (1, [])
    assert err.splitlines() == [
        f"error: {plan}: calls: 600 + 1200 + 900 + reserve 150 = 2850 ms, more than total_ms 2000: cut 850 ms somewhere",
        f"error: {plan}: calls[0].max_attempts: is 0: write a whole number from 1, as in 2",
        f"hint: `seawall plan check {plan}` tells the lines as well"]


@pytest.mark.parametrize("command", [["plan"], ["plan", "check"], ["plan", "init"], ["plan", "explain"]])
def test_help_begins_with_two_examples(command: list[str], capsys: Capture) -> None:
    assert main([*command, "-h"]) == 0
    first, *examples = capsys.readouterr().out.splitlines()[:3]
    assert first == "Examples:"
    assert all(example.startswith("  seawall plan ") for example in examples)
