"""One call, repeated as :class:`~seawall.Retry` decides, each attempt and each wait told."""

from __future__ import annotations

import random as chance
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from seawall.deadline import Deadline
from seawall.errors import ConfigError, DeadlineExceededError, NoBudgetError
from seawall.events import RetryEnded, RetryEvent
from seawall.headers import retry_after
from seawall.plan import Attempt, Ended, Plan, Reason, Sleep, retrying
from seawall.policies.retry import Retry

from .called import Called, Interrupted

__all__ = ["ON", "Attempts", "Failing", "Tried", "to_retry"]

ON = "5xx,429,connect,read,total"
"""What is worth another attempt unless told otherwise: trouble of the target, and no trouble of the request."""

_WORD = re.compile(r"connect|read|total|[1-5][0-9][0-9]|[1-5]xx")


@dataclass(frozen=True, slots=True)
class Failing:
    """Which ends of a call are failures, worth another attempt.

    Attributes:
        words: Phases (``connect``, ``read``, ``total``), statuses (``429``) and classes of them (``5xx``).
    """

    words: frozenset[str]

    @classmethod
    def parse(cls, text: str) -> Failing:
        """What ``text`` lists, separated by commas.

        Raises:
            ConfigError: A word that is none of these.
        """
        words = [word.strip().lower() for word in text.split(",")]
        for word in words:
            if not _WORD.fullmatch(word):
                raise ConfigError(f"{word!r} is nothing to retry on: connect, read, total, a status as 404, a class as 5xx")
        return cls(frozenset(words))

    def __call__(self, called: Called) -> bool:
        """Whether this is one."""
        if called.phase != "done":
            return called.phase in self.words
        return bool({str(called.status), f"{(called.status or 0) // 100}xx"} & self.words)


class _Failed(Exception):
    """An attempt that is to be repeated if it can be."""

    def __init__(self, called: Called) -> None:
        super().__init__(called.error or f"status {called.status}")
        self.called = called


class _Other(Exception):
    """An attempt that failed in a way that is not to be repeated."""


def to_retry(
    max_attempts: int, base_ms: float, *, max_delay_ms: float | None = None, min_ms: float = 0.0, seed: int | None = None
) -> Retry:
    """A retry with full jitter whose ceilings double each time, without a cap unless one is given.

    It has no retry budget: that caps the load of many callers, and here is one.

    Raises:
        ConfigError: A number that cannot work.
    """
    return Retry(
        max_attempts, base_delay=base_ms / 1000, min_ms=min_ms, on=_Failed, retry_budget=None, hint=_hint,
        max_delay=sys.float_info.max if max_delay_ms is None else max_delay_ms / 1000,
        random=chance.Random(seed).random,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tried:
    """One attempt, and the wait after it.

    Attributes:
        number: Counted from 1.
        called: How it ended.
        ceiling: Seconds that the wait after it may last.
        waited: Seconds that it lasted; 0 where no attempt followed.
        asked: Seconds for which the target asked to be left alone, which wins over the drawn wait; ``None`` if it did not.
    """

    number: int
    called: Called
    ceiling: float
    waited: float = 0.0
    asked: float | None = None


class Attempts:
    """The attempts of one call. Iterate once; a row comes when the wait after it is over.

    Args:
        attempt: Makes one: a :func:`~seawall.measure.call.call` under the same ``deadline``.
        retry: How often, and how long in between; see :func:`to_retry`.
        deadline: The end of it all.
        failing: What is worth another attempt.
        sleep: Waits so many seconds.

    Attributes:
        reason: Why it ended, once it has: a :class:`~seawall.plan.Reason`.
    """

    def __init__(
        self,
        attempt: Callable[[], Called],
        retry: Retry,
        deadline: Deadline,
        failing: Failing,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.reason: str = ""
        self._attempt, self._retry, self._deadline, self._failing, self._sleep = attempt, retry, deadline, failing, sleep

    def __iter__(self) -> Iterator[Tried]:
        """Make them.

        Raises:
            KeyboardInterrupt: Ctrl-C, after the attempt or wait it fell into was given out as far as it had come.
        """
        stop_listening = self._retry.listen(self._note)
        try:
            yield from self._play(retrying(self._retry, self._deadline))
        finally:
            stop_listening()

    def _note(self, event: RetryEvent) -> None:
        if isinstance(event, RetryEnded):
            self.reason = event.reason

    def _play(self, plan: Plan) -> Iterator[Tried]:
        effect = next(plan)
        while isinstance(effect, Attempt):
            number, ceiling = effect.number, self._retry.ceiling(effect.number)
            try:
                called = self._attempt()
            except Interrupted as stop:
                yield Tried(number, stop.called, ceiling)
                raise
            ended = self._judged(called)
            try:
                effect = plan.send(ended)
            except StopIteration:
                self.reason = self.reason or _reason_of_one(ended)
                yield Tried(number, called, ceiling, asked=_hint(ended))
                return
            assert isinstance(effect, Sleep)
            yield from self._wait(effect.seconds, Tried(number, called, ceiling, effect.seconds, _hint(ended)))
            try:
                effect = next(plan)
            except StopIteration:
                return

    def _wait(self, delay: float, tried: Tried) -> Iterator[Tried]:
        began = time.monotonic()
        try:
            self._sleep(delay)
        except KeyboardInterrupt:
            waited = min(delay, time.monotonic() - began)
            yield Tried(tried.number, tried.called, tried.ceiling, waited, tried.asked)
            raise
        yield tried

    def _judged(self, called: Called) -> Ended:
        """An attempt as the plan sees it."""
        if called.phase == "no_budget":
            return Ended(None, NoBudgetError("", called.error))
        if called.limit == "budget":
            return Ended(None, DeadlineExceededError(called.error))
        if self._failing(called):
            return Ended(None, _Failed(called))
        return Ended(called) if called.phase == "done" else Ended(None, _Other(called.error))


def _reason_of_one(ended: Ended) -> str:
    """Why there was one attempt only, where the plan has nothing to tell of it."""
    if isinstance(ended.error, (NoBudgetError, DeadlineExceededError)):
        return Reason.BUDGET
    return Reason.SUCCESS if ended.error is None else Reason.OTHER


def _hint(ended: Ended) -> float | None:
    if not isinstance(ended.error, _Failed):
        return None
    headers = ended.error.called.headers
    return retry_after(headers.get("retry-after"), headers.get("date"))
