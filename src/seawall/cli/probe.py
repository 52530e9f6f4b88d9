"""``seawall probe``: the three shapes of failure, side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import say
from .measuring import as_json, gather, seconds, the_url, usage
from .shape import Command, verbose
from .table import ms, show, table

if TYPE_CHECKING:
    from seawall.measure.probe import Probed

__all__ = ["probe"]

COLUMNS = ("kind", "target", "elapsed_ms", "error")


@click.command(
    cls=Command,
    examples=(
        "seawall probe",
        "seawall probe --connect 0.3 --read 1 --unreachable 192.0.2.1 --partner http://127.0.0.1:8014 -o probe.json",
    ),
)
@seconds("connect", 0.3, "Limit to connect.")
@seconds("read", 1.0, "Limit without a byte.")
@click.option("--unreachable", metavar="ADDRESS", help="HOST or HOST:PORT that never answers.  [a full queue on loopback]")
@click.option("--partner", metavar="URL", help="A `seawall partner`, to sleep for us.  [a silent listener on loopback]")
@click.option("-o", "--output", type=click.Path(dir_okay=False), metavar="FILE", help="Write the JSON document here too.")
@as_json
@verbose
def probe(connect: float, read: float, unreachable: str | None, partner: str | None, output: str | None,
          as_json: bool) -> int:  # fmt: skip
    """Measure the three shapes of failure: refused, connect timeout, read timeout.

    Without flags all of it happens on loopback and needs no network. A refusal comes at once; the other two take as long
    as their limits allow, which is what a limit is for: connect decides how long "unreachable" costs, read how long the
    other side may work.

    Exit codes: 0 done, 1 an address given here did not fail as it should have, 69 the partner was not reached, 130
    interrupted.
    """
    from seawall.measure.probe import KINDS
    from seawall.measure.probe import probe as measured
    from seawall.measure.url import Url

    with usage("seawall probe needs neither --unreachable nor --partner"):
        nowhere = None if unreachable is None else Url.at(unreachable)
    with usage("--partner is where `seawall partner` listens, as in http://127.0.0.1:8014"):
        slow = None if partner is None else the_url(partner)
        rows = measured(connect=connect, read=read, unreachable=nowhere, partner=slow)
    if output is not None:
        _write(output, "", "a")
    try:
        probed = gather(rows, "probe", len(KINDS))
    except OSError as error:
        raise say.Stop("cannot set up the shapes on loopback", str(error), "--unreachable and --partner take others",
                       say.UNAVAILABLE) from error  # fmt: skip
    shown = [_row(one) for one in probed]
    document = probed.marked({"schema": "seawall.probe/1", "connect": connect, "read": read, "probes": shown})
    if output is not None:
        _write(output, json.dumps(document, indent=2) + "\n", "w")
    show(document, table(shown, COLUMNS), as_json)
    return say.INTERRUPTED if probed.interrupted else max((_code_of(one) for one in probed), default=say.DONE)


def _row(probed: Probed) -> dict[str, Any]:
    called = probed.called
    error = called.error if called.error is not None else f"none: it answered, with status {called.status}"
    return {"kind": probed.kind, "target": probed.target, "elapsed_ms": ms(called.elapsed), "error": error}


def _code_of(probed: Probed) -> int:
    if probed.shown:
        return say.DONE
    called = probed.called
    say.warning(f"{probed.target} shows no {probed.kind}: {called.error or f'it answered, with status {called.status}'}")
    return say.UNAVAILABLE if probed.kind == "read_timeout" and called.phase == "connect" else say.NO


def _write(output: str, text: str, mode: str) -> None:
    """Also tried before anything is measured: an appended nothing harms no file."""
    try:
        with Path(output).open(mode, encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise say.Stop(f"cannot write {output}", why, "-o takes a file in a directory that exists") from None
