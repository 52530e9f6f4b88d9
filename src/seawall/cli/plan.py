"""``seawall plan``: budget plans, checked, drafted and explained."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from . import say
from .documents import checked, print_text, valid_plan, write
from .measuring import as_json
from .shape import Command, Tree, verbose
from .table import table

if TYPE_CHECKING:
    from seawall.budgetplan.check import Checked
    from seawall.budgetplan.values import Fault

__all__ = ["check", "explain", "init", "plan"]

COLUMNS = ("call", "budget_ms", "share", "max_attempts", "attempt_ms", "wait_ceilings_ms", "retry_worst_ms", "begins_ms",
           "ends_ms")  # fmt: skip


@click.group(
    cls=Tree,
    leaves={
        "check": ("seawall.cli.plan:check", "Tell every fault of a plan at once, with its arithmetic."),
        "init": ("seawall.cli.plan:init", "Write a draft of a plan."),
        "explain": ("seawall.cli.plan:explain", "Show what each call may take, with retries, and when."),
    },
    examples=(
        "seawall plan init --total-ms 3000 --call login --call price --call stock -o budget_plan.json",
        "seawall plan check budget_plan.json",
    ),
)
def plan() -> None:
    """Budget plans: how the time of one request is divided among the calls it waits for."""


@click.command(
    cls=Command,
    examples=(
        "seawall plan check budget_plan.json",
        "seawall plan check --strict --format github budget_plan.json",
    ),
)
@click.argument("file")
@click.option("--strict", is_flag=True, help="Take advice for faults.")
@click.option("--format", "form", type=click.Choice(("text", "json", "github")), default="text", show_default=True,
              help="github: lines that annotate a file in a workflow.")  # fmt: skip
@as_json
@verbose
def check(file: str, strict: bool, form: str, as_json: bool) -> int:
    """Check the plan in FILE, JSON, or TOML where its name ends in .toml; - is standard input.

    A plan has total_ms, reserve_ms (at least 100), three or more calls (each with name, budget_ms, max_attempts) and
    worst_case_ms: all budgets and the reserve, at most total_ms. A call may give attempt_ms and base_ms; then
    max_attempts * attempt_ms and the ceilings of the waits (base_ms, doubled after each attempt) must fit into its
    budget_ms. Where it gives neither, attempt_ms is budget_ms / max_attempts, base_ms is 100, and that is advice.

    Exit codes: 0 valid, 1 it has faults, 2 it cannot be read or is no plan at all.
    """
    found = checked(file, strict=strict)
    if as_json or form == "json":
        from seawall.budgetplan.explain import document

        print_text(json.dumps(document(found)))
    else:
        print_text("\n".join(_annotated(found) if form == "github" else _told(found)))
    return say.DONE if found.valid else say.NO


def _told(found: Checked) -> list[str]:
    from seawall.budgetplan.read import label

    file = label(found.source)
    lines = [_line(file, "error", fault) for fault in found.faults]
    lines += [_line(file, "advice", fault) for fault in found.advice]
    return [*lines, f"{file}: {_verdict(found)}"]


def _line(file: str, what: str, fault: Fault) -> str:
    return f"{file}{'' if fault.line is None else f':{fault.line}'}: {what}: {fault}"


def _verdict(found: Checked) -> str:
    from seawall.budgetplan.explain import summed_up

    if found.plan is not None:
        return f"valid: {summed_up(found.plan)}"
    faults = len(found.faults)
    return f"not valid, {faults} fault{'s' if faults > 1 else ''}"


def _annotated(found: Checked) -> list[str]:
    """Workflow commands, as GitHub's runner reads them from a step's output."""
    told = [("error", fault) for fault in found.faults] + [("warning", fault) for fault in found.advice]
    file = _escaped(found.source, ":,")
    lines = [f"::{level} file={file},line={fault.line or 1}::{_escaped(str(fault))}" for level, fault in told]
    return lines or [f"::notice file={file}::{_escaped(_verdict(found))}"]


def _escaped(text: str, more: str = "") -> str:
    for char in f"%\r\n{more}":
        text = text.replace(char, f"%{ord(char):02X}")
    return text


@click.command(
    cls=Command,
    examples=(
        "seawall plan init --total-ms 3000 --call login --call price --call stock -o budget_plan.json",
        "seawall plan init --from probe.json",
    ),
)
@click.option("--total-ms", type=click.IntRange(1, 86_400_000), metavar="MS",
              help="For the whole request.  [3000, or what the calls take at today's limits]")  # fmt: skip
@click.option("--reserve-ms", type=click.IntRange(100, 86_400_000), metavar="MS", default=100, show_default=True,
              help="For our own work.")  # fmt: skip
@click.option("--call", "calls", multiple=True, metavar="NAME", help="A call, three times or more.  [profile price stock]")
@click.option("--from", "probe", metavar="FILE", help="What `seawall probe -o FILE` measured.")
@click.option("-o", "--output", metavar="FILE", help="Write it here; as TOML where the name ends in .toml.")
@click.option("--force", is_flag=True, help="Overwrite a file that exists.")
@verbose
def init(total_ms: int | None, reserve_ms: int, calls: tuple[str, ...], probe: str | None, output: str | None,
         force: bool) -> int:  # fmt: skip
    """Write a draft of a plan: the total less the reserve, divided evenly.

    With --from an attempt may take what the measurement says a silent party takes today, where that fits; without
    --total-ms the total is then what the calls take today, one attempt each.

    Exit codes: 0 done, 1 there is too little to divide, 2 a file that cannot be read or written.
    """
    from seawall.budgetplan import draft

    slow = None if probe is None else _slow(probe)
    names = calls or draft.CALLS
    try:
        made = draft.draft(names, total_ms=total_ms, reserve_ms=reserve_ms, slow_ms=slow)
    except ValueError as error:
        raise say.Stop(f"there is too little to divide: {error}", hint="raise --total-ms", code=say.NO) from None
    _must_be_valid(made)
    attempt = made["calls"][0]["attempt_ms"]
    if slow is not None and attempt < slow:
        say.warning(f"a silent party takes {slow} ms today; the draft allows an attempt {attempt} ms")
    text = draft.as_toml(made) if output is not None and output.endswith(".toml") else draft.as_json(made)
    if output is None or output == "-":
        print_text(text)
        return say.DONE
    write(output, text, fresh=not force)
    say.line(f"wrote {output}")
    return say.DONE


def _slow(name: str) -> int | float | None:
    from seawall.budgetplan.draft import limit_of_today

    from .report import measured

    found = measured(name)
    return limit_of_today([found.took("connect_timeout"), found.took("read_timeout")])


def _must_be_valid(made: dict[str, Any]) -> None:
    """Names come from the command line: the draft goes through the same check as any plan."""
    from seawall.budgetplan.check import check
    from seawall.budgetplan.places import Places
    from seawall.budgetplan.read import Source

    found = check(Source("draft", made, Places()))
    if not found.valid:
        raise say.Stop("\n".join(map(str, found.faults)), hint="seawall plan init --help")


@click.command(
    cls=Command,
    examples=("seawall plan explain budget_plan.json", "seawall plan explain --json budget_plan.json"),
)
@click.argument("file")
@as_json
@verbose
def explain(file: str, as_json: bool) -> int:
    """Show what the plan in FILE means: the worst case of each call with its retries, its share, and a time line.

    The calls are taken one after another. wait_ceilings_ms are the longest waits between attempts; the real ones lie
    anywhere between 0 and that. In the time line # is an attempt, . a wait, - what is left of a call's budget.

    Exit codes: 0 done, 1 the plan has faults, 2 it cannot be read or is no plan at all.
    """
    from seawall.budgetplan.explain import document, rows, summed_up, time_line

    found = valid_plan(file)
    assert found.plan is not None
    if as_json:
        print_text(json.dumps(document(found)))
        return say.DONE
    print_text("\n".join([*table(rows(found.plan), COLUMNS), "", *time_line(found.plan), "", summed_up(found.plan)]))
    for fault in found.advice:
        say.warning(str(fault))
    return say.DONE
