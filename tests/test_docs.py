"""The pages say what the code does: their Python prints what stands beside it, and their tables leave nothing out."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

import seawall
from seawall.cli.hub import FLAGS, hub
from seawall.hub.metrics import FAMILIES
from seawall.hub.server import Hub
from seawall.hub.settings import TARGET_KINDS, read_settings
from seawall.hub.snapshot import snapshot
from seawall.outcome import CODES
from seawall.policies.breaker import CircuitBreaker
from seawall.policies.bulkhead import Bulkhead
from seawall.target import Target

ROOT = Path(__file__).resolve().parents[1]
LIBRARY, HUB, README = ROOT / "docs/library.md", ROOT / "docs/hub.md", ROOT / "README.md"
BUDGET = ROOT / "docs/budget.md"


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(page: Path) -> list[str]:
    """The Python on a page."""
    return re.findall(r"^```python\n(.*?)^```$", text(page), re.MULTILINE | re.DOTALL)


def promised(block: str) -> list[str]:
    """What the block is said to print: the comments behind ``print(...)``, and those that begin with ``prints:``."""
    return re.findall(r"^(?:\s*print\(.*\)\s+|# prints: )(?:# )?(.*)$", block, re.MULTILINE)


def rows(page: Path) -> list[list[str]]:
    """The cells of every table."""
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text(page).splitlines() if line[:1] == "|"]


@pytest.mark.parametrize("block", blocks(LIBRARY) + blocks(BUDGET), ids=lambda block: promised(block)[0])
def test_a_block_of_the_pages_on_the_library_prints_what_stands_beside_it(block: str) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, "library.md", "exec"), {"__name__": "page"})
    assert printed.getvalue().splitlines() == promised(block) != []


class Timeout(Exception):
    """Stands for requests' error of that name."""


Timeout.__name__ = "ConnectTimeout"


@pytest.fixture
def readme() -> dict[str, Any]:
    """What the README's Python defines, with a stand-in for ``requests`` that ``fails`` on demand."""
    block, _, _ = blocks(README)
    names: dict[str, Any] = {"fails": False}

    def post(url: str, **more: object) -> object:
        if names["fails"]:
            raise Timeout
        return SimpleNamespace(status_code=200, json=dict)

    names["requests"] = SimpleNamespace(post=post)
    exec(compile(block, "README.md", "exec"), names)
    return names


def said_in_readme(error: type[Exception], call: Callable[[int], object]) -> tuple[str, str]:
    """What the README says a refusal looks like, and what it looks like."""
    with pytest.raises(error) as refused:
        call(10)
    block, _, _ = blocks(README)
    match = re.search(rf"except seawall\.{error.__name__} .*?\n\s+print\(refusal\)\s+# (.*)", block)
    assert match is not None
    return match[1], str(refused.value)


def test_the_readme_shows_the_message_of_an_open_circuit(readme: dict[str, Any]) -> None:
    readme["fails"] = True
    for _ in range(5):
        with pytest.raises(Timeout):
            readme["transfer"](10)
    shown, real = said_in_readme(seawall.CircuitOpenError, readme["transfer"])
    assert (shown.rpartition(" in ")[0], shown[-2:]) == (real.rpartition(" in ")[0], real[-2:])


def test_the_readme_shows_the_message_of_a_full_bulkhead(readme: dict[str, Any]) -> None:
    with contextlib.ExitStack() as running:
        for _ in range(10):
            running.enter_context(readme["core"])
        shown, real = said_in_readme(seawall.BulkheadFullError, readme["transfer"])
    assert shown == real


def flags() -> list[str]:
    """Every flag that ``seawall hub --help`` lists."""
    # As the group has it: click keeps the help option that was made first, for every later use of the command.
    with click.Context(hub, help_option_names=["-h", "--help"]) as ctx:
        return [name for param in hub.get_params(ctx) for name in param.opts if name.startswith("--")]


def test_each_flag_of_the_hub_has_its_row() -> None:
    table = {row[0].strip("`"): row for row in rows(HUB) if row[0].startswith("`--")}
    assert sorted(set(flags()) - {"--help"}) == sorted(table)
    assert {f"--{flag}": [metavar, default or "none"] for flag, metavar, default, _, _ in FLAGS} == {
        f"--{flag}": table[f"--{flag}"][1:3] for flag, *_ in FLAGS
    }


def test_each_flag_that_a_page_names_exists() -> None:
    named = {name for page in (HUB, README) for name in re.findall(r"--[a-z][a-z-]*[a-z]", text(page))}
    others = {"--target", "--name", "--port"}  # of `seawall target`
    assert named - set(flags()) - others == set()


def test_each_setting_of_a_target_is_named() -> None:
    own = text(HUB).partition("own settings follow its URL")[2].partition("\n\n")[0]
    assert [key for field in TARGET_KINDS if not re.search(rf"`{(key := field.replace('_', '-'))}[=`]", own)] == []


def test_each_outcome_code_has_its_row_with_its_status() -> None:
    table = {row[0].strip("`"): row for row in rows(HUB) if re.fullmatch(r"`[EBC]\d{3}`", row[0]) and len(row) == 5}
    assert set(CODES) <= set(table)
    wrong = [code for code, row in CODES.items() if code != "E500" and table[code][2].split()[0] != str(row.status)]
    assert wrong == []
    assert table["E500"][2:4] == [str(CODES["E500"].status), "as is"]


def test_each_metric_is_named_and_no_other() -> None:
    named = set(re.findall(r"seawall_\w+", text(HUB)))
    assert named == set(FAMILIES)


def test_each_member_of_the_snapshot_is_named(tmp_path: Path) -> None:
    async def look() -> dict[str, Any]:
        settings = read_settings(targets=["CORE=http://127.0.0.1:9"], breaker_log=str(tmp_path / "log"),
                                 access_log=str(tmp_path / "access"))
        return snapshot(Hub(settings, asyncio.get_running_loop()))

    def members(value: object) -> Iterator[str]:
        if isinstance(value, dict):
            for name, inner in value.items():
                yield name
                yield from members(inner)

    found = asyncio.run(look())
    assert [name for name in members(found) if name != "CORE" and f"`{name}`" not in text(HUB)] == []


def test_each_public_name_each_setting_and_each_number_of_the_library_is_named() -> None:
    page = text(LIBRARY) + text(BUDGET)
    wanted = {*seawall.__all__}
    things = (CircuitBreaker, Bulkhead, Target, seawall.Wall, seawall.Wall.target, seawall.Retry, seawall.RetryBudget)
    for thing in (*things, seawall.budget, seawall.BudgetHeaders):
        wanted |= set(inspect.signature(thing).parameters) - {"self"}
    for shown in (seawall.BreakerSnapshot, seawall.BulkheadSnapshot, seawall.RetrySnapshot):
        wanted |= set(shown.__dataclass_fields__)
    wanted |= {*seawall.Mode, *seawall.Outcome.__members__, *seawall.StateChanged._fields, *seawall.ModeChanged._fields}
    wanted |= {*seawall.RetryScheduled._fields, *seawall.RetryEnded._fields}
    assert sorted(name for name in wanted if not re.search(rf"\b{name}\b", page)) == []
