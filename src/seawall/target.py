"""A named stack of policies in one fixed order: refuse if open, bulkhead, breaker, call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .events import Listener
from .guard import Guarded
from .policies.breaker import CircuitBreaker
from .policies.bulkhead import Bulkhead
from .policies.slots import BulkheadSnapshot
from .policies.states import BreakerSnapshot

__all__ = ["Target", "TargetSnapshot"]


@dataclass(frozen=True, slots=True)
class TargetSnapshot:
    """What a target looks like at one moment; ``None`` where it has no such policy."""

    name: str
    breaker: BreakerSnapshot | None
    bulkhead: BulkheadSnapshot | None


class Target(Guarded):
    """One dependency, and what stands in front of it. Everybody who calls it goes through the same policies.

    ``@target`` decorates, ``target.call(fn, ...)`` and ``await target.acall(fn, ...)`` run once, ``with target:`` and
    ``async with target:`` make a block one call.

    The breaker refuses first and is entered last: a trial is taken only with a place in hand, and after any wait in
    line the circuit is asked again.

    Args:
        name: In errors, logs and metrics.
        breaker: ``None``: without one. It takes the target's name if it has none.
        bulkhead: ``None``: without one. It takes the target's name if it has none.
    """

    __slots__ = ("_breaker", "_bulkhead", "name")

    def __init__(
        self, name: str, *, breaker: CircuitBreaker | None = None, bulkhead: Bulkhead | None = None
    ) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(f"a target has a name, not {name!r}: write  core = Target('CORE')  and then  @core")
        self.name, self._breaker, self._bulkhead = name, breaker, bulkhead
        for word, policy, kind in (("breaker", breaker, CircuitBreaker), ("bulkhead", bulkhead, Bulkhead)):
            if policy is not None and not isinstance(policy, kind):
                raise TypeError(f"{word}= takes a {kind.__name__}, made by {kind.__name__}(...), not {policy!r}")
        for policy in (breaker, bulkhead):
            if policy is not None and not policy.name:
                policy.name = name

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

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell ``listener`` each change of the circuit, in order. Returns what ends it."""
        return self._breaker.listen(listener) if self._breaker is not None else lambda: None

    def snapshot(self) -> TargetSnapshot:
        """State and counters; changes nothing."""
        return TargetSnapshot(
            self.name,
            None if self._breaker is None else self._breaker.snapshot(),
            None if self._bulkhead is None else self._bulkhead.snapshot(),
        )
