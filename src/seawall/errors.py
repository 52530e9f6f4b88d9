"""Every error Seawall raises, fresh at each raise, hashable and picklable.

::

    SeawallError
    +-- RejectedError               the call never ran
    |   +-- CircuitOpenError        the breaker keeps callers off a failing target (alias CircuitBreakerError)
    |   +-- BulkheadFullError       no place free, and no room or no time to wait for one
    |   +-- NoBudgetError           too little of the caller's budget is left to begin
    |   +-- NoThreadError           no thread to run in: too many calls past their time limit have not returned
    +-- DeadlineExceededError       it ran and was cut short by its caller's budget (also a TimeoutError)
    +-- TimeoutExceededError        it ran into its own time limit: a failure of the target (also a TimeoutError)
    +-- ConfigError                 a setting that cannot work (also a ValueError)
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "BulkheadFullError",
    "CircuitBreakerError",
    "CircuitOpenError",
    "ConfigError",
    "DeadlineExceededError",
    "NoBudgetError",
    "NoThreadError",
    "RejectedError",
    "SeawallError",
    "TimeoutExceededError",
]


def seconds(value: float) -> str:
    """A duration as people read it: three digits, and whole seconds from a thousand on."""
    return f"{value:.3g} s" if value < 999.5 else f"{value:.0f} s"


class SeawallError(Exception):
    """Root of everything Seawall raises on purpose."""


class RejectedError(SeawallError):
    """The call was refused before it ran: nothing reached the target.

    Made as ``RejectedError(target, reason, state, retry_after)``. There is no ``__init__``: the object is made in C,
    which a refusal on the hot path notices, and pickling is right by itself.
    """

    _when = "try again in"

    @property
    def target(self) -> str:
        """Name of the target, ``""`` for a policy without a name."""
        return str(self.args[0]) if self.args else ""

    @property
    def reason(self) -> str:
        """What decided, in words with its number."""
        return str(self.args[1]) if len(self.args) > 1 else ""

    @property
    def state(self) -> str:
        """State of the target's circuit (``"OPEN"``, ``"HALF_OPEN"``), ``""`` where another policy refused."""
        return str(self.args[2]) if len(self.args) > 2 else ""

    @property
    def retry_after(self) -> float | None:
        """Seconds until asking again makes sense; ``None`` when nobody can know."""
        return self.args[3] if len(self.args) > 3 else None

    def __str__(self) -> str:
        later = "" if self.retry_after is None else f"; {self._when} {seconds(self.retry_after)}"
        return f"{self.target or 'the target'} {self.reason}{later}"


class CircuitOpenError(RejectedError):
    """The circuit is open, or half-open with all its trials out."""

    _when = "next trial in"


CircuitBreakerError = CircuitOpenError


class BulkheadFullError(RejectedError):
    """No place was free, and there was no room, or no time, to wait for one."""


class NoBudgetError(RejectedError):
    """Too little of the caller's budget was left to begin."""


class NoThreadError(RejectedError):
    """A call under a time limit got no thread to run in: as many as allowed are held by calls that were given up."""


class DeadlineExceededError(SeawallError, TimeoutError):
    """The call ran and its caller's budget ended first: not the target's fault."""


class TimeoutExceededError(SeawallError, TimeoutError):
    """The call ran and did not answer within the limit set for it: a failure of the target.

    Attributes:
        target: Its name, ``""`` where the limit has none.
        limit: The limit, in seconds.
    """

    def __init__(self, target: str = "", limit: float = 0.0) -> None:
        # One argument for TimeoutError, which takes two for an error number and its text.
        super().__init__(f"{target}{': ' if target else ''}no answer within {seconds(limit)}")
        self.target, self.limit = target, limit

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.target, self.limit), self.__dict__


class ConfigError(SeawallError, ValueError):
    """A setting, or several together, that cannot work. The message names each fault and what to write instead."""
