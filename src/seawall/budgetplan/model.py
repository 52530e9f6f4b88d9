"""A budget plan and its arithmetic: one total, divided among calls that are made one after another, and a reserve.

The worst case of a call with retries is ``max_attempts * attempt_ms`` plus the ceilings of the waits in between,
``base_ms * 2 ** (i - 1)`` after attempt i. That is a closed form, so a billion attempts cost no more than three.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

__all__ = ["BASE_MS", "CAP_MS", "MOST_ATTEMPTS", "MOST_MS", "TOLERANCE", "Call", "Number", "Plan", "total_of"]

Number: TypeAlias = "int | float"

BASE_MS = 100
"""The ceiling of the first wait, where a call does not give its own; as ``seawall plan check`` counts it."""
MOST_MS = 86_400_000
"""A day: the longest time a plan may name."""
MOST_ATTEMPTS = 1_000_000_000
CAP_MS = 10**15
"""What is more is told as this much: no request lasts for 30,000 years."""
TOLERANCE = 0.0005
"""Times that differ by less than a microsecond are the same: fractions have been through decimal notation."""
_DOUBLINGS = 60  # after that many even a first wait of a microsecond has become 10**15 ms


def total_of(times: Iterable[Number]) -> Number:
    """A sum: exact for whole numbers, to the microsecond for fractions, and at most :data:`CAP_MS`."""
    found = list(times)
    exact = sum(found) if all(isinstance(time, int) for time in found) else math.fsum(found)
    return _tidy(min(exact, CAP_MS))


def _tidy(time: Number) -> Number:
    """A fraction to the microsecond, and as a whole number where it is one."""
    time = round(time, 3)
    return int(time) if time == int(time) else time


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a plan. Times are in milliseconds.

    Attributes:
        name: What it is called.
        budget_ms: What it may take, attempts and waits together.
        max_attempts: Attempts, the first one included.
        given_attempt_ms: The limit of one attempt, where the plan gives one.
        given_base_ms: The ceiling of the first wait, where the plan gives one.
    """

    name: str
    budget_ms: Number
    max_attempts: int
    given_attempt_ms: Number | None = None
    given_base_ms: Number | None = None

    @property
    def attempt_ms(self) -> Number:
        """The limit of one attempt; by default an even part of the budget."""
        if self.given_attempt_ms is not None:
            return self.given_attempt_ms
        part = self.budget_ms / self.max_attempts
        return _tidy(part) if part >= 0.01 else float(f"{part:.3g}")  # a part of a billion is small, but it is not 0

    @property
    def base_ms(self) -> Number:
        """The ceiling of the first wait."""
        return BASE_MS if self.given_base_ms is None else self.given_base_ms

    @property
    def given(self) -> bool:
        """Whether the plan says how its retries go: then they must fit, else it is advice."""
        return self.given_attempt_ms is not None or self.given_base_ms is not None

    @property
    def attempts_ms(self) -> Number:
        """All attempts at their limit."""
        if self.given_attempt_ms is None:
            return self.budget_ms  # the parts of a budget are the budget, whatever has been rounded
        return total_of([self.max_attempts * self.given_attempt_ms])

    @property
    def waits_ms(self) -> Number:
        """All waits at their ceiling."""
        doublings = self.max_attempts - 1
        if doublings > _DOUBLINGS:
            return CAP_MS if self.base_ms else 0
        return total_of([self.base_ms * (2**doublings - 1)])

    @property
    def retry_worst_ms(self) -> Number:
        """All attempts and all waits."""
        return total_of([self.attempts_ms, self.waits_ms])

    @property
    def fits(self) -> bool:
        """Whether that is within the call's own budget."""
        return self.retry_worst_ms <= self.budget_ms + TOLERANCE

    @property
    def retries_ms(self) -> Number:
        """What there is for second and further attempts and the waits before them; never more than the budget."""
        return total_of([max(0, min(self.retry_worst_ms, self.budget_ms) - self.attempt_ms)])

    def ceilings(self, most: int = 6) -> list[Number]:
        """The ceilings of the first ``most`` waits."""
        return [total_of([self.base_ms * 2**done]) for done in range(min(self.max_attempts - 1, most))]

    def segments(self) -> Iterator[tuple[str, Number, Number]]:
        """How the budget is spent when all goes wrong: ``attempt``, ``wait`` or ``rest``, from when, for how long."""
        at: Number = 0
        for kind, length in self._worst():
            length = min(length, self.budget_ms - at)
            if length > 0:
                yield kind, _tidy(at), _tidy(length)
            at += length
        if self.budget_ms - at > TOLERANCE:
            yield "rest", _tidy(at), _tidy(self.budget_ms - at)

    def _worst(self) -> Iterator[tuple[str, Number]]:
        if self.base_ms == 0 and self.max_attempts > _DOUBLINGS:
            yield "attempt", self.attempts_ms
            return
        for number in range(min(self.max_attempts, _DOUBLINGS)):
            if number:
                yield "wait", self.base_ms * 2 ** (number - 1)
            yield "attempt", self.attempt_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How the time of one request is divided. Made by :func:`~seawall.budgetplan.check.check` only.

    Attributes:
        total_ms: For the whole request.
        reserve_ms: For what is our own: serialization, templates, the answer itself.
        calls: In the order in which they are made.
        worst_case_ms: The budgets of all calls and the reserve.
        name: Whose plan it is; may be empty.
    """

    total_ms: Number
    reserve_ms: Number
    calls: tuple[Call, ...]
    worst_case_ms: Number
    name: str = ""

    @property
    def calls_ms(self) -> Number:
        """The budgets of all calls."""
        return total_of(call.budget_ms for call in self.calls)

    @property
    def spare_ms(self) -> Number:
        """What is handed out to nobody."""
        return total_of([self.total_ms, -self.worst_case_ms])

    def begins(self) -> list[Number]:
        """When each call begins at the latest; the last entry is when the reserve does."""
        return [total_of([moment]) for moment in accumulate((call.budget_ms for call in self.calls), initial=0)]

    def share(self, time: Number) -> float:
        """A part of the total, 0 to 1."""
        return time / self.total_ms
