"""``seawall fanout``: calls that are told what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from . import say
from .measuring import EXIT_CODES, as_json, code_of, gather, millis, seconds, the_url, usage, whole
from .shape import Command, verbose
from .table import ms as in_ms
from .table import show, table

if TYPE_CHECKING:
    from seawall.measure.course import Told

__all__ = ["fanout"]

COLUMNS = ("sent_budget_ms", "received", "phase", "status", "elapsed_ms")


@click.command(
    cls=Command,
    examples=(
        "seawall fanout http://127.0.0.1:8014 --n 3 --budget-ms 500",
        "seawall fanout http://127.0.0.1:8014 --n 5 --budget-ms 1000 --ms 100 --json",
    ),
    epilog=EXIT_CODES,
)
@click.argument("base")
@whole("n", 100_000, "How many calls.")
@millis("budget-ms", "For all calls together.", required=True)
@millis("ms", "How long each is to work: BASE/budget?ms=…", default=200)
@seconds("connect", 0.3, "Limit to connect, cut to what is left.")
@as_json
@verbose
def fanout(base: str, n: int, budget_ms: int, ms: int, connect: float, as_json: bool) -> int:
    """Call BASE/budget N times, one after another, and tell each call what is left.

    Each request carries X-Budget-Ms: the whole milliseconds that are left at that moment. A receiver takes it as its own
    limit, and `seawall partner` echoes it as received. With nothing left a call is not made: phase no_budget.
    """
    from seawall import Deadline
    from seawall.measure.course import fan_out

    with usage("BASE is where `seawall partner` listens, as in http://127.0.0.1:8014"):
        url = the_url(base).below(f"/budget?ms={ms}")
    ends = Deadline.after(budget_ms / 1000)
    calls = gather(fan_out(url, n, ends, connect=connect), "call", n)
    rows = [_row(told) for told in calls]
    document = {"schema": "seawall.fanout/1", "url": url.text, "budget_ms": budget_ms, "calls": rows}
    show(calls.marked(document), table(rows, COLUMNS), as_json)
    return say.INTERRUPTED if calls.interrupted else code_of(told.called for told in calls)


def _row(told: Told) -> dict[str, Any]:
    called = told.called
    return {
        "sent_budget_ms": told.sent, "received": told.received, "elapsed_ms": in_ms(called.elapsed),
        "phase": called.phase, "status": called.status, "error": called.error,
    }  # fmt: skip
