"""Writes a report as Markdown that GitHub and plain CommonMark both read."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .blocks import Block, Chart, Heading, Items, Paragraph, Span, Table, Text, Title
from .explain import time_line
from .model import Plan

__all__ = ["markdown"]

_ACTIVE = re.compile(r"([\\`*\[\]<>|#]|(?<!\w)_|_(?!\w))")


def markdown(blocks: Sequence[Block], plan: Plan) -> str:
    """The whole report."""
    return "\n\n".join(_block(block, plan) for block in blocks) + "\n"


def _block(block: Block, plan: Plan) -> str:
    match block:
        case Title():
            return f"# {_text(block.text)}"
        case Heading():
            return f"## {block.text}"
        case Paragraph():
            return _text(block.text)
        case Items():
            return "\n".join(f"- {_text(item)}" for item in block.items)
        case Table():
            return _table(block)
        case Chart():
            return _chart(block, plan)


def _table(table: Table) -> str:
    rules = ["---:" if table.numeric(column) else "---" for column in range(len(table.headings))]
    rows = [[_text(cell, in_table=True) for cell in row] for row in table.rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (table.headings, rules, *rows))


def _chart(chart: Chart, plan: Plan) -> str:
    # An indented name never begins a line: one that looks like a heading stays a name.
    bars = "\n".join(f"  {line}" for line in time_line(plan, reserve=chart.words["key_reserve"]))
    return f"{chart.words['div_chart']}\n\n```text\n{bars}\n```"


def _text(spans: Text, *, in_table: bool = False) -> str:
    return "".join(_span(span, in_table) for span in spans).strip()


def _span(span: Span, in_table: bool) -> str:
    match span.kind:
        case "code":
            # A table is cut at its bars before anything else is read, those in code included.
            return _code(span.text.replace("|", r"\|") if in_table else span.text)
        case "strong":
            return f"**{_ACTIVE.sub(_escaped, span.text)}**"
        case _:
            return _ACTIVE.sub(_escaped, span.text)


def _escaped(match: re.Match[str]) -> str:
    return f"\\{match[0]}"


def _code(text: str) -> str:
    """Between more backticks than it holds in a row."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text[:1] == "`" or text[-1:] == "`" or (text[:1] == text[-1:] == " " and text.strip()) else ""
    return f"{fence}{pad}{text}{pad}{fence}"
