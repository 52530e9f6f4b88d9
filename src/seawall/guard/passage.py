"""One call's way in and out again: what it takes of the policies, and gives back.

A slot is given back in the guard's own frame, by two steps without a call: forget it, add it to the list. So a signal
cannot be handled between them, and the recursion limit cannot be hit. A method that did it could be interrupted at its
first line, and the slot would be gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..deadline import ambient, used
from ..drivers import aio, threads
from ..errors import BulkheadFullError, NoBudgetError
from ..outcome import SUCCESS

if TYPE_CHECKING:
    from ..deadline import Deadline
    from ..policies.breaker import CircuitBreaker
    from ..policies.bulkhead import Bulkhead
    from ..policies.states import Token

__all__ = ["Passage", "no_budget", "spent"]


class Passage:
    """What one call has taken on its way in, and gives back once: a slot (``held``) and a token.

    The order is fixed: refuse if open, bulkhead, breaker, call.

    With a bulkhead the breaker is asked twice. Before the bulkhead, so that an open circuit refuses at once; and after
    it, since it may have opened while the call stood in line. Only the second asking takes anything: nobody in line
    holds a trial.
    """

    __slots__ = ("breaker", "bulkhead", "deadline", "held", "number", "stack", "token")

    def __init__(self, stack: Any, number: int = 1) -> None:
        self.stack, self.number = stack, number
        self.breaker: CircuitBreaker | None = stack.breaker
        self.bulkhead: Bulkhead | None = stack.bulkhead
        self.deadline: Deadline | None = ambient() if used else None
        self.token: Token | None = None
        self.held: list[bool | None] | None = None

    def enter(self) -> None:
        """Take slot and token, waiting in line for the slot if the bulkhead allows."""
        left = None if self.deadline is None else self._left()
        if self.bulkhead is not None:
            if self.breaker is not None:
                self.breaker.check(left)
            ticket = self.bulkhead.take(self, left)
            if ticket is not None:
                try:
                    threads.wait_in_line(self.bulkhead, ticket, self.bulkhead.patience(left))
                except BulkheadFullError as refusal:
                    self._blame(refusal)
                    raise
                left = None if self.deadline is None else self._left()
        self._start(left)

    async def aenter(self) -> None:
        """:meth:`enter` for a task."""
        left = None if self.deadline is None else self._left()
        if self.bulkhead is not None:
            if self.breaker is not None:
                self.breaker.check(left)
            ticket = self.bulkhead.take(self, left)
            if ticket is not None:
                try:
                    await aio.wait_in_line(self.bulkhead, ticket, self.bulkhead.patience(left))
                except BulkheadFullError as refusal:
                    self._blame(refusal)
                    raise
                left = None if self.deadline is None else self._left()
        self._start(left)

    def _start(self, left: float | None) -> None:
        if self.breaker is not None:
            self.token = self.breaker.admit(left) if self.number == 1 else self._admitted_again(self.breaker, left)
        if self.bulkhead is not None:
            next(self.bulkhead.started_ticks)

    def _admitted_again(self, breaker: CircuitBreaker, left: float | None) -> Token:
        """The breaker ticks every attempt, and calls are counted by it: this one is none."""
        first = self.stack.retry.first
        first.again()
        try:
            return breaker.admit(left)
        except BaseException:
            first.not_made()
            raise

    def _left(self) -> float:
        """Seconds left of the caller's budget; too few, and the call is not made."""
        assert self.deadline is not None
        left, retry = self.deadline.remaining(), self.stack.retry
        least = 0.0 if retry is None else retry.least
        if left <= 0.0 or left < least:
            raise no_budget(self.stack.name, left, least)
        return left

    def _blame(self, refusal: BulkheadFullError) -> None:
        """Whoever had to leave the line because of his own budget is told so."""
        if self.deadline is not None and self.deadline.expired:
            raise NoBudgetError(refusal.target, "was not called: the budget was spent in line", "", None) from None

    # -- the end. The guard has given the slot back already, where it has a frame of its own to do it in
    def succeeded(self, result: object) -> None:
        """The call returned ``result``."""
        self._give_back()
        if self.breaker is not None and self.token is not None:
            self.breaker.returned(self.token, result)

    def ended(self) -> None:
        """The block or generator came to its end. It has no result, so no predicate is asked for its opinion of one."""
        self._give_back()
        if self.breaker is not None and self.token is not None:
            self.breaker.settle(self.token, SUCCESS)

    def failed(self, error: BaseException, fn: object = None) -> None:
        """The call raised ``error``, or was never made because a policy refused it with ``error``."""
        self._give_back()
        if self.breaker is not None and self.token is not None:
            self.breaker.raised(self.token, error, fn)

    refused = failed

    def late(self, held: list[bool | None]) -> None:
        """The call was abandoned at its limit, and returns only now: its slot has stayed with it. See drivers/pool.py."""
        held.append(True)
        if self.bulkhead is not None and self.bulkhead.alert:
            self.bulkhead.pump()

    def _give_back(self) -> None:
        if (free := self.held) is not None:
            self.held = None
            free.append(True)
        if self.bulkhead is not None and self.bulkhead.alert:
            self.bulkhead.pump()


def no_budget(name: str, left: float, least: float = 0.0) -> NoBudgetError:
    """What is raised where only ``left`` seconds are left, and ``least`` are wanted."""
    fewer = f", fewer than {least * 1000:.0f}" if left > 0.0 else ""
    return NoBudgetError(name, f"was not called: {left * 1000:.0f} ms of the budget are left{fewer}", "", None)


def spent(least: float) -> bool:
    """Whether a budget is in force of which too little is left: nothing, or less than ``least`` seconds."""
    deadline = ambient()
    if deadline is None:
        return False
    left = deadline.at - deadline.clock()
    return left <= 0.0 or left < least
