"""All targets of a program: one name is one target, whoever asks for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from threading import Lock

from .counters import reset_in_child
from .errors import ConfigError
from .events import Listener
from .policies.breaker import CircuitBreaker
from .policies.bulkhead import Bulkhead
from .policies.slots import BulkheadSettings
from .policies.states import BreakerSettings
from .target import Target, TargetSnapshot

__all__ = ["Wall"]


class Wall:
    """The registry of targets. Sync and async users of one name share one circuit and one limit.

    ::

        wall = seawall.Wall()
        core = wall.target("CORE", breaker=CircuitBreaker(failure_threshold=3), bulkhead=Bulkhead(20))

        @core
        def transfer(amount): ...

    Args:
        clock: For the policies that the wall makes by itself.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._targets: dict[str, Target] = {}
        self._listeners: list[Listener] = []
        self._lock = Lock()
        reset_in_child(self)

    def _after_fork(self) -> None:
        self._lock = Lock()  # a thread of the parent may hold it

    def target(
        self,
        name: str,
        *,
        breaker: CircuitBreaker | None = None,
        bulkhead: Bulkhead | None = None,
        replace: bool = False,
    ) -> Target:
        """The target of that name, made at the first asking: its row exists before its first call.

        Args:
            name: Case-sensitive.
            breaker: Settings for its breaker. Default: ``CircuitBreaker()``.
            bulkhead: Settings for its bulkhead. Default: ``Bulkhead()``.
            replace: Let a known target take the settings given. State, counters and guards already made stay: they
                follow in place.

        Raises:
            ConfigError: The name is known with other settings, and ``replace`` is not given; or a policy given stands
                before another target already: then one dead target would shut out the other.
        """
        with self._lock:
            known = self._targets.get(name)
            if known is None:
                self._refuse_shared(name, breaker, bulkhead)
                breaker = breaker or CircuitBreaker(clock=self._clock)
                bulkhead = bulkhead or Bulkhead(clock=self._clock)
                known = self._targets[name] = Target(name, breaker=breaker, bulkhead=bulkhead)
                for listener in self._listeners:
                    known.listen(listener)
                return known
        self._adopt(known, breaker, bulkhead, replace)
        return known

    def _refuse_shared(self, name: str, breaker: CircuitBreaker | None, bulkhead: Bulkhead | None) -> None:
        for other in self._targets.values():
            for word, given, theirs in (("breaker", breaker, other.breaker), ("bulkhead", bulkhead, other.bulkhead)):
                if given is not None and given is theirs:
                    raise ConfigError(
                        f"the {word} given for target {name!r} stands before target {other.name!r} already: make one for "
                        "each, or trouble with one target would refuse calls to the other"
                    )

    def _adopt(self, known: Target, breaker: CircuitBreaker | None, bulkhead: Bulkhead | None, replace: bool) -> None:
        old, limit = known.breaker, known.bulkhead
        assert old is not None
        assert limit is not None
        changes: list[str] = []
        if breaker is not None:
            changes += _differences(old.settings, breaker.settings)
            changes += ["other rules in counts_as_failure or ignores"] if breaker.rules != old.rules else []
        if bulkhead is not None:
            changes += _differences(limit.settings, bulkhead.settings)
        if changes and not replace:
            raise ConfigError(
                f"target {known.name!r} is known with other settings ({', '.join(changes)}): ask for it by name alone, or "
                "change it for everybody by replace=True"
            )
        if breaker is not None and breaker is not old:
            old.configure(breaker.settings, breaker.rules)
        if bulkhead is not None and bulkhead is not limit:
            limit.configure(bulkhead.settings)

    def __getitem__(self, name: str) -> Target:
        """The known target of that name; :class:`KeyError` if there is none."""
        return self._targets[name]

    def __contains__(self, name: object) -> bool:
        return name in self._targets

    def __iter__(self) -> Iterator[Target]:
        return iter(list(self._targets.values()))

    def __len__(self) -> int:
        return len(self._targets)

    def listen(self, listener: Listener) -> None:
        """Tell ``listener`` each change of every circuit, of targets yet to come as well; in order for each target."""
        with self._lock:
            self._listeners.append(listener)
            for target in self._targets.values():
                target.listen(listener)

    def snapshot(self) -> dict[str, TargetSnapshot]:
        """Every target by name; changes nothing, and no call waits for it."""
        return {target.name: target.snapshot() for target in self}


def _differences(now: BreakerSettings | BulkheadSettings, new: BreakerSettings | BulkheadSettings) -> list[str]:
    names = zip(now._fields, now, new, strict=True)
    return [f"{name} {other!r} instead of {mine!r}" for name, mine, other in names if other != mine]
