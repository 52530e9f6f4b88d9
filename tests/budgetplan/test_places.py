"""Each value of a JSON text is found with its line, and each key that stands twice."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.budgetplan.places import places_in

TEXT = """{
  "total_ms": 1,
  "calls": [
    {"name": "a:[{,", "budget_ms":
      2},
    [], {}, "x\\"y", -1.5e3, null
  ],
  "a b": {"c": true}
}"""


@pytest.mark.parametrize(("place", "line"), [
    ("", 1), ("total_ms", 2), ("calls", 3), ("calls[0]", 4), ("calls[0].name", 4), ("calls[0].budget_ms", 5),
    ("calls[1]", 6), ("calls[5]", 6), ("'a b'", 8), ("'a b'.c", 8),
    # What is missing stands where it would
    ("reserve_ms", 1), ("calls[0].max_attempts", 4), ("calls[9].name", 3), ("x[1][2].y", 1),
])  # fmt: skip
def test_a_place_has_its_line(place: str, line: int) -> None:
    assert places_in(TEXT).line(place) == line


def test_without_lines_there_is_none() -> None:
    assert places_in("").line("calls[0].name") is None


def test_a_key_that_stands_twice_is_found_in_its_own_object_only() -> None:
    text = '{"a": {"b": 1,\n "c": {"b": 2}},\n "a": [{"b": 1}, {"b": 1,\n "\\u0062": 2}]}'
    assert places_in(text).twice == [("a", 3), ("a[1].b", 4)]


documents = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3), max_leaves=12)


@given(documents, st.sampled_from([None, 1]))
def test_whatever_json_writes_is_walked_to_its_end(document: object, indent: int | None) -> None:
    def values(one: object) -> int:
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        return 1 + sum(map(values, inner))

    text = json.dumps(document, indent=indent)
    found = places_in(text)
    assert found.twice == []
    assert found.lines[""] == 1
    assert len(found.lines) == values(document)
    assert max(found.lines.values()) <= text.count("\n") + 1


def test_nesting_of_any_depth_is_walked_without_recursion() -> None:
    found = places_in('{"a":' * 50_000 + "1" + "}" * 50_000)
    assert len(found.lines) == 9
    assert found.twice == []
    assert places_in('{"a":' * 50 + '{"b": 1,\n"b": 2}' + "}" * 50).twice == [(".".join("a" * 8) + ".b", 2)]
