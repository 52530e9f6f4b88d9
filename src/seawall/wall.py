"""All targets of a program: one name is one target, whoever asks for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from threading import Lock

from .errors import ConfigError
from .events import Listener
from .policies.breaker import CircuitBreaker
from .policies.bulkhead import Bulkhead
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
            ConfigError: The name is known with other settings, and ``replace`` is not given.
        """
        with self._lock:
            known = self._targets.get(name)
            if known is None:
                breaker = breaker or CircuitBreaker(clock=self._clock)
                bulkhead = bulkhead or Bulkhead(clock=self._clock)
                known = self._targets[name] = Target(name, breaker=breaker, bulkhead=bulkhead)
                for listener in self._listeners:
                    known.listen(listener)
                return known
        self._adopt(known, breaker, bulkhead, replace)
        return known

    def _adopt(self, known: Target, breaker: CircuitBreaker | None, bulkhead: Bulkhead | None, replace: bool) -> None:
        changes: list[tuple[str, object, object]] = []
        old, limit = known.breaker, known.bulkhead
        assert old is not None
        assert limit is not None
        if breaker is not None and (breaker.settings, breaker.rules) != (old.settings, old.rules):
            changes.append(("breaker", old.settings, breaker.settings))
        if bulkhead is not None and bulkhead.settings != limit.settings:
            changes.append(("bulkhead", limit.settings, bulkhead.settings))
        if changes and not replace:
            what = "; ".join(f"{kind}: {new} instead of {now}" for kind, now, new in changes)
            raise ConfigError(
                f"target {known.name!r} is known with other settings ({what}): ask for it by name alone, or change it "
                "for everybody by replace=True"
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
