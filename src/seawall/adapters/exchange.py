"""One request of a client: attempted once, or as often as its target's retry decides.

What a client's adapter has to supply is ``send``: it makes one attempt, by the client's own means, and returns an
:class:`Answer`. The order of things, the breaker's share and the reasons to stop are written here, for threads and for
tasks.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from ..deadline import ambient
from ..drivers import aio, threads
from ..errors import SeawallError
from ..guard.nesting import loops_around, repeats
from ..headers import retry_after
from ..plan import Ended, retrying
from ..target import Target
from .attempt import Attempt, running
from .native import Natives
from .protection import Protection

__all__ = ["KEEP", "Answer", "Exchange", "FailedAnswer"]

KEEP = 65536  # bytes of a failed answer's body that are read before the request is repeated
NEUTRAL = frozenset({408, 429})  # they tell of the client, not of the target's health


class FailedAnswer(SeawallError):
    """A target answered with a failure: what rules and retries of a target see. The caller gets the answer itself.

    Attributes:
        status: Its HTTP status.
        response: The client's response.
        retry_after: Seconds for which the target asks to be left alone; ``None``: it does not ask.
        whole: Whether its body is at hand, so that nothing is lost if the request is repeated.
    """

    def __init__(self, status: int, response: Any = None, retry_after: float | None = None, whole: bool = True) -> None:
        super().__init__(f"HTTP {status}")
        self.status, self.response, self.retry_after, self.whole = status, response, retry_after, whole

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status, None, self.retry_after)


class Answer(Protocol):
    """What a client answered to one attempt."""

    response: Any
    """The client's own response."""
    status: int

    def header(self, name: str) -> str | None:
        """The value of a header, or ``None``."""

    def keep(self) -> Any:
        """Read the body, if it is short; whether it is at hand as a whole now. Of an async client: awaitable."""


class Exchange:
    """One request.

    Args:
        target: For which.
        protection: Of the client.
        natives: Its errors.
        repeatable: Whether it may be sent again once it was sent.
        first: Seconds until the first byte of its answer's body; ``None``: no limit of its own.
    """

    __slots__ = ("_first", "_made", "natives", "protection", "repeatable", "target")

    def __init__(
        self, target: Target, protection: Protection, natives: Natives, repeatable: bool, first: float | None = None
    ) -> None:
        self.target, self.protection, self.natives, self.repeatable = target, protection, natives, repeatable
        self._first, self._made = first, 0

    # -- in a thread
    def run(self, send: Callable[[Attempt], Answer]) -> Any:
        """The client's response; or its error, or ours."""
        return (self._once(send) if self.target.retry is None else self._repeated(send)).response

    def _repeated(self, send: Callable[[Attempt], Answer]) -> Answer | FailedAnswer:
        stack = self.target
        assert stack.retry is not None
        plan = retrying(
            stack.retry, ambient(), around=loops_around, repeatable=self._may_repeat, counted=stack.breaker is not None
        )
        try:
            answer: Answer = threads.perform(plan, lambda number: self._kept(self._once(send, number)), time.sleep)
        except FailedAnswer as failed:
            return failed
        return answer

    def _once(self, send: Callable[[Attempt], Answer], number: int = 1) -> Answer:
        attempt = Attempt(self.target, number)
        try:
            attempt.enter()
            attempt.begin(self.protection, self._first)
            before = running.set(attempt)
            try:
                answer = send(attempt)
            finally:
                running.reset(before)
        except BaseException as error:
            self._failed(attempt, error)
            raise
        self._judge(attempt, answer)
        return answer

    def _kept(self, answer: Answer) -> Answer:
        """The answer, or the failure that it is for the plan: read as a whole first, if there may be a next attempt."""
        failed = self._failure(answer)
        if failed is None:
            return answer
        failed.whole = not self._wants_more() or answer.keep()
        try:
            raise failed
        finally:
            del failed  # its traceback holds this frame: no cycle, a response that is dropped is gone at once

    # -- in a task
    def arun(self, send: Callable[[Attempt], Awaitable[Answer]]) -> Awaitable[Answer | FailedAnswer]:
        """:meth:`run` for a task: gives what has the response. A coroutine less on the way than one that gives it."""
        return self._aonce(send) if self.target.retry is None else self._arepeated(send)

    async def _arepeated(self, send: Callable[[Attempt], Awaitable[Answer]]) -> Answer | FailedAnswer:
        stack = self.target
        assert stack.retry is not None

        async def once(number: int) -> Answer:
            return await self._akept(await self._aonce(send, number))

        plan = retrying(
            stack.retry, ambient(), around=loops_around, repeatable=self._may_repeat, counted=stack.breaker is not None
        )
        try:
            answer: Answer = await aio.perform(plan, once)
        except FailedAnswer as failed:
            return failed
        return answer

    async def _aonce(self, send: Callable[[Attempt], Awaitable[Answer]], number: int = 1) -> Answer:
        attempt = Attempt(self.target, number)
        try:
            await attempt.aenter()
            attempt.begin(self.protection, self._first)
            before = running.set(attempt)
            try:
                answer = await send(attempt)
            finally:
                running.reset(before)
        except BaseException as error:
            self._failed(attempt, error)
            raise
        self._judge(attempt, answer)
        return answer

    async def _akept(self, answer: Answer) -> Answer:
        failed = self._failure(answer)
        if failed is None:
            return answer
        failed.whole = not self._wants_more() or await answer.keep()
        try:
            raise failed
        finally:
            del failed

    # -- for both
    def _failed(self, attempt: Attempt, error: BaseException) -> None:
        """The attempt ended without an answer."""
        told = attempt.verdict(error, self.natives)
        attempt.broke(error if isinstance(error, self.natives.own) else told, self.natives)
        if told is not error:
            raise told from error

    def _judge(self, attempt: Attempt, answer: Answer) -> None:
        status = answer.status
        if status < 400:
            attempt.answered(answer.response, None, False)
            return
        failed = FailedAnswer(status, answer.response) if status >= 500 and not _from_a_hub(answer) else None
        attempt.answered(answer.response, failed, status in NEUTRAL)

    def _failure(self, answer: Answer) -> FailedAnswer | None:
        status = answer.status
        if (status < 500 and status != 429) or _from_a_hub(answer):
            return None
        asked = retry_after(answer.header("Retry-After"), answer.header("Date")) if status in (429, 503) else None
        return None if status == 429 and asked is None else FailedAnswer(status, answer.response, asked)

    def _wants_more(self) -> bool:
        self._made += 1
        retry = self.target.retry
        return self.repeatable and retry is not None and self._made < retry.settings.max_attempts

    def _may_repeat(self, ended: Ended) -> bool:
        error = ended.error
        if isinstance(error, FailedAnswer):
            return self.repeatable and error.whole
        if isinstance(error, self.natives.own):
            return False
        return self.repeatable or isinstance(error, self.natives.unsent)


def _from_a_hub(answer: Answer) -> bool:
    """Whether a hub on the way has answered by itself: it is alive, and has had its reasons."""
    return answer.header("X-Seawall-Code") is not None


repeats(Exchange._repeated.__code__, "stack")
repeats(Exchange._arepeated.__code__, "stack")
