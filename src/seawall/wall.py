"""All targets of a program: one name is one target, whoever asks for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from typing import Any

from .counters import reset_in_child
from .errors import ConfigError
from .events import Listener
from .policies.breaker import CircuitBreaker
from .policies.bulkhead import Bulkhead
from .policies.retry import Retry
from .policies.timeout import Timeout
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
        retry: Retry | None = None,
        timeout: Timeout | None = None,
        replace: bool = False,
    ) -> Target:
        """The target of that name, made at the first asking: its row exists before its first call.

        Args:
            name: Case-sensitive.
            breaker: Settings for its breaker. Default: ``CircuitBreaker()``.
            bulkhead: Settings for its bulkhead. Default: ``Bulkhead()``.
            retry: Settings for its retry. Default: none, each call is one attempt.
            timeout: The limit of one attempt. Default: none.
            replace: Let a known target take the settings given. State, counters and guards already made stay: they
                follow in place.

        Raises:
            ConfigError: The name is known with other settings, and ``replace`` is not given; or a policy given stands
                before another target already: then one dead target would shut out the other.
        """
        with self._lock:
            known = self._targets.get(name)
            if known is None:
                self._refuse_shared(name, {"breaker": breaker, "bulkhead": bulkhead, "retry": retry})
                breaker = breaker or CircuitBreaker(clock=self._clock)
                bulkhead = bulkhead or Bulkhead(clock=self._clock)
                known = self._targets[name] = Target(
                    name, breaker=breaker, bulkhead=bulkhead, retry=retry, timeout=timeout
                )
                for listener in self._listeners:
                    known.listen(listener)
                return known
        self._adopt(known, breaker, bulkhead, retry, timeout, replace)
        return known

    def _refuse_shared(self, name: str, policies: Mapping[str, object]) -> None:
        for other in self._targets.values():
            for word, given in policies.items():
                if given is not None and given is getattr(other, word):
                    raise ConfigError(
                        f"the {word} given for target {name!r} stands before target {other.name!r} already: make one for "
                        "each, or trouble with one target would refuse calls to the other"
                    )

    def _adopt(
        self,
        known: Target,
        breaker: CircuitBreaker | None,
        bulkhead: Bulkhead | None,
        retry: Retry | None,
        timeout: Timeout | None,
        replace: bool,
    ) -> None:
        changes: list[str] = []
        for policy, mine in ((breaker, known.breaker), (bulkhead, known.bulkhead), (retry, known.retry)):
            if policy is not None:
                changes += _differences(known.name, mine, policy)
        if timeout is not None and (known.timeout is None or timeout.seconds != known.timeout.seconds):
            raise _cannot_follow(known.name, "limit of one attempt")
        if changes and not replace:
            raise ConfigError(
                f"target {known.name!r} is known with other settings ({', '.join(changes)}): ask for it by name alone, or "
                "change it for everybody by replace=True"
            )
        if breaker is not None and known.breaker is not None and breaker is not known.breaker:
            known.breaker.configure(breaker.settings, breaker.rules)
        if bulkhead is not None and known.bulkhead is not None and bulkhead is not known.bulkhead:
            known.bulkhead.configure(bulkhead.settings)
        if retry is not None and known.retry is not None and retry is not known.retry:
            known.retry.configure(retry.settings, retry.rules)

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


def _differences(name: str, mine: Any, given: Any) -> list[str]:
    """What ``given`` has other than ``mine``: settings, and rules where there are any."""
    if mine is None:
        raise _cannot_follow(name, type(given).__name__.lower())
    names = zip(mine.settings._fields, mine.settings, given.settings, strict=True)
    changes = [f"{name} {new!r} instead of {old!r}" for name, old, new in names if new != old]
    if getattr(mine, "rules", None) != getattr(given, "rules", None):
        changes.append(f"other rules in {'on' if isinstance(given, Retry) else 'counts_as_failure or ignores'}")
    return changes


def _cannot_follow(name: str, what: str) -> ConfigError:
    return ConfigError(
        f"target {name!r} is known without this {what}, and guards already made would not follow: give it where the target "
        "is first asked for"
    )
