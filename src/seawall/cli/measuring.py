"""What the commands that measure share: their options, gathering rows while they come, and the exit code of a call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from seawall.errors import ConfigError
from seawall.hub.values import Kind, Seconds, Whole

from . import say
from .progress import Progress
from .shape import Option

if TYPE_CHECKING:
    from seawall.measure.called import Called
    from seawall.measure.url import Url

__all__ = [
    "EXIT_CODES", "Gathered", "as_json", "code_of", "gather", "given", "millis", "seconds", "the_url", "usage", "whole",
]  # fmt: skip

T = TypeVar("T")
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

EXIT_CODES = "Exit codes: 0 done, 69 not reached or no answer, 124 the time was up, 130 interrupted."
DAY_MS = 86_400_000


def seconds(flag: str, default: float, text: str) -> Decorator:
    """An option in seconds; fractions are allowed, and a unit: ``250ms``."""
    return _valued(flag, Seconds(), "SECONDS", f"{text}  [{default:g}]", default=f"{default:g}")


def millis(flag: str, text: str, *, default: int | None = None, required: bool = False) -> Decorator:
    """An option in whole milliseconds, 0 to a day."""
    shown = text if required else f"{text}  [{'none' if default is None else default}]"
    kind = Whole(0, DAY_MS, "ms")
    return _valued(flag, kind, "MS", shown, default=None if default is None else str(default), required=required)


def whole(flag: str, most: int, text: str) -> Decorator:
    """A number of things, 1 or more; it has to be given."""
    return _valued(flag, Whole(1, most), "N", text, required=True)


def _valued(
    flag: str, kind: Kind, metavar: str, text: str, *, default: str | None = None, required: bool = False
) -> Decorator:
    """An option of a kind that the hub's settings have too: read and refused with the same words."""

    def read(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
        if value is None:
            return None
        try:
            found = kind.read(value)
            fault = kind.fault(found)
        except ValueError as error:
            fault = str(error)
        if fault is not None:
            raise click.BadParameter(fault, ctx, param)
        return found

    # A default that is None is a default too, for click 8.3 and newer: what is required would no longer be missed.
    more: dict[str, Any] = {"required": True} if required else {"default": default}
    return click.option(f"--{flag}", cls=Option, metavar=metavar, help=text, callback=read, **more)


as_json: Decorator = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")


def given(name: str) -> bool:
    """Whether the option was written, and does not stand at its default."""
    return click.get_current_context().get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


@contextmanager
def usage(hint: str) -> Iterator[None]:
    """A setting that cannot work becomes a usage fault, with what to do."""
    try:
        yield
    except ConfigError as fault:
        raise say.Stop(str(fault), hint=hint) from None


def the_url(text: str) -> Url:
    """The URL of an argument, and what it takes to call it made ready: neither counts as time of the call."""
    from seawall.measure.call import prepare
    from seawall.measure.url import Url

    with usage("as in http://127.0.0.1:8014/slow?ms=300"):
        url = Url.parse(text)
    prepare(url)
    return url


class Gathered(list[T]):
    """The rows of a measurement.

    Attributes:
        interrupted: Whether Ctrl-C ended it before its end.
    """

    interrupted = False

    def marked(self, document: dict[str, Any]) -> dict[str, Any]:
        """The document of it; where it was interrupted it says so."""
        return document | {"interrupted": True} if self.interrupted else document


def gather(rows: Iterable[T], what: str, total: int | None = None) -> Gathered[T]:
    """Take the rows as they come, and show on a terminal that it goes on. Ctrl-C ends it; what there is stays.

    Args:
        rows: What measures.
        what: What is being done, for the line on the terminal.
        total: How many rows will come, where that is known.
    """
    gathered: Gathered[T] = Gathered()
    try:
        with Progress(_which(what, 1, total)) as progress:
            for row in rows:
                gathered.append(row)
                progress.what = _which(what, len(gathered) + 1, total)
    except KeyboardInterrupt:
        gathered.interrupted = True
    return gathered


def _which(what: str, number: int, total: int | None) -> str:
    if total == 1:
        return what
    return f"{what}: {number}" + ("" if total is None else f" of {total}")


def code_of(called: Iterable[Called]) -> int:
    """The exit code of calls: the time was up, or one was not reached or did not answer, or all is well."""
    ends = list(called)
    if any(one.limit in ("total", "budget") for one in ends):
        return say.SPENT
    return say.DONE if all(one.phase == "done" for one in ends) else say.UNAVAILABLE
