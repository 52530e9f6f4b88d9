"""The code that the fused guard generates is on record, as files that people, ruff and mypy read like any other."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from seawall.guard.template import NAMES
from tools import golden
from tools.golden import Shape


def names_in(text: str) -> set[str]:
    """Every name that is read, set, or a parameter."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, (ast.ExceptHandler, ast.FunctionDef, ast.AsyncFunctionDef)) and node.name:
            found.add(node.name)
    return found


def attributes_in(text: str) -> set[str]:
    return {node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)}


def test_the_files_are_what_is_generated() -> None:
    assert golden.differences() == [], f"the fix, if that is what was meant: {golden.COMMAND}"


def test_a_file_that_differs_is_named_and_so_is_one_that_is_missing_or_that_nothing_generates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(golden, "FILES", tmp_path / "golden")
    golden.write()
    assert golden.differences() == []
    (golden.FILES / "star.py").write_text("pass\n")
    (golden.FILES / "colliding.py").unlink()
    (golden.FILES / "old.py").write_text("")
    assert golden.differences() == ["colliding.py", "old.py", "star.py"]
    golden.write()
    assert golden.differences() == []


@pytest.mark.parametrize("shape", golden.shapes(), ids=lambda shape: shape[0])
def test_every_name_in_it_is_known_so_that_a_parameter_of_that_name_finds_it_renamed(shape: Shape) -> None:
    text, suffix = golden.generated(shape)
    ours = names_in(text) - set(shape[3][2]) - {"make"}
    assert {name.removesuffix(suffix) for name in ours} <= set(NAMES)
    assert all(name.endswith(suffix) for name in ours)


def test_every_known_name_is_in_some_shape() -> None:
    used: set[str] = set()
    for shape in golden.shapes():
        text, suffix = golden.generated(shape)
        used |= {name.removesuffix(suffix) for name in names_in(text)}
    assert set(NAMES) <= used


def test_only_names_are_renamed_and_no_attribute() -> None:
    """``free`` is both: a name of the generated code, and what a bulkhead keeps its slots in."""
    shapes = {shape[0]: golden.generated(shape)[0] for shape in golden.shapes()}
    assert attributes_in(shapes["colliding"]) == attributes_in(shapes["function_breaker_bulkhead_retry"])
    assert attributes_in(shapes["colliding_generator"]) == attributes_in(shapes["generator_breaker_bulkhead"])
    assert attributes_in(shapes["colliding_async_generator"]) == attributes_in(shapes["async_generator"])


def test_the_star_form_is_the_function_with_star_arguments() -> None:
    """One template for both: what is proved of one holds for the other."""
    shapes = {shape[0]: golden.generated(shape)[0] for shape in golden.shapes()}
    exact = shapes["function_breaker_bulkhead_retry"]
    starred = exact.replace("a, b, *rest, key=key, **more", "*args, **kwargs").replace(
        "a, /, b, *rest, key, **more", "*args, **kwargs")
    assert starred == shapes["star"]
