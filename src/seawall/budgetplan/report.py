"""The budget report: four sections argued from a measurement and a plan, holding every number of both.

This module decides what is said and with which numbers; the words are in ``english.py`` and ``korean.py``, the writing
is done by ``markdown.py`` and ``page.py``. Numbers of the files stand as they are, computed ones are rounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from . import argument
from .blocks import Block, Chart, Heading, Paragraph, Table, Text, Title, code, listed, plain
from .check import added, retry_sum
from .explain import ceilings
from .model import CAP_MS, Call, Number, Plan, total_of
from .probed import Probe
from .words import Words
from .workers import near

__all__ = ["report"]


def report(probe: Probe, plan: Plan, *, lang: str = "en", rates: Sequence[int] = (10, 50)) -> list[Block]:
    """What the report says.

    Args:
        probe: What takes the time now.
        plan: How it is divided.
        lang: ``en`` or ``ko``.
        rates: Requests a second to count workers for, in ascending order; the last is argued with.
    """
    words = Words.of(lang)
    return [
        *_opening(plan, words, rates[-1]), *_now(probe, plan, words), *_divided(probe, plan, words),
        *_retries(plan, words, rates[-1]), *argument.past(probe, plan, words, rates),
    ]  # fmt: skip


def _opening(plan: Plan, words: Words, rate: int) -> Iterator[Block]:
    values = {"name": plan.name, "total": plan.total_ms}
    yield Title(words.text("title_named" if plan.name else "title", **values))
    yield Paragraph(words.text("short", n=len(plan.calls), calls=plan.calls_ms, reserve=plan.reserve_ms,
                               spare=plan.spare_ms, worst=plan.worst_case_ms, total=plan.total_ms, rate=rate,
                               **argument.few_and_many(plan, plan.worst_case_ms, rate)))  # fmt: skip


# -- 1. What takes the time now


def _now(probe: Probe, plan: Plan, words: Words) -> Iterator[Block]:
    yield Heading(words["now"])
    yield Paragraph(words.text("now_measured", limits=_limits(probe, words)))
    rows = tuple((code(row.kind), code(row.target), plain(row.elapsed_ms), code(row.error)) for row in probe.rows)
    yield Table(words.all("kind", "target", "elapsed_ms", "error"), rows)
    yield from _lesson(probe, words)
    yield from _today(probe, plan, words)
    if probe.others:
        found = ", ".join(f"{where} = {number}" for where, number in probe.others)
        yield Paragraph((*words.text("now_others"), *code(found)))


def _limits(probe: Probe, words: Words) -> Text | str:
    given = {"limit_connect": probe.connect, "limit_read": probe.read}
    told = [str(words[key]).format(seconds=seconds) for key, seconds in given.items() if seconds is not None]
    return words.text("now_limits", list=words["and"].join(told)) if told else ""


def _lesson(probe: Probe, words: Words) -> Iterator[Block]:
    refused, connect, read = (probe.took(kind) for kind in ("refused", "connect_timeout", "read_timeout"))
    told = [words.text(key, ms=ms) for key, ms in (("now_refused", refused), ("now_connect", connect), ("now_read", read))
            if ms is not None]  # fmt: skip
    if refused and read:
        told.append(words.text("now_times", times=near(read / refused)))
    yield Paragraph(words.joined(told))
    if connect is not None or read is not None:
        yield Paragraph(words.text("now_ours"))


def _today(probe: Probe, plan: Plan, words: Words) -> Iterator[Block]:
    """What the limits of today come to, for a request that makes the plan's calls."""
    parts = [ms for kind in ("connect_timeout", "read_timeout") if (ms := probe.took(kind)) is not None]
    if not parts:
        return
    each, n, attempts = total_of(parts), len(plan.calls), sum(call.max_attempts for call in plan.calls)
    shown = f"{added(parts)} = {each}" if len(parts) > 1 else each
    everything = total_of([attempts * each])
    yield Paragraph((
        *words.text("now_today", attempt=shown, n=n, each=each, once=total_of([n * each]), attempts=attempts,
                    all=everything, total=plan.total_ms),
        *words.text("now_over" if everything > plan.total_ms else "now_fits"),
    ))  # fmt: skip


# -- 2. How the phases were divided


