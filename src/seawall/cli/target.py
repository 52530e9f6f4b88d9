"""``seawall target``: a server that misbehaves on command."""

from __future__ import annotations

import click

from . import say
from .listening import serve
from .shape import Command, Tree, verbose

__all__ = ["fake", "target"]


@click.command(
    cls=Command,
    examples=(
        "seawall target --name CORE --port 9201",
        """curl -XPOST localhost:9201/_ctl -d '{"mode":"fail"}'""",
        """curl -XPOST localhost:9201/_ctl -d '{"mode":"slow","delay_ms":3000,"reset":true}'""",
        """curl localhost:9201/tx -d '{"target":"CORE","amount":5}'; curl localhost:9201/_stats""",
    ),
)
@click.option("--name", default="CORE", show_default=True, help="What its answers say in `target`.")
@click.option("--port", type=click.IntRange(0, 65535), default=9201, show_default=True, help="0 chooses a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Whoever reaches it can command it.")
@click.option(
    "--balance", type=click.IntRange(0), default=1000, show_default=True, help="An amount above it is answered B201."
)
@verbose
def target(name: str, port: int, host: str, balance: int) -> int:
    """A target for demos and tests that misbehaves on command.

    POST /tx answers a transaction, any other path answers what was received. POST /_ctl sets how it behaves: mode
    (normal, fail, slow, status, hang, drip, drip_head, cut, reset, garbage), delay_ms, status, reset (counters to
    zero). GET /_stats tells calls (transactions only), in_flight, max_inflight, left (callers that went away first).
    """
    from seawall.faults.target import FakeTarget

    if not name.strip() or not name.isprintable():
        raise say.Stop(f"--name {name!r} is no name", hint="a word such as CORE")
    return serve(FakeTarget(name, host=host, port=port, balance=balance), "target")


@click.group(
    cls=Tree,
    leaves={
        "target": ("seawall.cli.target:target", "A target that misbehaves on command."),
        "partner": ("seawall.cli.partner:partner", "A partner to try time limits and retries on."),
    },
    examples=("seawall fake target --name CORE --port 9201", "seawall fake target --help"),
)
def fake() -> None:
    """The servers that misbehave, by name."""
