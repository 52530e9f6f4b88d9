"""Files that commands read and write: plans, measurements, reports."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from . import say

if TYPE_CHECKING:
    from seawall.budgetplan.check import Checked
    from seawall.budgetplan.read import Source

__all__ = ["checked", "print_text", "source", "valid_plan", "write"]

PLAN_HINT = "`seawall plan init -o budget_plan.json` writes a plan to begin with"


def source(name: str, what: str, hint: str) -> Source:
    """What stands in a file, ``-`` is standard input; a file that cannot be read is a usage fault."""
    from seawall.budgetplan.read import UnreadableError, read

    try:
        return read(name, what, hint)
    except UnreadableError as fault:
        raise say.Stop(fault.what, fault.why, fault.hint) from None


def checked(name: str, *, strict: bool = False) -> Checked:
    """A plan, with all that is wrong with it."""
    from seawall.budgetplan.check import check

    return check(source(name, "budget plan", PLAN_HINT), strict=strict)


def valid_plan(name: str) -> Checked:
    """A plan with nothing wrong; else the command ends, and says all faults."""
    from seawall.budgetplan.read import label

    found = checked(name)
    if not found.valid:
        faults = "\n".join(f"{label(name)}: {fault}" for fault in found.faults)
        raise say.Stop(faults, hint=f"`seawall plan check {name}` tells the lines as well", code=say.NO)
    return found


def print_text(text: str) -> None:
    """Print a document to standard output; where its letters cannot be printed there, say so."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError as error:
        letter = text[error.start]
        why = f"standard output takes {encoding}, which has no {letter!a}"
        hint = "PYTHONIOENCODING=utf-8, or -o FILE where the command has it: a file is always UTF-8"
        raise say.Stop("cannot print this here", why, hint) from None
    print(text, end="" if text.endswith("\n") else "\n", flush=True)


def write(name: str, text: str, *, fresh: bool = False) -> None:
    """Write a file in UTF-8. With ``fresh`` one that exists is left alone, and that is a usage fault."""
    try:
        with Path(name).open("x" if fresh else "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise say.Stop(f"{name} exists already", "it may hold work", "--force overwrites it") from None
    except (OSError, ValueError) as error:
        why = (getattr(error, "strerror", None) or str(error)).lower()
        raise say.Stop(f"cannot write {name}", why, "-o takes a file in a directory that exists") from None
