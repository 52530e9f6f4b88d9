"""``seawall partner``: a server to try time limits and retries on."""

from __future__ import annotations

import click

from .listening import serve
from .shape import Command, verbose

__all__ = ["partner"]


@click.command(
    cls=Command,
    examples=(
        "seawall partner --port 8014",
        "curl -i 'localhost:8014/slow?ms=1500'; curl -i 'localhost:8014/status/429?retry_after=2'",
        "curl 'localhost:8014/flaky?fail=2&key=a'; curl 'localhost:8014/flaky?rate=0.3'",
        "curl -H 'X-Budget-Ms: 120' 'localhost:8014/budget?ms=500'; curl localhost:8014/_stats",
    ),
)
@click.option("--port", type=click.IntRange(0, 65535), default=8014, show_default=True, help="0 chooses a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Whoever reaches it can keep it busy.")
@click.option("--seed", type=int, help="Of the chance in /flaky?rate=; told when it listens.  [some number]")
@verbose
def partner(port: int, host: str, seed: int | None) -> int:
    """A partner to try time limits and retries on: each path misbehaves in its own way.

    \b
    /slow?ms=N                 200 after N ms
    /status/N                  status N, 100 to 599; retry_after=TEXT adds that header
    /drip?bytes=N&every_ms=M   the head at once, then one byte each M ms
    /flaky?fail=K              503 to the first K requests, then 200; key=TEXT
                               counts by that key, rate=0.3 fails by chance,
                               status=N with another status, retry_after=TEXT
                               adds that header to failures
    /budget?ms=N               works N ms and tells in `received` the X-Budget-Ms
                               it came with; 504 before the end of a budget that
                               the work would use up
    /_stats                    requests by path, total, in_flight, max_inflight,
                               left (callers that went away first), budgets (the
                               last 100)

    Nothing lasts longer than an hour. A parameter that is wrong is answered 400 with what it takes.
    """
    from seawall.faults.partner import Partner

    return serve(Partner(host=host, port=port, seed=seed), "partner")
