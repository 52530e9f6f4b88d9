"""One attempt of a request: its way in, the time it may take, and its way out at the end of the body.

The place in the bulkhead is held until the body has ended or was closed: a stream that is being read is a call that is
running. The breaker is told of a failed answer at its head; of a good one at the end of its body, so that a target that
breaks off every body opens its circuit. Only a trial is settled at the head: nobody waits for an hour of streaming to
learn that the target is back.
"""

from __future__ import annotations

from contextvars import ContextVar
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any

from ..errors import RejectedError, TimeoutExceededError
from ..guard.passage import Passage
from ..outcome import DISCARDED, FAILURE, IGNORED, SUCCESS
from ..policies.states import Trial

if TYPE_CHECKING:
    from ..errors import SeawallError
    from ..target import Target
    from .exchange import FailedAnswer
    from .native import Natives
    from .protection import Protection

__all__ = ["SLACK", "Attempt", "running"]

SLACK = 0.002  # s by which a client's timer may be early: loops round to milliseconds

running: ContextVar[Attempt | None] = ContextVar("seawall_attempt", default=None)
"""The attempt for which this thread or task reads and writes at this moment: what a client's sockets go by."""


class Attempt(Passage):
    """One attempt. ``end`` is when it has to be over, on :func:`time.monotonic`; infinite where nothing limits it."""

    __slots__ = (
        "__weakref__", "_answered", "_budgeted", "_early", "_end", "_first", "_judged", "_limit", "_over", "end", "gap",
    )  # fmt: skip

    def __init__(self, target: Target, number: int = 1) -> None:
        self.end = self._end = self._limit = self._first = self.gap = inf
        self._over = True  # until it is made: what was not, has nothing to give back
        super().__init__(target, number)
        self._answered = self._budgeted = self._early = self._judged = self._over = False

    def __del__(self) -> None:
        if not self._over:  # its response was dropped without having been closed
            self._over = True
            self.ended()

    def begin(self, protection: Protection, first: float | None = None) -> None:
        """It is in: the time begins. ``first``: seconds until the first byte of its body."""
        timeout = self.stack.timeout
        limit = inf if timeout is None else timeout.seconds
        if protection.total is not None and protection.total < limit:
            limit = protection.total
        first = inf if first is None else first
        if self.deadline is None and limit == inf and first == inf:
            return
        left = inf if self.deadline is None else self.deadline.remaining()
        now = monotonic()
        self._limit, self._first, self._budgeted = limit, first, left <= limit
        self._end = now + min(left, limit)
        self.end = min(self._end, now + first)

    def remaining(self) -> float:
        """Seconds left; 0.0 once there are none."""
        return max(0.0, self.end - monotonic())

    def cut(self, own: float | None) -> float | None:
        """The client's ``own`` limit, and no longer than what is left: 0 or less where nothing is."""
        left = min(self.end - monotonic(), self.gap)
        return own if left == inf or (own is not None and own < left) else left

    def verdict(self, error: BaseException, natives: Natives) -> BaseException:
        """What ``error`` was: at the end of the time, the end of the time."""
        if self.end == inf or monotonic() < self.end - SLACK or isinstance(error, RejectedError):
            return error
        return self.exceeded() if isinstance(error, natives.timeouts) else error

    def exceeded(self) -> SeawallError:
        """The error of whatever runs into the end."""
        if self.end != self._end:
            return TimeoutExceededError(self.stack.name, self._first)
        if self._budgeted and self.deadline is not None:
            return self.deadline.exceeded()
        return TimeoutExceededError(self.stack.name, self._limit)

    # -- what comes back
    def answered(self, result: Any, failed: FailedAnswer | None, neutral: bool) -> None:
        """The head of the answer is there.

        Args:
            result: The client's response, for rules that look at it.
            failed: Where it is a failure by its status.
            neutral: Whether its status says nothing about the target's health.
        """
        breaker, token = self.breaker, self.token
        if breaker is not None and token is not None:
            if neutral:
                outcome, word = IGNORED, ""
            elif failed is not None:
                outcome, word = breaker.rules.of_error(failed), f"HTTP {failed.status}"
            else:
                outcome, word = breaker.rules.of_result(result) if breaker.rules.result_tests else SUCCESS, "result"
            if outcome is SUCCESS and type(token) is not Trial:
                if token.noted:
                    breaker.settle(token, IGNORED)  # it answers: calls cut by their callers do not add up
            else:
                self.token = None
                self._answered = outcome is SUCCESS
                breaker.settle(token, outcome, word)
        self._judged = True  # only now: a rule may read the body to its end
        if self._early:
            self.finish()

    def body_began(self, gap: float | None) -> None:
        """A byte of the body is there; from here on nothing may be silent for longer than ``gap``."""
        self.end = self._end
        if gap is not None:
            self.gap = gap

    def finish(self) -> None:
        """The body has ended, or nobody wants more of it. Of a short one that may be before its head was judged."""
        if not self._judged:
            self._early = True
        elif not self._over:
            self._over = True
            self.ended()

    def head_began(self) -> None:
        """A head is there that is not judged yet: a body that ended before it was of an answer on the way, a redirect."""
        self._early = False

    def body_broke(self, error: BaseException, natives: Natives) -> None:
        """The body ended with ``error``. Before its head was judged that is left to whoever gets the error."""
        if self._judged:
            self.broke(error, natives)
        else:
            self._early = True

    def broke(self, error: BaseException, natives: Natives) -> None:
        """It ended with ``error``: before its answer, or in the middle of the body."""
        if self._over:
            return
        self._over = True
        if isinstance(error, natives.own) and self.token is not None and self.breaker is not None:
            token, self.token = self.token, None
            self.breaker.settle(token, DISCARDED)
        self.failed(error)
        if self._answered and self.breaker is not None and self.breaker.rules.of_error(error) is FAILURE:
            self.breaker.record_failure(type(error).__name__)
