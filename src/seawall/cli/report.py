"""``seawall report``: what was measured and what is planned, argued in four sections."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from . import say
from .documents import print_text, source, valid_plan, write
from .shape import Command, verbose

if TYPE_CHECKING:
    from seawall.budgetplan.probed import Probe

__all__ = ["measured", "report"]

PROBE_HINT = "`seawall probe -o probe.json` writes one"
RATES = (10, 50)


@click.command(
    cls=Command,
    examples=(
        "seawall report --probe probe.json --plan budget_plan.json -o budget_report.md",
        "seawall report --probe probe.json --plan budget_plan.json --html -o budget_report.html",
    ),
)
@click.option("--probe", "probe_file", required=True, metavar="FILE", help="What `seawall probe -o FILE` measured.")
@click.option("--plan", "plan_file", required=True, metavar="FILE", help="A plan that `seawall plan check` accepts.")
@click.option("-o", "--output", metavar="FILE", help="Write it here.  [standard output]")
@click.option("--html", is_flag=True, help="One HTML file that needs nothing else, instead of Markdown.")
@click.option("--lang", type=click.Choice(("en", "ko")), default="en", show_default=True, help="English or Korean.")
@click.option("--rate", "rates", type=click.IntRange(1, 1_000_000), multiple=True, metavar="N",
              help="Requests a second to count workers for, repeatable.  [10 50]")  # fmt: skip
@verbose
def report(probe_file: str, plan_file: str, output: str | None, html: bool, lang: str, rates: tuple[int, ...]) -> int:
    """Write the budget report: what takes the time now, how it was divided, what retries take, what happens past it.

    It holds every number of both files, and counts how many workers a slow party ties up at each limit: the answer to
    "just raise the timeout". - is standard input, for one of the two files.

    Exit codes: 0 done, 1 the plan has faults, 2 a file cannot be read or written, or is no measurement.
    """
    from seawall.budgetplan.markdown import markdown
    from seawall.budgetplan.page import page
    from seawall.budgetplan.report import report as told

    if probe_file == plan_file == "-":
        raise say.Stop("--probe and --plan are both -", "standard input can be read once", "give one of them as a file")
    for name in (probe_file, plan_file):
        if output is not None and _is_same(name, output):
            raise say.Stop(f"-o {output} is {name} itself", "the report would replace it", "-o budget_report.md")
    plan = valid_plan(plan_file).plan
    assert plan is not None
    blocks = told(measured(probe_file), plan, lang=lang, rates=sorted(set(rates or RATES)))
    text = page(blocks, plan, lang) if html else markdown(blocks, plan)
    if output is None or output == "-":
        print_text(text)
        return say.DONE
    write(output, text)
    say.line(f"wrote {output}")
    return say.DONE


def _is_same(name: str, output: str) -> bool:
    try:
        return os.path.samefile(name, output)
    except (OSError, ValueError):
        return False


def measured(name: str) -> Probe:
    """What ``seawall probe`` wrote into a file; one that says something else is a usage fault."""
    from seawall.budgetplan.probed import ProbeError, probe_of
    from seawall.budgetplan.read import label

    try:
        return probe_of(source(name, "measurement", PROBE_HINT))
    except ProbeError as error:
        raise say.Stop("\n".join(f"{label(name)}: {fault}" for fault in error.faults), hint=PROBE_HINT) from None
