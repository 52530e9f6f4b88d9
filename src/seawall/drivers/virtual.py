"""Plans carried out in virtual time: a heap of moments instead of a clock. A day of retries takes a moment.

The same policies run in it as everywhere: give them :meth:`Virtual.clock`. What an attempt does is told by a function:
it returns how many seconds the attempt takes, and how it ends.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

from ..plan import Attempt, Effect, Ended, Plan
from .callbacks import Steps

if TYPE_CHECKING:
    from ..deadline import Deadline

__all__ = ["Virtual"]

Attempting: TypeAlias = Callable[[int], tuple[float, Ended]]


class Virtual:
    """A time of its own, in seconds from ``start``, and what happens in it. Equal moments keep their order.

    ::

        world = Virtual()
        retry = Retry(clock=world.clock, random=Random(1).random)
        world.start(retrying(retry), lambda number: (0.2, Ended(error=ConnectionError())), print)
        world.run()
    """

    def __init__(self, start: float = 0.0) -> None:
        self.now = start
        self._heap: list[tuple[float, int, Callable[[], object]]] = []
        self._order = count()

    def clock(self) -> float:
        """The time it is, for the policies."""
        return self.now

    def at(self, when: float, call: Callable[[], object]) -> None:
        """Call ``call`` at ``when``, or now if that has passed."""
        heappush(self._heap, (max(when, self.now), next(self._order), call))

    def run(self, until: float = float("inf"), *, most: int = 1_000_000) -> None:
        """Let time pass: up to ``until``, or until nothing is left to happen; never more than ``most`` happenings."""
        while self._heap and self._heap[0][0] <= until and most > 0:
            self.now, _, call = heappop(self._heap)
            most -= 1
            call()

    def start(
        self, plan: Plan, attempt: Attempting, done: Callable[[Ended], object], deadline: Deadline | None = None
    ) -> None:
        """Carry out ``plan`` from now on, and tell ``done`` how it ended.

        Args:
            plan: What to do.
            attempt: For each attempt, by its number: how many seconds it takes and how it ends.
            done: Told what counts in the end.
            deadline: Ends an attempt that would last longer with :class:`~seawall.DeadlineExceededError`.
        """
        _Course(self, Steps(plan), attempt, done, deadline).go_on()


class _Course:
    """One plan on its way."""

    def __init__(
        self, world: Virtual, steps: Steps, attempt: Attempting, done: Callable[[Ended], object], deadline: Deadline | None
    ) -> None:
        self.world, self.steps, self.attempt, self.done, self.deadline = world, steps, attempt, done, deadline

    def go_on(self) -> None:
        effect: Effect | None = self.steps.next
        if effect is None:
            assert self.steps.ended is not None
            self.done(self.steps.ended)
        elif isinstance(effect, Attempt):
            self._attempt(effect.number)
        else:
            self.world.at(self.world.now + effect.seconds, self._slept)

    def _attempt(self, number: int) -> None:
        lasts, ended = self.attempt(number)
        left = None if self.deadline is None else self.deadline.remaining()
        if left is not None and left < lasts and self.deadline is not None:
            lasts, ended = left, Ended(error=self.deadline.exceeded())
        self.world.at(self.world.now + lasts, lambda: self._attempted(ended))

    def _attempted(self, ended: Ended) -> None:
        self.steps.attempted(ended)
        self.go_on()

    def _slept(self) -> None:
        self.steps.slept()
        self.go_on()
