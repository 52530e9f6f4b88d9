"""Reads which rooms of the house a module imports, from its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SRC = Path(__file__).resolve().parent.parent / "src"

# The house from the ground up: a room may import itself and what stands before it. `__init__` is the package itself,
# the public names: it reaches no further than the wall, and only what stands after it may write `from seawall import`.
ORDER = (
    "amounts", "errors", "outcome", "problem", "events", "counters", "plan", "drivers", "deadline", "headers", "guard",
    "policies", "target", "wall", "__init__", "adapters", "llm", "budgetplan", "faults", "measure", "hub", "demo", "cli",
    "__main__",
)


def modules() -> Iterator[tuple[str, Path]]:
    """Each module of the package by its dotted name."""
    for path in sorted((SRC / "seawall").rglob("*.py")):
        parts = path.relative_to(SRC).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def room(module: str) -> str:
    """The room a dotted name lies in: its second part."""
    return module.split(".")[1] if "." in module else "__init__"


def _is_type_checking(node: ast.AST) -> bool:
    """``if TYPE_CHECKING:`` never runs: a type may be named against the order."""
    if not isinstance(node, ast.If):
        return False
    test = node.test
    return (test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")) == "TYPE_CHECKING"


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes that can run, those inside functions included."""
    yield node
    skipped = node.body if isinstance(node, ast.If) and _is_type_checking(node) else []
    for child in ast.iter_child_nodes(node):
        if child not in skipped:
            yield from _running(child)


def _from(node: ast.ImportFrom, module: str, is_package: bool) -> Iterator[str]:
    """What ``from BASE import NAMES`` reaches; taken from the package itself, a name may be a room."""
    base = node.module or ""
    if node.level:
        parents = module.split(".") if is_package else module.split(".")[:-1]
        parents = parents[:len(parents) - node.level + 1]
        base = ".".join([*parents, base] if base else parents)
    if base != "seawall":
        yield base
        return
    for alias in node.names:
        yield f"seawall.{alias.name}" if alias.name in ORDER else "seawall"


def imported(source: str, module: str, is_package: bool = False) -> Iterator[tuple[int, str]]:
    """Each import of the package's own modules that can run, with its line; relative names are resolved."""
    for node in _running(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = list(_from(node, module, is_package))
        else:
            continue
        yield from ((node.lineno, name) for name in names if name.split(".")[0] == "seawall")


def against_the_order(source: str, module: str, is_package: bool = False) -> list[str]:
    """Each import that points the wrong way, as a sentence."""
    here = ORDER.index(room(module))
    return [f"{module} line {line} imports {name}, which stands after it in the order"
            for line, name in imported(source, module, is_package)
            if room(name) not in ORDER or ORDER.index(room(name)) > here]
