"""``seawall deadline``: several calls under one budget."""

from __future__ import annotations

import click

from . import say
from .measuring import EXIT_CODES, as_json, code_of, gather, millis, seconds, the_url
from .shape import Command, Option, verbose
from .table import floor_ms, ms, show, table

__all__ = ["deadline"]

COLUMNS = ("phase", "status", "read_timeout_ms", "elapsed_ms", "url")


@click.command(
    cls=Command,
    examples=(
        "seawall deadline --budget-ms 1000 --url 'http://127.0.0.1:8014/slow?ms=300' --url http://127.0.0.1:8014/status/200",
        "seawall deadline --budget-ms 800 --min-ms 100 --json --url 'http://127.0.0.1:8014/slow?ms=750' "
        "--url http://127.0.0.1:8014/status/200",
    ),
    epilog=EXIT_CODES,
)
@millis("budget-ms", "For all calls together.", required=True)
@click.option("--url", "urls", cls=Option, multiple=True, required=True, metavar="URL",
              help="A call, repeatable; they are made one after another.")  # fmt: skip
@millis("min-ms", "With less left than this a call is not made.", default=0)
@seconds("connect", 0.3, "Limit to connect, cut to what is left.")
@as_json
@verbose
def deadline(budget_ms: int, urls: tuple[str, ...], min_ms: int, connect: float, as_json: bool) -> int:
    """Make several calls, one after another, within one budget.

    What is left at a call's beginning is its read limit (read_timeout_ms). With less than --min-ms left, or nothing left,
    a call is not made: phase no_budget. Whatever the targets do, the whole ends with the budget.

    A call that is silent to the end of the budget ends in phase read (or connect), one that drips in phase total.
    """
    from seawall import Deadline
    from seawall.measure.course import in_turn

    where = [the_url(url) for url in urls]
    if min_ms > budget_ms:
        say.warning(f"--min-ms {min_ms} is more than --budget-ms {budget_ms}: no call is made")
    ends = Deadline.after(budget_ms / 1000)
    calls = gather(in_turn(where, ends, connect=connect, min_ms=min_ms), "call", len(where))
    spent = ms(ends.clock() - ends.since)
    rows = [
        {"url": called.url, "phase": called.phase, "status": called.status, "elapsed_ms": ms(called.elapsed),
         "read_timeout_ms": floor_ms(called.read_limit), "error": called.error} for called in calls
    ]  # fmt: skip
    skipped = sum(called.phase == "no_budget" for called in calls)
    document = {
        "schema": "seawall.deadline/1", "budget_ms": budget_ms, "calls": rows, "skipped": skipped, "spent_ms": spent,
    }  # fmt: skip
    summary = f"spent {spent:.1f} of {budget_ms} ms, {skipped} skipped"
    show(calls.marked(document), [*table(rows, COLUMNS), summary], as_json)
    return say.INTERRUPTED if calls.interrupted else code_of(calls)
