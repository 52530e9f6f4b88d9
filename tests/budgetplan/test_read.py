"""A file is read as JSON or TOML, or it is said why not; nothing in it can hang or crash the reader."""

from __future__ import annotations

import io
import json
import math
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from seawall.budgetplan.check import check
from seawall.budgetplan.read import LARGEST, Source, UnreadableError, read
from tests.budgetplan.plans import GOOD

pytestmark = pytest.mark.req("BUDGET-8")


def source(where: Path, data: bytes, name: str = "plan.json") -> Source:
    (where / name).write_bytes(data)
    return read(str(where / name), "budget plan", "write one")


def refused(where: Path, data: bytes, name: str = "plan.json") -> tuple[str, str]:
    with pytest.raises(UnreadableError) as fault:
        source(where, data, name)
    return fault.value.what.replace(str(where / name), "FILE"), fault.value.why


def test_json_is_read_with_its_lines(tmp_path: Path) -> None:
    found = source(tmp_path, b'\xef\xbb\xbf{\r\n "total_ms": 5\r\n}')
    assert (found.document, found.places.line("total_ms")) == ({"total_ms": 5}, 2)


def test_toml_is_read_by_its_suffix(tmp_path: Path) -> None:
    text = "total_ms = 3000\r\nreserve_ms = 150\nworst_case_ms = 2850\n" + "".join(
        "[[calls]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in call.items()) for call in GOOD["calls"])
    found = source(tmp_path, text.encode(), "plan.toml")
    assert found.document == GOOD
    assert check(found).valid


def test_toml_has_values_of_its_own_that_are_no_numbers(tmp_path: Path) -> None:
    found = source(tmp_path, b"total_ms = 1979-05-27\nreserve_ms = nan\nworst_case_ms = inf\ncalls = []\n", "plan.toml")
    assert [str(fault).partition(":")[2].partition(":")[0] for fault in check(found).faults] == [
        " is 1979-05-27, no number", " is NaN, no finite number", " is Infinity, no finite number",
        " there are 0, a plan has 3 or more"]


@pytest.mark.parametrize(("data", "name", "what", "why"), [
    (b"", "plan.json", "FILE is no budget plan", "it is empty"),
    (b" \n", "plan.json", "FILE is no budget plan", "it is empty"),
    (b"\xff{}", "plan.json", "FILE is no budget plan", "byte 1 is not UTF-8"),
    (b"[1]", "plan.json", "FILE is no budget plan", "it is not one object"),
    (b"7", "plan.json", "FILE is no budget plan", "it is not one object"),
    (b'{"a": 1,\n}', "plan.json", "FILE is not JSON", "line "),
    (b'{"a": 1', "plan.json", "FILE is not JSON", "line 1, column 8: expecting ',' delimiter"),
    (b"total_ms = 3000", "plan.json", "FILE is not JSON", "line 1, column 1: expecting value"),
    (b"{'a': 1}", "plan.json", "FILE is not JSON", "line 1, column 2: "),
    (b"[" * 200_000, "plan.json", "FILE is no document of ours", "brackets within brackets, a thousand deep"),
    (b'{"total_ms": 3000}', "plan.toml", "FILE is not TOML", ""),
    (b"total_ms = ", "plan.toml", "FILE is not TOML", "invalid value (at end of document)"),
    (b"total_ms = 1\ntotal_ms = 2", "plan.toml", "FILE is not TOML", "cannot overwrite a value"),
    (b"x = " + b"9" * 5000, "plan.toml", "FILE is not TOML", "exceeds the limit"),
])  # fmt: skip
def test_what_is_no_document_is_said_with_its_place(tmp_path: Path, data: bytes, name: str, what: str, why: str) -> None:
    said, reason = refused(tmp_path, data, name)
    assert said == what
    assert reason.startswith(why)


def test_a_file_that_is_too_large_is_not_read_to_its_end(tmp_path: Path) -> None:
    assert refused(tmp_path, b" " * (LARGEST + 1)) == ("FILE is no budget plan", "it is larger than 1 MiB")


@pytest.mark.parametrize(("name", "why"), [
    ("none.json", "no such file or directory"), (".", "is a directory"), ("a\0b", "embedded null byte"),
])  # fmt: skip
def test_a_file_that_cannot_be_opened_is_said(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(UnreadableError) as fault:
        read(f"{tmp_path}/{name}", "budget plan", "write one")
    assert (fault.value.what, fault.value.why) == (f"cannot read {tmp_path}/{name}", why)


def test_a_device_that_never_ends_is_not_read_for_ever() -> None:
    with pytest.raises(UnreadableError, match="larger than 1 MiB"):
        read("/dev/zero", "budget plan", "write one")


def test_numbers_of_any_length_are_read_at_once(tmp_path: Path) -> None:
    data = b'{"a": ' + b"9" * 100_000 + b', "b": -1' + b"0" * 400 + b', "c": 1e999, "d": 123456789012345678}'
    found = source(tmp_path, data)
    assert found.document == {"a": math.inf, "b": -math.inf, "c": math.inf, "d": 123456789012345678}


def test_standard_input_is_read_and_may_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b'{"a": 1}')))
    assert read("-", "budget plan", "write one").document == {"a": 1}
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UnreadableError, match="<stdin> is no budget plan"):
        read("-", "budget plan", "write one")


def test_a_key_that_stands_twice_is_a_fault_with_its_line(tmp_path: Path) -> None:
    data = json.dumps(GOOD)[:-1].encode() + b',\n"total_ms": 3000}'
    (fault,) = check(source(tmp_path, data)).faults
    assert (str(fault), fault.line) == ("total_ms: stands twice in one object: keep one of the two", 2)


def test_values_that_are_nested_deeply_are_named_in_short(tmp_path: Path) -> None:
    data = b'{"total_ms": ' + b"[" * 500 + b"]" * 500 + b', "x": "' + b"y" * 9000 + b'"}'
    told = [str(fault) for fault in check(source(tmp_path, data)).faults]
    assert "total_ms: is a list, no number: write milliseconds, as in 3000" in told
    assert max(map(len, told)) < 300
