"""``seawall retry``: one call, repeated as long as it pays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from . import say
from .measuring import as_json, gather, millis, seconds, the_url, usage, whole
from .shape import Command, verbose
from .table import floor_ms, ms, show, table

if TYPE_CHECKING:
    from seawall.measure.called import Called
    from seawall.measure.repeat import Tried

__all__ = ["retry"]

COLUMNS = ("n", "phase", "status", "elapsed_ms", "wait_ceiling_ms", "waited_ms")
CODES = {"success": say.DONE, "budget": say.SPENT, "pushback": say.REFUSED}


@click.command(
    cls=Command,
    examples=(
        "seawall retry http://127.0.0.1:8014/status/503 --budget-ms 2000 --base-ms 100 --max-attempts 4",
        "seawall retry 'http://127.0.0.1:8014/flaky?fail=2' --budget-ms 2000 --base-ms 50 --max-attempts 5 --seed 1 --json",
    ),
)
@click.argument("url")
@millis("budget-ms", "For all attempts and waits together.", required=True)
@millis("base-ms", "The longest first wait; each further one may be twice as long.", required=True)
@whole("max-attempts", 10_000, "Attempts, the first one included.")
@millis("min-ms", "With less left than this no attempt is made.", default=1)
@millis("max-delay-ms", "The longest wait of all.")
@click.option("--on", default="5xx,429,connect,read,total", metavar="WORDS",
              help="What is worth another attempt: phases, statuses (404), classes of them (5xx).  "
              "[5xx,429,connect,read,total]")  # fmt: skip
@seconds("connect", 0.3, "Limit to connect, cut to what is left.")
@seconds("read", 2.0, "Limit without a byte, cut to what is left.")
@click.option("--seed", type=int, metavar="N", help="Draw the same waits each time.")
@as_json
@verbose
def retry(url: str, budget_ms: int, base_ms: int, max_attempts: int, min_ms: int, max_delay_ms: int | None, on: str,
          connect: float, read: float, seed: int | None, as_json: bool) -> int:  # fmt: skip
    """Call URL until it succeeds, the attempts are used up, or the budget has no room for another.

    After attempt n the wait is drawn between 0 and base-ms * 2^(n-1) (full jitter); a Retry-After of the answer is waited
    for instead. No wait begins that leaves less than --min-ms for the attempt after it. Row n tells the wait after
    attempt n.

    Exit codes, by stopped_reason: 0 success, 69 attempts (or an end that --on does not name), 75 pushback (the target
    asks for more than a minute), 124 budget, 130 interrupted.
    """
    from seawall import Deadline
    from seawall.measure.call import call
    from seawall.measure.repeat import Attempts, Failing, to_retry

    if max_delay_ms is not None and max_delay_ms < base_ms:
        raise say.Stop(f"--max-delay-ms {max_delay_ms} is less than --base-ms {base_ms}",
                       "the first wait would be cut already", "raise the one or lower the other")  # fmt: skip
    where = the_url(url)
    with usage("as in --on 5xx,429,connect"):
        failing = Failing.parse(on)
    again = to_retry(max_attempts, base_ms, max_delay_ms=max_delay_ms, min_ms=min_ms, seed=seed)
    ends = Deadline.after(budget_ms / 1000)

    def once() -> Called:
        return call(where, connect=connect, read=read, deadline=ends, min_ms=min_ms)

    attempts = Attempts(once, again, ends, failing)
    tried = gather(attempts, "attempt", max_attempts)
    spent = ms(ends.clock() - ends.since)
    reason = "interrupted" if tried.interrupted else str(attempts.reason)
    rows = [_row(one) for one in tried]
    document = {"schema": "seawall.retry/1", "url": url, "budget_ms": budget_ms, "attempts": rows,
                "stopped_reason": reason, "spent_ms": spent}  # fmt: skip
    show(tried.marked(document), [*table(rows, COLUMNS), f"{reason}, after {spent:.1f} of {budget_ms} ms"], as_json)
    return say.INTERRUPTED if tried.interrupted else CODES.get(reason, say.UNAVAILABLE)


def _row(tried: Tried) -> dict[str, Any]:
    called = tried.called
    return {
        "n": tried.number, "phase": called.phase, "status": called.status, "elapsed_ms": ms(called.elapsed),
        "wait_ceiling_ms": ms(tried.ceiling), "waited_ms": floor_ms(tried.waited),
        "retry_after_ms": None if tried.asked is None else ms(tried.asked), "error": called.error,
    }  # fmt: skip
