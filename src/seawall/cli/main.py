"""``seawall``: finds the command, and turns whatever goes wrong into two lines and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches

import click

from seawall import __version__
from seawall.errors import ConfigError

from . import say
from .shape import Tree, options_of, verbose

__all__ = ["cli", "main"]

LEAVES = {
    "hub": ("seawall.cli.hub:hub", "Relay calls to targets, each behind its own breaker, limit and budget."),
    "target": ("seawall.cli.target:target", "A target for demos and tests that misbehaves on command."),
    "partner": ("seawall.cli.partner:partner", "A server to try time limits and retries on."),
    "probe": ("seawall.cli.probe:probe", "Measure three shapes of failure: refused, connect timeout, read timeout."),
    "call": ("seawall.cli.call:call", "One call with separate limits; says where it ended."),
    "deadline": ("seawall.cli.deadline:deadline", "Several calls, one after another, within one budget."),
    "retry": ("seawall.cli.retry:retry", "Repeat a call as long as it pays, within a budget."),
    "fanout": ("seawall.cli.fanout:fanout", "Several calls, each told what is left of the budget."),
    "plan": ("seawall.cli.plan:plan", "Check, draft and explain a budget plan."),
    "report": ("seawall.cli.report:report", "Write the budget report, from a measurement and a plan."),
    "demo": ("seawall.cli.demo:demo", "Show in half a minute what all this is for."),
    "fake": ("seawall.cli.target:fake", "The servers that misbehave, by name."),
}


@click.group(
    cls=Tree,
    name="seawall",
    leaves=LEAVES,
    examples=(
        "seawall hub --target CORE=http://127.0.0.1:9201 --target CLAIM=http://127.0.0.1:9202",
        "seawall target --name CORE --port 9201",
    ),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="seawall", message="%(prog)s %(version)s", help="Show the version.")
@verbose
def cli() -> None:
    """Keep one slow or dead dependency from dragging down everything that calls it."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        args: The words after ``seawall``; those of this process by default.

    Returns:
        The exit code, see :mod:`seawall.cli.say`.
    """
    try:
        try:
            return _run(list(sys.argv[1:] if args is None else args))
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except KeyboardInterrupt:
        return say.INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return say.BROKEN_PIPE
    except OSError as fault:  # of the output: _run lets no other out
        _drop_output()
        say.error("cannot write to standard output", (fault.strerror or str(fault)).lower())
        say.hint("make room where it goes, or send it elsewhere")
        return say.USAGE


def _run(args: list[str]) -> int:
    # Not cli.main(): click turns a broken pipe into exit code 1, which here means "checked, and the answer is no".
    try:
        with cli.make_context("seawall", args) as ctx:
            result = cli.invoke(ctx)
        return result if isinstance(result, int) else say.DONE
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.Abort:
        return say.INTERRUPTED
    except say.Stop as stop:
        say.error(stop.what, stop.why)
        if stop.hint:
            say.hint(stop.hint)
        return stop.code
    except click.ClickException as fault:
        return _usage(fault)
    except ConfigError as fault:
        say.error(str(fault))
        return say.USAGE
    except BrokenPipeError:
        raise
    except Exception as fault:
        if isinstance(fault, OSError) and say.is_of_output(fault):
            raise
        return _unexpected(fault)


def _usage(fault: click.ClickException) -> int:
    ctx = fault.ctx if isinstance(fault, click.UsageError) else None
    path = ctx.command_path if ctx is not None else "seawall"
    if isinstance(fault, click.exceptions.NoSuchOption):
        near = get_close_matches(fault.option_name, list(options_of(ctx)) if ctx is not None else [], n=1)
        say.error(f"no such option: {fault.option_name}")
        say.hint(f"did you mean {near[0]}?" if near else f"{path} --help")
    else:
        what = fault.format_message().rstrip(".").replace("\n", " ")
        say.error(what[:1].lower() + what[1:])
        say.hint(f"{path} --help")
    return fault.exit_code


def _unexpected(fault: Exception) -> int:
    if os.environ.get("SEAWALL_DEBUG", "") not in ("", "0"):
        import traceback

        traceback.print_exception(fault)
    text = " ".join(str(fault).split())
    say.error(f"unexpected {type(fault).__name__}" + (f": {text}" if text else ""), "a fault of seawall itself")
    say.hint("SEAWALL_DEBUG=1, or --verbose, shows where it happened")
    return say.FAULT


def _drop_output() -> None:
    """Send what is still buffered to nowhere, or Python complains about it while it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
