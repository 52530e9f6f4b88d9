"""``seawall call``: one call, measured."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import say
from .measuring import as_json, code_of, gather, given, seconds, the_url, usage
from .shape import Command, Option, verbose
from .table import ms, show, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seawall.measure.called import Called

__all__ = ["call"]

COLUMNS = ("phase", "status", "elapsed_ms", "error")


@click.command(
    cls=Command,
    examples=(
        "seawall call --connect 0.3 --read 1 'http://127.0.0.1:8014/slow?ms=300'",
        "seawall call --total 0.5 --json 'http://127.0.0.1:8014/drip?bytes=100&every_ms=50'",
        """seawall call http://127.0.0.1:8080/tx -d '{"target":"CORE","amount":5}' --expect 200""",
    ),
)
@click.argument("url")
@seconds("connect", 0.3, "Limit to connect: name look-up, connection and TLS together.")
@seconds("read", 2.0, "Limit without a byte, until the whole answer is in.")
@seconds("total", 60.0, "Limit for all of it.")
@click.option("-X", "--method", cls=Option, section="Request", metavar="METHOD", help="[GET, or POST with -d]")
@click.option("-H", "--header", "headers", cls=Option, section="Request", multiple=True, metavar="'NAME: VALUE'",
              help="A header, repeatable.")  # fmt: skip
@click.option("-d", "--data", cls=Option, section="Request", metavar="DATA|@FILE|-",
              help="The body: as it stands, from a file, or from standard input.")  # fmt: skip
@click.option("--expect", type=click.IntRange(100, 599), metavar="STATUS", help="Exit with 1 unless this is the status.")
@as_json
@verbose
def call(url: str, connect: float, read: float, total: float, method: str | None, headers: tuple[str, ...],
         data: str | None, expect: int | None, as_json: bool) -> int:  # fmt: skip
    """Call URL once and say where that ended.

    Phase connect: not reached (name look-up, refused, TLS, the limit for them). read: anything after that. total: the
    total was up. done: the whole answer is in, whatever its status. Redirects are not followed, proxies not used.

    Times are in seconds, fractions allowed; 250ms carries its unit. Exit codes: 0 done, 1 done with another status than
    --expect, 69 ended in connect or read, 124 the total was up, 130 interrupted.
    """
    from seawall.measure.call import Interrupted
    from seawall.measure.call import call as measured
    from seawall.measure.request import header

    where = the_url(url)
    with usage("seawall call --help shows how a request is written"):
        fields = [header(text) for text in headers]
    body = None if data is None else _body(data)
    method = method or ("GET" if body is None else "POST")
    if given("read") and read > total:
        say.warning(f"--read {read:g} is longer than --total {total:g}: the total always ends first")

    def once() -> Iterator[Called]:
        try:
            called = measured(
                where, connect=connect, read=read, total=total, method=method, headers=fields, body=body
            )
        except Interrupted as stop:
            yield stop.called
            raise
        yield called

    with usage("seawall call --help shows how a request is written"):
        calls = gather(once(), f"{method} {url}", total=1)
    for called in calls:
        document = {"schema": "seawall.call/1", "url": url, **row(called), "body_bytes": called.body_bytes}
        show(calls.marked(document), table([row(called)], COLUMNS), as_json)
    if calls.interrupted:
        return say.INTERRUPTED
    code = code_of(calls)
    return _checked(calls[0], expect) if code == say.DONE else code


def row(called: Called) -> dict[str, Any]:
    """What is told of a call."""
    return {"phase": called.phase, "status": called.status, "elapsed_ms": ms(called.elapsed), "error": called.error}


def _checked(called: Called, expect: int | None) -> int:
    if expect is None or called.status == expect:
        return say.DONE
    say.error(f"status {called.status}", f"expected {expect}")
    return say.NO


def _body(data: str) -> bytes:
    if data != "-" and not data.startswith("@"):
        return os.fsencode(data)  # the bytes as they were given
    name = "standard input" if data == "-" else data[1:]
    hint = "-d takes the body itself, @FILE, or - for standard input"
    if data == "-" and sys.stdin is None:
        raise say.Stop(f"cannot read {name}", "it is closed", hint)
    try:
        return sys.stdin.buffer.read() if data == "-" else Path(data[1:]).read_bytes()
    except (OSError, ValueError) as error:
        why = (getattr(error, "strerror", None) or str(error)).lower()
        raise say.Stop(f"cannot read {name}", why, hint) from None
