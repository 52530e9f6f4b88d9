"""``seawall demo``: the main job, shown for real."""

from __future__ import annotations

import click

from . import say
from .shape import Command, verbose

__all__ = ["demo"]


@click.command(cls=Command, examples=("seawall demo", "seawall demo | tee demo.txt"))
@verbose
def demo() -> int:
    """Show in half a minute that one dead target does not drag the other down.

    Starts two targets and a hub on free ports, drives traffic through it, makes CORE fail, then hang, then well again,
    and reports what the callers of each saw. Exit code 1 if CLAIM's callers noticed anything.
    """
    from seawall.demo.run import run
    from seawall.demo.stage import StageError

    try:
        return run()
    except StageError as error:
        raise say.Stop("the demo could not start", str(error), "try again; SEAWALL_DEBUG=1 says more") from error
