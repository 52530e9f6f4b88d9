"""Attempts of one call: as many as pay, with waits drawn below a ceiling that doubles, and a reason for the end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall import Deadline
from seawall.errors import ConfigError
from seawall.measure.called import Called, Interrupted
from seawall.measure.repeat import ON, Attempts, Failing, Tried, to_retry
from tests.clock import ManualClock

TAKES = 0.01  # s that each attempt takes here


def ended(phase: str = "done", status: int | None = None, **more: Any) -> Called:
    return Called(url="http://core/", phase=phase, status=status, elapsed=TAKES, **more)


OK, DOWN = ended(status=200), ended(status=503)
GONE, SILENT = ended("connect", error="refused"), ended("read", error="silent")


class Play:
    """A target whose answers are given, on a clock that attempts and waits move."""

    def __init__(self, answers: Iterable[Called], budget: float = 1000.0) -> None:
        self.clock = ManualClock(100.0)
        self.deadline = Deadline.after(budget, self.clock)
        self.answers = iter(answers)
        self.last = DOWN
        self.left_before_waits: list[float] = []

    def attempt(self) -> Called:
        self.last = next(self.answers, self.last)
        self.clock.advance(self.last.elapsed)
        return self.last

    def sleep(self, delay: float) -> None:
        self.left_before_waits.append(self.deadline.remaining())
        self.clock.advance(delay)

    def run(self, max_attempts: int = 3, base_ms: float = 100, on: str = ON, **more: Any) -> tuple[list[Tried], str]:
        attempts = Attempts(
            self.attempt, to_retry(max_attempts, base_ms, **more), self.deadline, Failing.parse(on), self.sleep)
        return list(attempts), attempts.reason


pytestmark = pytest.mark.req("BUDGET-6")


@pytest.mark.parametrize(("answers", "number", "reason"), [
    ([OK], 1, "success"),
    ([DOWN, GONE, OK], 3, "success"),
    ([ended(status=404)], 1, "success"),
    ([ended(status=429), ended(status=302)], 2, "success"),
    ([DOWN] * 9, 3, "attempts"),
    ([SILENT, GONE, DOWN, OK], 3, "attempts"),
])
def test_it_goes_on_until_it_succeeds_or_the_attempts_are_used_up(answers: list[Called], number: int, reason: str) -> None:
    rows, why = Play(answers).run()
    assert ([row.number for row in rows], why) == (list(range(1, number + 1)), reason)
    assert [row.called for row in rows] == answers[:number]
    assert rows[-1].waited == 0.0


def test_the_ceiling_doubles_from_the_base_on_without_a_cap() -> None:
    rows, _ = Play([DOWN], budget=1e12).run(20, base_ms=100)
    assert [row.ceiling for row in rows] == [pytest.approx(0.1 * 2 ** (row.number - 1)) for row in rows]


def test_a_cap_holds_where_one_is_given() -> None:
    rows, _ = Play([DOWN]).run(6, base_ms=100, max_delay_ms=350)
    assert [row.ceiling for row in rows] == pytest.approx([0.1, 0.2, 0.35, 0.35, 0.35, 0.35])


def test_waits_are_spread_over_all_of_what_is_below_the_ceiling() -> None:
    shares = [row.waited / row.ceiling for seed in range(200) for row in Play([DOWN]).run(4, seed=seed)[0][:-1]]
    assert all(0.0 <= share < 1.0 for share in shares)
    for tenth in range(10):  # 600 waits: some 60 in each tenth
        assert 30 <= sum(tenth <= share * 10 < tenth + 1 for share in shares) <= 95


def test_a_seed_draws_the_same_waits_again() -> None:
    first, again, other = (Play([DOWN]).run(5, seed=seed)[0] for seed in (7, 7, 8))
    assert first == again != other


@given(st.integers(0, 3000), st.integers(1, 500), st.integers(0, 400), st.integers(0, 99), st.integers(1, 12))
def test_a_wait_begins_only_if_it_and_one_more_call_fit(
    budget_ms: int, base_ms: int, min_ms: int, seed: int, attempts: int
) -> None:
    play = Play([DOWN], budget=budget_ms / 1000)
    rows, reason = play.run(attempts, base_ms, min_ms=min_ms, seed=seed)
    for row, left in zip(rows, play.left_before_waits, strict=False):
        assert row.waited < left
        assert row.waited + min_ms / 1000 <= left + 1e-9
    assert (reason, len(rows)) == ("attempts", attempts) if reason == "attempts" else reason == "budget"
    assert play.clock() - 100.0 <= budget_ms / 1000 + TAKES + 1e-9


def test_where_the_wait_does_not_fit_it_ends_at_once_with_reason_budget() -> None:
    play = Play([DOWN], budget=0.5)
    rows, reason = play.run(50, base_ms=200, seed=1)
    assert reason == "budget"
    assert rows[-1].waited == 0.0
    assert play.deadline.remaining() > 0.0


@pytest.mark.parametrize("min_ms", [0, 10])
def test_without_a_budget_no_attempt_is_made(min_ms: int) -> None:
    rows, reason = Play([ended("no_budget", limit="budget")], budget=0.0).run(min_ms=min_ms)
    assert (len(rows), rows[0].called.phase, reason) == (1, "no_budget", "budget")


@pytest.mark.parametrize("phase", ["connect", "read", "total"])
def test_an_attempt_that_the_budget_cut_is_the_last(phase: str) -> None:
    rows, reason = Play([DOWN, ended(phase, limit="budget", error="cut")], budget=5).run(on="5xx")
    assert (len(rows), reason) == (2, "budget")


def test_a_first_attempt_that_the_budget_cut_is_the_budgets_doing() -> None:
    rows, reason = Play([ended("read", limit="budget", error="cut")], budget=5).run()
    assert (len(rows), reason) == (1, "budget")


def headed(status: int, asked: str, **more: str) -> Called:
    return ended(status=status, headers={"retry-after": asked} | more)


@pytest.mark.parametrize(("asked", "waited"), [
    ("3", 3.0), ("0", 0.0), ("Wed, 21 Oct 2015 07:28:07 GMT", 7.0), ("Wed, 21 Oct 2015 07:00:00 GMT", 0.0),
])
def test_a_target_that_says_when_to_come_back_is_taken_at_its_word(asked: str, waited: float) -> None:
    rows, reason = Play([headed(429, asked, date="Wed, 21 Oct 2015 07:28:00 GMT"), OK]).run()
    assert (rows[0].waited, rows[0].asked, reason) == (waited, waited, "success")


@pytest.mark.parametrize("asked", ["soon", "-5", "", "1e400"])
def test_a_hint_that_says_nothing_is_none(asked: str) -> None:
    rows, reason = Play([headed(503, asked), OK]).run()
    assert (rows[0].asked, reason) == (None, "success")
    assert rows[0].waited <= rows[0].ceiling


@pytest.mark.fault("F30")
@pytest.mark.parametrize(("asked", "reason"), [("3600", "pushback"), ("30", "budget")])
def test_a_hint_that_cannot_be_kept_ends_it_at_once(asked: str, reason: str) -> None:
    play = Play([headed(429, asked)], budget=5.0)
    rows, why = play.run()
    assert (len(rows), rows[0].waited, rows[0].asked, why) == (1, 0.0, float(asked), reason)


@pytest.mark.parametrize(("on", "answer", "retried"), [
    ("404", ended(status=404), True),
    ("4xx", ended(status=418), True),
    ("404", ended(status=500), False),
    ("connect", GONE, True),
    ("connect", SILENT, False),
    ("read , TOTAL", ended("total", error="late"), True),
    ("5xx", ended(status=429), False),
])
def test_what_is_worth_another_attempt_can_be_said(on: str, answer: Called, retried: bool) -> None:
    rows, reason = Play([answer, OK]).run(on=on)
    assert len(rows) == 1 + retried
    assert reason == ("success" if retried or answer.phase == "done" else "other")


@pytest.mark.parametrize("text", ["", "5xx,", "6xx", "99", "conect", "5xx 429"])
def test_a_word_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is nothing to retry on"):
        Failing.parse(text)


def until_interrupted(attempts: Attempts) -> list[Tried]:
    rows: list[Tried] = []
    with pytest.raises(KeyboardInterrupt):
        rows.extend(attempts)  # what has come stays
    return rows


def test_an_interrupt_leaves_what_there_is_of_the_attempt() -> None:
    play = Play([DOWN, GONE])

    def attempt() -> Called:
        called = play.attempt()
        if called is GONE:
            raise Interrupted(called)
        return called

    rows = until_interrupted(Attempts(attempt, to_retry(5, 100), play.deadline, Failing.parse(ON), play.sleep))
    assert [row.called for row in rows] == [DOWN, GONE]


def test_an_interrupt_in_a_wait_leaves_the_attempt_before_it() -> None:
    play = Play([DOWN])

    def sleep(delay: float) -> None:
        raise KeyboardInterrupt

    rows = until_interrupted(Attempts(play.attempt, to_retry(5, 100_000), play.deadline, Failing.parse(ON), sleep))
    assert [row.called for row in rows] == [DOWN]
    assert rows[0].waited < 10
