"""Lay what is promised (requirements.toml) beside the tests that prove it, as docs/requirements.md.

    python tools/requirements.py            compare the page with the tests; exit 1 where they differ
    python tools/requirements.py --write    write the page anew

A test proves a row by ``@pytest.mark.req("HUB-3")`` or ``@pytest.mark.fault("F07")`` on the function, its class, one of
its parameters, or as ``pytestmark``. The tests are read, not imported: the page needs nothing installed.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
PAGE = ROOT / "docs" / "requirements.md"
ROWS = Path(__file__).with_suffix(".toml")
MARKERS = ("req", "fault")

HEAD = """\
# What Seawall promises, and which test proves it

Written by `python tools/requirements.py --write` from the markers in the tests; edit those, or
`tools/requirements.toml`, not this page. "Proved": the tests named here fail when the row breaks.
"""


@dataclass(frozen=True)
class Promises:
    """The rows by section, the ids the coming release promises, and what rows that are only partly kept still lack."""

    sections: dict[str, dict[str, str]]
    promised: frozenset[str]
    partly: dict[str, str]

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(row for rows in self.sections.values() for row in rows)


@dataclass(frozen=True, order=True)
class Proof:
    """A marker: the row it names, and the test it stands on (an empty name: the whole file)."""

    row: str
    file: str
    test: str


class MarkerError(Exception):
    """A marker that cannot be read; the message says where and what to write instead."""


def expand(entry: str) -> Iterator[str]:
    """``HUB-1..9`` is HUB-1 to HUB-9, ``F08..11`` is F08 to F11; anything else is itself."""
    if not (match := re.fullmatch(r"([A-Z]+-?)(\d+)\.\.(\d+)", entry)):
        yield entry
        return
    area, first, last = match.groups()
    for number in range(int(first), int(last) + 1):
        yield f"{area}{number:0{len(first)}d}"


def load(path: Path = ROWS) -> Promises:
    """Read the rows."""
    with path.open("rb") as file:
        raw: dict[str, Any] = tomllib.load(file)
    promised = frozenset(row for entry in raw.pop("promised") for row in expand(entry))
    partly = raw.pop("partly")
    sections = {section.pop("title"): section for section in raw.values()}
    return Promises(sections, promised, partly)


def is_marker(node: ast.AST) -> bool:
    """``pytest.mark.req(…)`` or ``mark.req(…)``, whatever ``pytest`` is called."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MARKERS):
        return False
    owner = node.func.value
    return (owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")) == "mark"


def markers(nodes: Iterable[ast.AST]) -> Iterator[ast.Call]:
    """The markers anywhere inside these nodes: a parameter's ``marks=`` is as good as a decorator."""
    for node in nodes:
        yield from (found for found in ast.walk(node) if isinstance(found, ast.Call) and is_marker(found))


def rows_of(marker: ast.Call, file: str) -> Iterator[str]:
    """The ids a marker names; they are written out, so that a search finds them."""
    if not marker.args or marker.keywords:
        raise MarkerError(f'{file}:{marker.lineno}: name at least one id, each as a string: mark.req("HUB-1", "HUB-2")')
    for arg in marker.args:
        if not (isinstance(arg, ast.Constant) and isinstance(arg.value, str)):
            raise MarkerError(f'{file}:{arg.lineno}: an id must be written out as a string, such as "HUB-1"')
        yield arg.value


def marked(body: Iterable[ast.stmt], owner: str = "") -> Iterator[tuple[str, ast.Call]]:
    """Each marker in a module's or class's body with the test it stands on; ``owner`` is that class."""
    inside = f"{owner}::" if owner else ""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            yield from ((f"{inside}{node.name}", found) for found in markers(node.decorator_list))
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from ((f"{inside}{node.name}", found) for found in markers(node.decorator_list))
            yield from marked(node.body, f"{inside}{node.name}")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in (target.id for target in targets if isinstance(target, ast.Name)):
                if name == "pytestmark" and node.value is not None:
                    yield from ((owner, found) for found in markers([node.value]))
                elif name.startswith("Test"):   # TestWindow = mark.req("LIB-2")(WindowMachine.TestCase)
                    yield from ((f"{inside}{name}", found) for found in markers([node]))


def proofs_in(source: str, file: str) -> Iterator[Proof]:
    """The proofs in one test file; a marker that stands on no test is an error, because pytest would ignore it too."""
    tree = ast.parse(source, file)
    placed = list(marked(tree.body))
    if stray := {found.lineno for found in markers([tree])} - {found.lineno for _, found in placed}:
        raise MarkerError(f"{file}:{min(stray)}: this marker stands on no test function, Test class or pytestmark")
    for test, marker in placed:
        yield from (Proof(row, file, test) for row in rows_of(marker, file))


def collect(tests: Path = TESTS) -> list[Proof]:
    """All proofs under a folder of tests, in order."""
    files = sorted(path for pattern in ("test_*.py", "*_test.py") for path in tests.rglob(pattern))
    return sorted({proof for path in files
                   for proof in proofs_in(path.read_text(encoding="utf-8"), path.relative_to(tests.parent).as_posix())})


def status(row: str, promises: Promises, proved: bool) -> str:
    """One cell: proved, partly, or not built yet."""
    if not proved:
        return "promised, no test yet" if row in promises.promised else "not built yet"
    return f"partly: {promises.partly[row]}" if row in promises.partly else "proved"


def tests_cell(proofs: Iterable[Proof]) -> str:
    """The tests of a row, by file: a link, then the names."""
    by_file: dict[str, list[str]] = {}
    for proof in proofs:
        by_file.setdefault(proof.file, []).extend([f"`{proof.test}`"] if proof.test else [])
    return "<br>".join(f"[{file.removeprefix('tests/')}](../{file}) {', '.join(names)}".rstrip()
                       for file, names in by_file.items())


def page(promises: Promises, proofs: Iterable[Proof]) -> str:
    """The whole page as Markdown."""
    by_row: dict[str, list[Proof]] = {}
    for proof in proofs:
        by_row.setdefault(proof.row, []).append(proof)
    lines = [HEAD]
    for title, rows in promises.sections.items():
        lines += [f"## {title}\n", "| ID | Promise | Status | Tests |", "|---|---|---|---|"]
        for row, what in rows.items():
            found = by_row.get(row, [])
            lines.append(f"| {row} | {what} | {status(row, promises, bool(found))} | {tests_cell(found)} |")
        lines.append("")
    return "\n".join(lines)


def main(args: list[str]) -> int:
    """Write or compare; the exit code is 0 where page and tests agree."""
    if args not in ([], ["--write"]):
        print("usage: python tools/requirements.py [--write]", file=sys.stderr)
        return 2
    try:
        wanted = page(load(), collect())
    except MarkerError as error:
        print(error, file=sys.stderr)
        return 1
    if args:
        PAGE.write_text(wanted, encoding="utf-8")
        return 0
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != wanted:
        print("docs/requirements.md differs from the tests. Run: python tools/requirements.py --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
