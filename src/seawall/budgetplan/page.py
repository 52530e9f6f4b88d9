"""Writes a report as one HTML file: nothing is loaded, nothing runs, and it follows the reader's light or dark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TypeAlias

from .blocks import Block, Chart, Heading, Items, Paragraph, Span, Table, Text, Title
from .model import Number, Plan, total_of

__all__ = ["page"]

_HEAD = """<!doctype html>
<html lang="{lang}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
"""

_STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --tint: #f3f5f7;
  --attempt: #0b62b8; --wait: #d9822b; --rest: #c3ccd5; --reserve: #5b6b2f; }
@media (prefers-color-scheme: dark) { :root { --page: #14171a; --ink: #e4e8ec; --soft: #9aa5b1; --line: #353c44;
  --tint: #1d2226; --attempt: #5aa7f0; --wait: #f0a957; --rest: #4a535d; --reserve: #a5b86a; } }
body { margin: 0; background: var(--page); color: var(--ink); font: 1rem/1.6 system-ui, sans-serif; word-break: keep-all;
  overflow-wrap: anywhere; }
main { max-width: 52rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.25; }
h2 { font-size: 1.25rem; margin-top: 2.5rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line); }
code { font: .9em ui-monospace, monospace; background: var(--tint); padding: .1em .3em; border-radius: .2em; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; min-width: 60%; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top;
  overflow-wrap: normal; }
th { color: var(--soft); font-weight: 600; }
.number { text-align: right; }
figure { margin: 1.5rem 0; }
figcaption { color: var(--soft); margin-bottom: .5rem; }
.bars { display: grid; grid-template-columns: minmax(4rem, max-content) 1fr; gap: .35rem .8rem; align-items: center; }
.bars svg { width: 100%; height: 1.4rem; display: block; background: var(--tint); forced-color-adjust: none; }
.name { overflow-wrap: anywhere; max-width: 14rem; }
.axis { display: flex; justify-content: space-between; color: var(--soft); font-size: .85rem; }
.key { color: var(--soft); font-size: .85rem; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; margin: .6rem 0 0;
  padding: 0; list-style: none; }
.key svg { width: .9rem; height: .9rem; vertical-align: -.1rem; margin-right: .35rem; forced-color-adjust: none; }
.attempt { fill: var(--attempt); } .wait { fill: var(--wait); }
.rest { fill: var(--rest); } .reserve { fill: var(--reserve); }
.spare { fill: none; stroke: var(--soft); stroke-dasharray: 3 3; vector-effect: non-scaling-stroke; }
@media print { body { font-size: 10pt; } svg { print-color-adjust: exact; } h2 { break-after: avoid; }
  figure, tr { break-inside: avoid; } }
"""


def page(blocks: Sequence[Block], plan: Plan, lang: str) -> str:
    """The whole report."""
    title = next(("".join(span.text for span in block.text) for block in blocks if isinstance(block, Title)), "")
    head = _HEAD.format(lang=lang, title=escape(title), style=_STYLE)
    return head + "\n".join(_block(block, plan) for block in blocks) + "\n</main>\n</body>\n</html>\n"


def _block(block: Block, plan: Plan) -> str:
    match block:
        case Title():
            return f"<h1>{_text(block.text)}</h1>"
        case Heading():
            return f"<h2>{escape(block.text)}</h2>"
        case Paragraph():
            return f"<p>{_text(block.text)}</p>"
        case Items():
            return "\n".join(["<ul>", *(f"<li>{_text(item)}</li>" for item in block.items), "</ul>"])
        case Table():
            return _table(block)
        case Chart():
            return _chart(block, plan)


def _text(spans: Text) -> str:
    return "".join(map(_span, spans))


def _span(span: Span) -> str:
    tag = {"code": "code", "strong": "strong"}.get(span.kind)
    return escape(span.text) if tag is None else f"<{tag}>{escape(span.text)}</{tag}>"


def _table(table: Table) -> str:
    marks = [' class="number"' if table.numeric(column) else "" for column in range(len(table.headings))]
    head = "".join(f'<th scope="col"{mark}>{escape(name)}</th>' for name, mark in zip(table.headings, marks, strict=True))
    rows = ["".join(f"<td{mark}>{_text(cell)}</td>" for cell, mark in zip(row, marks, strict=True)) for row in table.rows]
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    inside = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
    return f'<div class="wide" tabindex="0">{inside}</div>'


def _chart(chart: Chart, plan: Plan) -> str:
    bars = "".join(_bar(name, at, length, parts, plan) for name, at, length, parts in _bars(plan, chart.words))
    axis = "".join(f"<span>{total_of([plan.total_ms * quarter / 4])}</span>" for quarter in range(4))
    return (
        f'<figure>\n<figcaption>{escape(chart.words["chart"])}</figcaption>\n<div class="bars">\n{bars}'
        f'<span></span><span class="axis">{axis}<span>{plan.total_ms} ms</span></span>\n</div>\n'
        f'<ul class="key">\n{"".join(_key(chart, plan))}</ul>\n</figure>'
    )


def _key(chart: Chart, plan: Plan) -> Iterator[str]:
    for kind in ("attempt", "wait", "rest", "reserve", *(["spare"] if plan.spare_ms else [])):
        drawn = f'<svg viewBox="0 0 10 10" aria-hidden="true"><rect class="{kind}" width="10" height="10"/></svg>'
        yield f"<li>{drawn}{escape(chart.words[f'key_{kind}'])}</li>\n"


_Parts: TypeAlias = "list[tuple[str, Number, Number]]"


def _bars(plan: Plan, words: Mapping[str, str]) -> Iterator[tuple[str, Number, Number, _Parts]]:
    """Name, beginning, length, and the parts of each bar."""
    begins = plan.begins()
    for call, at in zip(plan.calls, begins, strict=False):
        yield call.name, at, call.budget_ms, [(kind, at + inside, length) for kind, inside, length in call.segments()]
    for kind, at, length in (("reserve", begins[-1], plan.reserve_ms), ("spare", plan.worst_case_ms, plan.spare_ms)):
        if length:
            yield words[f"key_{kind}"], at, length, [(kind, at, length)]


def _bar(name: str, at: Number, length: Number, parts: _Parts, plan: Plan) -> str:
    # User units are milliseconds; a hairline is left between the parts, so that they are told apart without colour too.
    gap = plan.total_ms / 600
    drawn = "".join(f'<rect class="{kind}" x="{start:.10g}" y="1" width="{max(long - gap, gap):.10g}" height="8"/>'
                    for kind, start, long in parts)  # fmt: skip
    label = f"{escape(name)}: {at} - {total_of([at, length])} ms"
    return (
        f'<span class="name">{escape(name)}</span>'
        f'<svg viewBox="0 0 {plan.total_ms:.10g} 10" preserveAspectRatio="none" role="img" aria-label="{label}">'
        f"<title>{label}</title>{drawn}</svg>\n"
    )
