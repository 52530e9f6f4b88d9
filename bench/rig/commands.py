"""The hub's command line and those given with ``--cmd NAME=COMMAND``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

from rig import tools
from rig.procs import BenchError

RIVALS = Path(__file__).resolve().parent.parent / "rivals"


def parse_commands(given: list[str]) -> dict[str, str]:
    """``["NAME=COMMAND", ...]`` as a mapping.

    Raises:
        BenchError: One of them has no name or no command.
    """
    commands = {}
    for text in given:
        name, _, command = text.partition("=")
        if not name.replace("-", "").replace("_", "").isalnum() or not command.strip():
            raise BenchError(f"--cmd {text!r}: write NAME=COMMAND, the name of letters, digits, - and _")
        commands[name] = command
    return commands


def fill(command: str, **values: object) -> list[str]:
    """Split a command as a shell would and put the values where ``{name}`` stands; ``{python}`` is this interpreter."""
    values["python"] = sys.executable
    argv = shlex.split(command)
    for name, value in values.items():
        argv = [word.replace("{" + name + "}", str(value)) for word in argv]
    return argv


def choose(wanted: str, given: list[str], known: Iterable[str]) -> list[str]:
    """The names to measure: those wanted, then those given with ``--cmd``.

    HAProxy is left out with a word when it is not installed.

    Raises:
        BenchError: A name nobody knows, or something that must be installed.
    """
    names = list(dict.fromkeys([*filter(None, wanted.split(",")), *parse_commands(given)]))
    if unknown := [n for n in names if n not in known]:
        raise BenchError(f"no such contender: {', '.join(unknown)} (there are {', '.join(known)})")
    replaced = parse_commands(given)
    tools.need("nginx", *(n for n in names if n in tools.PACKAGES and n not in replaced))
    if "haproxy" in names and "haproxy" not in replaced and (line := tools.missing("haproxy")):
        print(f"# left out: {line}", file=sys.stderr)
        names.remove("haproxy")
    return names