def _divided(probe: Probe, plan: Plan, words: Words) -> Iterator[Block]:
    yield Heading(words["divided"])
    yield Table(words.all("call", "from", "to", "budget_ms", "share"), tuple(_phases(plan, words)))
    budgets = added(call.budget_ms for call in plan.calls)
    sums = {"sum": budgets, "calls": plan.calls_ms, "reserve": plan.reserve_ms, "worst": plan.worst_case_ms}
    yield Paragraph(words.text("div_sum", **sums, total=plan.total_ms, spare=plan.spare_ms))
    yield Chart(words.starting("chart", "key_", "div_chart", total=plan.total_ms))
    yield Paragraph(words.text("div_order"))
    largest = max(plan.calls, key=lambda call: call.budget_ms)
    share = _percent(largest.budget_ms, plan.total_ms)
    yield Paragraph(words.joined([
        words.text("div_largest", name=largest.name, budget=largest.budget_ms, share=share),
        words.text("div_reserve", reserve=plan.reserve_ms),
    ]))  # fmt: skip
    told = [*_connect(probe, plan, words), *_read(probe, plan, words)]
    if told:
        yield Paragraph(words.joined(told))


def _phases(plan: Plan, words: Words) -> Iterator[tuple[Text, ...]]:
    begins = plan.begins()
    for call, at in zip(plan.calls, begins, strict=False):
        yield _phase(code(call.name), at, call.budget_ms, plan)
    yield _phase(plain(words["reserve"]), begins[-1], plan.reserve_ms, plan)
    if plan.spare_ms:
        yield _phase(plain(words["left_over"]), plan.worst_case_ms, plan.spare_ms, plan)
    yield _phase(plain(words["total"]), 0, plan.total_ms, plan)


def _phase(name: Text, at: Number, ms: Number, plan: Plan) -> tuple[Text, ...]:
    return name, plain(at), plain(total_of([at, ms])), plain(ms), plain(_percent(ms, plan.total_ms))


def _percent(part: Number, whole: Number) -> str:
    return f"{100 * part / whole:.3g} %"


def _connect(probe: Probe, plan: Plan, words: Words) -> Iterator[Text]:
    connect = probe.took("connect_timeout")
    if connect is None:
        return
    shortest = min(plan.calls, key=lambda call: call.attempt_ms)
    rest = total_of([shortest.attempt_ms, -connect])
    yield words.text("div_connect" if rest > 0 else "div_connect_over", attempt=shortest.attempt_ms, name=shortest.name,
                     ms=connect, rest=rest)  # fmt: skip


def _read(probe: Probe, plan: Plan, words: Words) -> Iterator[Text]:
    read = probe.took("read_timeout")
    if read is None:
        return
    short = [call.name for call in plan.calls if call.attempt_ms < read]
    yield words.text("div_read_over" if short else "div_read", ms=read, names=listed(short))


# -- 3. What share retries take


def _retries(plan: Plan, words: Words, rate: int) -> Iterator[Block]:
    yield Heading(words["retries"])
    yield Paragraph(words.text("re_formula"))
    headings = words.all("call", "attempts", "base_ms", "waits", "worst_ms", "budget_ms", "for_retries")
    yield Table(headings, tuple(_row(call) for call in plan.calls))
    halved = [call.name for call in plan.calls if call.given_attempt_ms is None]
    if halved:
        yield Paragraph(words.text("re_default", names=listed(halved)))
    yield from _cost(plan, words, rate)
    for call in plan.calls:
        if not call.fits:
            yield Paragraph(words.text("re_over", name=call.name, sum=retry_sum(call), budget=call.budget_ms))


def _row(call: Call) -> tuple[Text, ...]:
    waits = ceilings(call) + (f" = {_capped(call.waits_ms)}" if call.max_attempts > 2 else "")
    return (
        code(call.name), plain(f"{call.max_attempts} x {call.attempt_ms} = {call.attempts_ms}"), plain(call.base_ms),
        plain(waits), plain(_capped(call.retry_worst_ms)), plain(call.budget_ms),
        plain(f"{call.retries_ms} ms, {_percent(call.retries_ms, call.budget_ms)}"),
    )  # fmt: skip


def _capped(ms: Number) -> str:
    return str(ms) if ms < CAP_MS else f">= {CAP_MS}"


def _cost(plan: Plan, words: Words, rate: int) -> Iterator[Block]:
    """What retries take: of the time, and of the other side's strength."""
    retries, n = total_of(call.retries_ms for call in plan.calls), len(plan.calls)
    attempts, waits = sum(call.max_attempts for call in plan.calls), total_of(call.waits_ms for call in plan.calls)
    if attempts == n:
        yield Paragraph(words.text("re_none", calls=plan.calls_ms))
        return
    values: Mapping[str, object] = {"calls": plan.calls_ms, "retries": retries, "share": _percent(retries, plan.calls_ms)}
    told = [words.text("re_sum", **values)]
    if waits < CAP_MS:
        told.append(words.text("re_waits", waits=waits, mean=total_of([waits / 2])))
    yield Paragraph(words.joined(told))
    yield Paragraph(words.text("re_load", n=n, attempts=attempts, times=near(attempts / n), rate=rate, few=n * rate,
                               many=attempts * rate))  # fmt: skip
