"""Is it worth another try? How often, after how long, and for what; never how to wait."""

from __future__ import annotations

import random as chance
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from math import inf
from threading import RLock
from typing import Any, NoReturn, TypeAlias

from ..amounts import is_amount
from ..counters import FirstAttempts, reading, reset_in_child
from ..events import Outbox, RetryEnded, RetryListener, RetryScheduled
from ..guard import Guarded
from ..outcome import FAILURE, Rule, Rules, log
from ..plan import Ended, Reason, has_exhausted
from .retry_budget import RetryBudget
from .retry_settings import BUGS, RetrySettings, hint_of

__all__ = ["Retry", "RetrySnapshot"]

Hint: TypeAlias = Callable[[Ended], "float | None"]
_SHARED: Any = object()  # a budget of its own, with the default numbers


@dataclass(frozen=True, slots=True)
class RetrySnapshot:
    """Numbers of a retry at one moment. ``stopped`` counts the calls that took more than one attempt, by reason."""

    name: str
    max_attempts: int
    calls: int
    retries: int
    stopped: dict[str, int]


class Retry(Guarded):
    """Calls again what failed, as long as it pays: few times, spread at random, within the caller's time.

    Use it as a decorator (``@Retry()``, for functions and coroutine functions), by ``call``/``acall``, or in a
    :class:`~seawall.Target`. Whoever wraps a function says with it that doing its work twice does no harm.

    After the last attempt its own error comes out, unchanged, with one note that tells of the attempts. A refusal (an open
    circuit, no room, no budget) is never repeated. Of loops within loops for one target the outermost repeats, and the
    inner ones run once; and what another loop has given up on is not repeated here unless ``on`` names its error.

    Wrap coroutine functions as such: a plain function that only returns a coroutine (a lambda, say) has succeeded with
    that, and what is awaited afterwards is not repeated.

    Args:
        max_attempts: Attempts in all, the first one included, 1 or more (3).
        base_delay: Seconds that the first wait may last (0.05); then ``multiplier`` times as long, each time.
        max_delay: Seconds that no wait exceeds (2.0).
        multiplier: 1 or more (2.0).
        jitter: How the wait is drawn below its ceiling. ``"full"``, the default: between 0 and the ceiling, which spreads
            a crowd best. ``"equal"``: between half and the whole. ``"decorrelated"``: between ``base_delay`` and three
            times the last wait. ``None``: the ceiling itself.
        on: Types of errors, predicates on the error, and ``on_result(predicate)``, as for a breaker. Default: any
            ``Exception`` but those of a mistake in the code (``TypeError``, ``NameError``, ...).
        retry_budget: Caps extra attempts over all callers. Default: ``RetryBudget(ratio=0.2, min_per_second=10)`` of its
            own. ``None``: without.
        min_ms: With less than that left of the caller's budget, in milliseconds, no attempt is made (0).
        max_retry_after: Seconds of a ``Retry-After`` that are waited for (60). It wins over the computed wait; a longer
            one ends the call at once.
        hint: Reads from :class:`~seawall.plan.Ended` how long the target asks to be left alone, in seconds; what is no such
            number is passed over. Default: the attribute ``retry_after``, or the header, of the error, of its
            ``response``, or of the result.
        name: In errors, events and snapshots. Loops of one name are for one target.
        clock: Seconds that never go back.
        random: A number of 0 to 1, 1 excluded.

    Raises:
        ConfigError: A setting that cannot work; every fault is named.

    Cost: one counter tick a call, until one fails. Source: Brooker, "Exponential Backoff And Jitter" (AWS, 2015).
    """

    __slots__ = (
        "__weakref__", "_clock", "_hint", "_lock", "_outbox", "_random", "_retries", "_stopped", "_warned", "first",
        "least", "name", "retry_budget", "rules", "settings", "ticks",
    )  # fmt: skip

    def __init__(
        self,
        max_attempts: int = 3,
        *,
        base_delay: float = 0.05,
        max_delay: float = 2.0,
        multiplier: float = 2.0,
        jitter: str | None = "full",
        on: Rule | Iterable[Rule] = Exception,
        retry_budget: RetryBudget | None = _SHARED,
        min_ms: float = 0.0,
        max_retry_after: float = 60.0,
        hint: Hint = hint_of,
        name: str = "",
        clock: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = chance.random,
    ) -> None:
        if callable(max_attempts):
            raise TypeError("a retry takes numbers, not the function: write  again = Retry()  and then  @again")
        self.name, self._clock, self._random, self._hint = name, clock, random, hint
        self.retry_budget = RetryBudget(clock=clock) if retry_budget is _SHARED else retry_budget
        self._outbox, self._lock = Outbox(), RLock()
        self._retries = count()
        self.first = FirstAttempts() if self.retry_budget is None else self.retry_budget.first
        self._stopped: dict[str, int] = {}
        self._warned: set[str] = set()
        rules = Rules(on, BUGS if on is Exception else (), limits=False)
        settings = RetrySettings(max_attempts, base_delay, max_delay, multiplier, jitter, min_ms, max_retry_after)
        self.configure(settings, rules)
        reset_in_child(self)

    def __repr__(self) -> str:
        return f"<Retry {self.name}{' ' * bool(self.name)}{self.settings.max_attempts} attempts>"

    def _after_fork(self) -> None:
        self._lock = RLock()
        self._outbox.after_fork()

    def __enter__(self) -> NoReturn:
        """A block cannot be run again: :class:`TypeError`."""
        raise TypeError("a block cannot be repeated: put what it does into a function, and  @retry  above that")

    async def __aenter__(self) -> NoReturn:
        """A block cannot be run again: :class:`TypeError`."""
        raise TypeError("a block cannot be repeated: put what it does into a function, and  @retry  above that")

    # -- what the guard asks for
    breaker = bulkhead = None

    @property
    def retry(self) -> Retry:
        """Itself: what the guard goes through."""
        return self

    # -- numbers: reading changes nothing
    @property
    def calls(self) -> int:
        """First attempts, wherever it stands; of all who share the retry budget, where there is one."""
        return max(0, self.first.number)

    @property
    def retries(self) -> int:
        """Further attempts decided upon."""
        return reading(self._retries)

    def snapshot(self) -> RetrySnapshot:
        """All numbers at once."""
        with self._lock:
            return RetrySnapshot(self.name, self.settings.max_attempts, self.calls, self.retries, dict(self._stopped))

    def ceiling(self, attempt: int) -> float:
        """The longest wait, in seconds, after attempt number ``attempt``, counted from 1."""
        return self.settings.ceiling(attempt)

    def listen(self, listener: RetryListener) -> Callable[[], None]:
        """Tell ``listener`` of each wait, and of the end of each call that took more than one attempt or was given up.

        Events are :class:`~seawall.RetryScheduled` and :class:`~seawall.RetryEnded`. Returns what ends it.
        """
        return self._outbox.add(listener)

    def configure(self, settings: RetrySettings, rules: Rules | None = None) -> None:
        """Change the numbers, and the rules, in place. Calls that are under way go on by the new ones."""
        self.settings = settings.checked()
        self.least = settings.min_ms / 1000
        if rules is not None:
            self.rules = rules
            self.ticks = None if rules.result_tests else self.first.ticks

    # -- what the plan asks for
    def wants(self, ended: Ended) -> bool:
        """Whether what ended so is to be repeated, if it can be."""
        error = ended.error
        if error is None:
            return self.rules.of_result(ended.result) is FAILURE
        if self.rules.of_error(error) is not FAILURE:
            return False
        return not has_exhausted(error, self) or self.rules.names(error)

    def decide(self, attempt: int, ended: Ended, left: float | None, previous: float) -> float | Reason:
        """The wait after ``attempt``, or the reason why there is no further one.

        Args:
            attempt: Its number.
            ended: How it ended.
            left: Seconds left of the caller's budget, ``None`` without one.
            previous: Seconds waited before it.
        """
        if attempt >= self.settings.max_attempts:
            return Reason.ATTEMPTS
        asked = self._asked(ended)
        if asked is not None and asked > self.settings.max_retry_after:
            return Reason.PUSHBACK
        delay = self._delay(attempt, previous) if asked is None else asked
        if left is not None and (delay >= left or delay + self.least > left):
            return Reason.BUDGET
        if self.retry_budget is not None and not self.retry_budget.withdraw():
            return Reason.RETRY_BUDGET
        return delay

    def _asked(self, ended: Ended) -> float | None:
        try:
            asked = self._hint(ended)
            return asked if is_amount(asked, most=inf) else None
        except Exception:
            log.exception("the hint of %r failed on %r", self, ended)
            return None

    def _delay(self, attempt: int, previous: float) -> float:
        settings = self.settings
        ceiling, kind = settings.ceiling(attempt), settings.jitter
        if kind is None:
            return ceiling
        if kind == "equal":
            return ceiling / 2 + self._random() * ceiling / 2
        if kind == "full":
            return self._random() * ceiling
        base = settings.base_delay
        return min(settings.max_delay, base + self._random() * max(0.0, 3 * max(previous, base) - base))

    # -- telling
    def tell_wait(self, attempt: int, delay: float, error: BaseException | None) -> None:
        """A further attempt was decided upon."""
        next(self._retries)
        if self._outbox.listeners:
            self._outbox.post(RetryScheduled(self.name, attempt, delay, error, self._clock()))
            self._outbox.flush()

    def tell_end(self, reason: Reason, attempts: int, waited: float) -> None:
        """A call is over."""
        with self._lock:
            self._stopped[reason.value] = self._stopped.get(reason.value, 0) + 1
        if self._outbox.listeners:
            self._outbox.post(RetryEnded(self.name, reason, attempts, waited, self._clock()))
            self._outbox.flush()

    def warn_of(self, outer: Retry) -> None:
        """Say once that this loop stands inside ``outer``, which is for the same target."""
        if outer.name not in self._warned:
            self._warned.add(outer.name)
            log.warning(
                "%r runs once inside %r: both are for the same target, and together they would make %d attempts of one "
                "call; take one of them away",
                self, outer, self.settings.max_attempts * outer.settings.max_attempts,
            )  # fmt: skip
