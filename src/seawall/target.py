"""A named stack of policies in one fixed order: retry, refuse if open, bulkhead, breaker, time limit, call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .events import Listener
from .guard import Guarded
from .policies.breaker import CircuitBreaker
from .policies.bulkhead import Bulkhead
from .policies.retry import Retry, RetrySnapshot
from .policies.slots import BulkheadSnapshot
from .policies.states import BreakerSnapshot
from .policies.timeout import Timeout

__all__ = ["Target", "TargetSnapshot"]


@dataclass(frozen=True, slots=True)
class TargetSnapshot:
    """What a target looks like at one moment; ``None`` where it has no such policy."""

    name: str
    breaker: BreakerSnapshot | None
    bulkhead: BulkheadSnapshot | None
    retry: RetrySnapshot | None = None


class Target(Guarded):
    """One dependency, and what stands in front of it. Everybody who calls it goes through the same policies.

    ``@target`` decorates, ``target.call(fn, ...)`` and ``await target.acall(fn, ...)`` run once, ``with target:`` and
    ``async with target:`` make a block one call.

    Each attempt is a call of its own for breaker and bulkhead: its place is given back while the next one is waited for.
    The breaker refuses first and is entered last: a trial is taken only with a place in hand, and after any wait in line
    the circuit is asked again. All of it comes out of the caller's :class:`~seawall.budget`, where there is one.

    A block and a generator run once and are not timed: they cannot be repeated, and what they have yielded is out.

    Args:
        name: In errors, logs and metrics.
        breaker: ``None``: without one. Like the others it takes the target's name if it has none.
        bulkhead: ``None``: without one.
        retry: ``None``: each call is one attempt.
        timeout: The limit of one attempt; ``None``: without.
    """

    __slots__ = ("_breaker", "_bulkhead", "_retry", "_timeout", "name")

    def __init__(
        self,
        name: str,
        *,
        breaker: CircuitBreaker | None = None,
        bulkhead: Bulkhead | None = None,
        retry: Retry | None = None,
        timeout: Timeout | None = None,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(f"a target has a name, not {name!r}: write  core = Target('CORE')  and then  @core")
        self.name = name
        self._breaker, self._bulkhead, self._retry, self._timeout = breaker, bulkhead, retry, timeout
        for word, policy, kind in (
            ("breaker", breaker, CircuitBreaker), ("bulkhead", bulkhead, Bulkhead),
            ("retry", retry, Retry), ("timeout", timeout, Timeout),
        ):  # fmt: skip
            if policy is not None and not isinstance(policy, kind):
                raise TypeError(f"{word}= takes a {kind.__name__}, made by {kind.__name__}(...), not {policy!r}")
            if policy is not None and not policy.name:
                policy.name = name
        if retry is not None and breaker is not None:
            retry.first.count_by(breaker.started_ticks)

    def __repr__(self) -> str:
        return f"<Target {self.name} {self._breaker.state if self._breaker else ''}>"

    @property
    def breaker(self) -> CircuitBreaker | None:
        """The breaker of this target."""
        return self._breaker

    @property
    def bulkhead(self) -> Bulkhead | None:
        """The bulkhead of this target."""
        return self._bulkhead

    @property
    def retry(self) -> Retry | None:
        """The retry of this target."""
        return self._retry

    @property
    def timeout(self) -> Timeout | None:
        """The limit of one attempt."""
        return self._timeout

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell ``listener`` each change of the circuit, in order. Returns what ends it."""
        return self._breaker.listen(listener) if self._breaker is not None else lambda: None

    def snapshot(self) -> TargetSnapshot:
        """State and counters; changes nothing."""
        return TargetSnapshot(
            self.name,
            None if self._breaker is None else self._breaker.snapshot(),
            None if self._bulkhead is None else self._bulkhead.snapshot(),
            None if self._retry is None else self._retry.snapshot(),
        )
