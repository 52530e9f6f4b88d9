"""The shape of a command: help that begins with examples, options in sections, commands imported when they are called."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar

import click

from . import say

__all__ = ["Command", "Option", "Tree", "verbose"]

F = TypeVar("F", bound=Callable[..., Any])
Examples = Sequence[str]


class Option(click.Option):
    """An option that says which section of the help it stands in."""

    def __init__(self, *args: Any, section: str = "Options", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section = section


def _write_examples(examples: Examples, formatter: click.HelpFormatter) -> None:
    """Each example as it stands: a line that is wrapped can no longer be copied."""
    if examples:
        formatter.write("Examples:\n" + "".join(f"  {example}\n" for example in examples))
        formatter.write_paragraph()


class Command(click.Command):
    """A command whose help begins with ``examples``."""

    def __init__(self, *args: Any, examples: Examples = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Examples, then what click writes."""
        _write_examples(self.examples, formatter)
        super().format_help(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One list a section, in the order in which the sections first appear."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            # From click 8.5 on an argument has a record too; what it is stands in the usage line and the text.
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                sections.setdefault(getattr(param, "section", "Options"), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


class Tree(click.Group):
    """A group that knows its commands by name and imports one only when it is called.

    Args:
        leaves: Name of a command to ``(module:attribute, one line of help)``.
        examples: What its help begins with.
    """

    def __init__(
        self, *args: Any, leaves: Mapping[str, tuple[str, str]], examples: Examples = (), **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.leaves = leaves
        self.examples = examples

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the table."""
        return list(self.leaves)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        if cmd_name not in self.leaves:
            return None
        module, _, attribute = self.leaves[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is called, or the nearest names."""
        name = args[0]
        if name not in self.leaves and not name.startswith("-"):
            near = get_close_matches(name, self.leaves, n=1)
            known = ", ".join(self.leaves)
            raise say.Stop(
                f"no such command: {name}",
                hint=f"did you mean {ctx.command_path} {near[0]}?" if near else f"there are: {known}",
            )
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """With nothing to parse, say what there is: on standard error, and as a usage fault."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(say.USAGE)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Examples, then what click writes."""
        _write_examples(self.examples, formatter)
        super().format_help(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """From the table: help imports no command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.leaves.items()])


def options_of(ctx: click.Context) -> Iterator[str]:
    """Every spelling of every option of the command that is running."""
    for param in ctx.command.get_params(ctx):
        if isinstance(param, click.Option):
            yield from (*param.opts, *param.secondary_opts)


def verbose(command: F) -> F:
    """Add ``--verbose`` to a command."""

    def wanted(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        if value:
            os.environ["SEAWALL_DEBUG"] = "1"  # the context is gone by the time an error is reported

    return click.option(
        "--verbose",
        is_flag=True,
        expose_value=False,
        callback=wanted,
        help="Show the traceback of an unexpected error (or set SEAWALL_DEBUG=1).",
    )(command)
