"""docs/requirements.md says what the tests prove: it is up to date, its ids exist, and what is promised has a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import requirements
from tools.requirements import MarkerError, Proof, proofs_in


def proofs(source: str) -> list[tuple[str, str]]:
    return [(proof.row, proof.test) for proof in proofs_in(source, "tests/test_x.py")]


def test_the_page_is_what_the_markers_say() -> None:
    """The fix is: python tools/requirements.py --write"""
    wanted = requirements.page(requirements.load(), requirements.collect())
    assert requirements.PAGE.read_text(encoding="utf-8") == wanted


def test_every_marker_names_a_row_that_exists() -> None:
    known = requirements.load().ids
    assert [proof for proof in requirements.collect() if proof.row not in known] == []


def test_every_promised_row_has_a_test() -> None:
    proved = {proof.row for proof in requirements.collect()}
    assert sorted(requirements.load().promised - proved) == []


def test_what_is_promised_and_what_is_partly_kept_are_rows() -> None:
    promises = requirements.load()
    assert promises.promised <= promises.ids
    assert promises.partly.keys() <= promises.ids


def test_ids_are_complete_and_without_gaps() -> None:
    counts = {"HUB-{}": 9, "TRACE-{}": 4, "LIB-{}": 12, "BUDGET-{}": 9, "CHOOSE-{}": 2, "F{:02d}": 58}
    expected = {form.format(number) for form, last in counts.items() for number in range(1, last + 1)}
    assert requirements.load().ids == expected


@pytest.mark.parametrize(("entry", "rows"), [
    ("LIB-4", ["LIB-4"]),
    ("HUB-8..10", ["HUB-8", "HUB-9", "HUB-10"]),
    ("F08..11", ["F08", "F09", "F10", "F11"]),
])
def test_a_range_counts_both_ends(entry: str, rows: list[str]) -> None:
    assert list(requirements.expand(entry)) == rows


@pytest.mark.parametrize(("source", "found"), [
    ('@pytest.mark.req("A", "B")\ndef test_x(): ...', [("A", "test_x"), ("B", "test_x")]),
    ('@mark.fault("A")\nasync def test_x(): ...', [("A", "test_x")]),
    ('@pytest.mark.fault("A")\nclass TestX:\n @pytest.mark.req("B")\n def test_y(self): ...',
     [("A", "TestX"), ("B", "TestX::test_y")]),
    ('class TestX:\n pytestmark = [pytest.mark.req("A")]', [("A", "TestX")]),
    ('pytestmark = [pytest.mark.req("A"), pytest.mark.fault("B")]', [("A", ""), ("B", "")]),
    ('@pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.req("A"))])\ndef test_x(n): ...',
     [("A", "test_x")]),
    ('TestX = pytest.mark.req("A")(Machine.TestCase)', [("A", "TestX")]),
    ('@pytest.mark.slow("A")\ndef test_x(): ...', []),
])
def test_a_marker_is_found_wherever_pytest_would(source: str, found: list[tuple[str, str]]) -> None:
    assert proofs(source) == found


@pytest.mark.parametrize(("source", "complaint"), [
    ('@pytest.mark.req(ROW)\ndef test_x(): ...', "must be written out"),
    ('@pytest.mark.req()\ndef test_x(): ...', "at least one id"),
    ('@pytest.mark.req("A")\ndef helper(): ...', "stands on no test"),
])
def test_a_marker_that_proves_nothing_is_refused(source: str, complaint: str) -> None:
    with pytest.raises(MarkerError, match=complaint):
        proofs(source)


def test_the_page_tells_proved_partly_promised_and_not_built_apart() -> None:
    rows = {"A-1": "first", "A-2": "second", "A-3": "third", "A-4": "fourth"}
    promises = requirements.Promises({"T": rows}, frozenset({"A-3"}), {"A-2": "no tea"})
    text = requirements.page(promises, [Proof("A-1", "tests/test_x.py", "test_y"), Proof("A-1", "tests/test_x.py", ""),
                                        Proof("A-2", "tests/a/test_z.py", "test_q")])
    assert "| A-1 | first | proved | [test_x.py](../tests/test_x.py) `test_y` |" in text
    assert "| A-2 | second | partly: no tea | [a/test_z.py](../tests/a/test_z.py) `test_q` |" in text
    assert "| A-3 | third | promised, no test yet |  |" in text
    assert "| A-4 | fourth | not built yet |  |" in text


def test_the_command_writes_and_compares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                         capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(requirements, "PAGE", tmp_path / "requirements.md")
    assert requirements.main([]) == 1
    assert "--write" in capsys.readouterr().err
    assert requirements.main(["--write"]) == 0
    assert requirements.main([]) == 0
    assert requirements.main(["--help"]) == 2
