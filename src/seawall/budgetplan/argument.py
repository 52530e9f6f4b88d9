"""The last section of the report: what happens past the budget, and why a longer timeout is no way out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .blocks import Block, Heading, Items, Paragraph, Table, Text, plain
from .model import Number, Plan, total_of
from .probed import Probe
from .words import Words
from .workers import Pool, limits, long_ms, near, workers

__all__ = ["few_and_many", "past"]

_NAMES = {"total": "total_limit"}  # a limit whose word is taken by something else


def few_and_many(plan: Plan, limit_ms: Number, rate: int) -> dict[str, object]:
    """Workers tied up at a limit of the plan and at a generous one, as a report's fields."""
    few, many = workers(rate, limit_ms), workers(rate, long_ms(plan))
    return {"few": near(few), "many": near(many), "more": near(many - few), "long": total_of([long_ms(plan) / 1000])}


def past(probe: Probe, plan: Plan, words: Words, rates: Sequence[int]) -> Iterator[Block]:
    """The section."""
    yield Heading(words["past"])
    values = {"total": plan.total_ms, "reserve": plan.reserve_ms, "end": plan.begins()[-1]}
    keys = ("past_skip", "past_cut", "past_retry", "past_tell", "past_answer")
    yield Items(tuple(words.text(key, **values) for key in keys))
    yield Paragraph(words.text("arg_law"))
    headings = (*words.all("limit", "ms"), *(words["at_rate"].format(rate=rate) for rate in rates))
    yield Table(headings, tuple(_rows(probe, plan, words, rates)))
    yield from _argument(plan, words, rates[-1])


def _rows(probe: Probe, plan: Plan, words: Words, rates: Sequence[int]) -> Iterator[tuple[Text, ...]]:
    for limit in limits(probe, plan):
        counted = (plain(near(workers(rate, limit.ms))) for rate in rates)
        yield plain(words[_NAMES.get(limit.key, limit.key)]), plain(limit.ms), *counted


def _argument(plan: Plan, words: Words, rate: int) -> Iterator[Block]:
    pool = Pool.of(plan, rate)
    values = {"rate": rate, "total": plan.total_ms, **few_and_many(plan, plan.total_ms, rate)}
    yield Paragraph(words.text("arg_cost", **values))
    yield Paragraph(words.text("arg_pool", **values, pool=pool.workers, fill=total_of([pool.workers / rate * 1000]),
                               gap=pool.gap_ms, stranded=near(pool.stranded)))  # fmt: skip
    yield Paragraph(words.text("arg_end", **values))
