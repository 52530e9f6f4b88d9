"""The words of a circuit: its states and modes, the tokens it hands out, its settings and its snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, final

from ..amounts import is_amount
from ..errors import ConfigError

__all__ = ["BreakerSettings", "BreakerSnapshot", "Epoch", "Mode", "State", "Token", "Trial"]


class State(StrEnum):
    """Where the machine stands; ``== "OPEN"`` holds."""

    CLOSED = "CLOSED"
    OPEN = "OPEN"
    HALF_OPEN = "HALF_OPEN"


class Mode(StrEnum):
    """What an operator made of it.

    ``ENFORCE``: refuses while open. ``OBSERVE``: the machine runs, nothing is refused, ``would_reject`` counts.
    ``FORCED_OPEN``: refuses everything. ``FORCED_CLOSED``: records, never trips. ``DISABLED``: records nothing.
    """

    ENFORCE = "ENFORCE"
    OBSERVE = "OBSERVE"
    FORCED_OPEN = "FORCED_OPEN"
    FORCED_CLOSED = "FORCED_CLOSED"
    DISABLED = "DISABLED"


def to_mode(mode: Mode | str) -> Mode:
    """The mode of that name, or :class:`~seawall.ConfigError` naming those there are."""
    try:
        return Mode(mode)
    except ValueError:
        raise ConfigError(f"there is no mode {mode!r}: it is one of {', '.join(Mode)}") from None


CLOSED, OPEN, HALF_OPEN = State
ENFORCE, OBSERVE, FORCED_OPEN, FORCED_CLOSED, DISABLED = Mode


Word: TypeAlias = "str | type[BaseException]"  # an error's name or code; or its class, to be named if anybody asks
NONE: Any = ()  # no list yet, it is made when first needed; typed as any, since it stands where a list will


@final
class Epoch:
    """Token of a call admitted while the circuit was closed.

    ``noted`` is the one question a success asks: is there anything to forget, or a result to be judged? It is raised
    after what it tells of has been written, and lowered before that is forgotten.
    """

    __slots__ = ("cuts", "failed", "noted")

    def __init__(self) -> None:
        self.failed: list[Word] = NONE
        self.cuts: list[float] = NONE
        self.noted = True  # the first success finds out


@final
class Trial:
    """Token of one half-open trial: a lease that ends by itself, settled once, and void with its epoch.

    The breaker keeps only a weak reference: the trial is out as long as somebody holds this token.
    """

    __slots__ = ("__weakref__", "ends", "epoch", "settled")
    noted = True  # its success is always worth a look
    failed: list[Word] = NONE  # and its failure: no short cuts

    def __init__(self, epoch: Epoch, ends: float) -> None:
        self.epoch, self.ends, self.settled = epoch, ends, False


Token: TypeAlias = Epoch | Trial
VOID = Epoch()  # never the present epoch: a report that comes with it moves nothing


class BreakerSettings(NamedTuple):
    """The numbers of a breaker; see :class:`CircuitBreaker`."""

    failure_threshold: int
    reset_timeout: float
    half_open_max_calls: int
    success_threshold: int
    trial_lease: float | None
    attempt_limit: float | None

    def checked(self) -> BreakerSettings:
        """These settings, or :class:`~seawall.ConfigError` naming every fault at once."""
        faults = [
            f"{name} is a number of calls, 1 or more, not {value!r}"
            for name, value in zip(self._fields, self, strict=True)
            if name in ("failure_threshold", "half_open_max_calls", "success_threshold")
            and (type(value) is not int or value < 1)
        ]
        if not is_amount(self.reset_timeout):
            faults.append(f"reset_timeout is in seconds, 0 or more, not {self.reset_timeout!r}")
        faults += [
            f"{name} is in seconds, more than 0, or None for the default, not {value!r}"
            for name, value in (("trial_lease", self.trial_lease), ("attempt_limit", self.attempt_limit))
            if value is not None and not (is_amount(value) and value > 0)
        ]
        if faults:
            raise ConfigError("; ".join(faults))
        return self

    def lease(self) -> float:
        """Seconds a trial may stay silent, before any doubling."""
        if self.trial_lease is not None:
            return self.trial_lease
        if self.attempt_limit is not None:
            return self.attempt_limit + 1.0
        return self.reset_timeout if self.reset_timeout > 60.0 else 60.0

    def patience(self) -> float:
        """Seconds that the oldest of a pile of cut calls must have had."""
        return self.reset_timeout if self.attempt_limit is None else self.attempt_limit


def to_settings(*numbers: Any) -> BreakerSettings:
    """The checked settings of these numbers, in the order of the fields; one object for all who have the same."""
    try:
        return _known(*numbers)
    except TypeError:  # not even hashable
        return BreakerSettings(*numbers).checked()


@lru_cache(maxsize=256, typed=True)
def _known(*numbers: Any) -> BreakerSettings:
    return BreakerSettings(*numbers).checked()


@dataclass(frozen=True, slots=True)
class BreakerSnapshot:
    """What a breaker looks like at one moment. Times are on its clock, in seconds."""

    name: str
    state: State
    mode: Mode
    mode_reason: str
    failures: int
    started: int
    failed: int
    rejected: int
    would_reject: int
    opened: int
    retry_at: float
    retry_after: float
    trial_due: bool
    trials: int
    reason: str
