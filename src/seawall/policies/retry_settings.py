"""The numbers of a retry, and where an answer says for how long to leave its sender alone."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from ..amounts import is_amount
from ..errors import ConfigError
from ..plan import Ended

__all__ = ["BUGS", "JITTERS", "RetrySettings", "hint_of"]

BUGS = (TypeError, AttributeError, NameError, ImportError, NotImplementedError, AssertionError, MemoryError, RecursionError)
"""What no repetition cures. Not retried unless ``on`` names it."""

JITTERS = ("full", "equal", "decorrelated", None)


class RetrySettings(NamedTuple):
    """How often, and how long in between. Seconds, but for ``min_ms``."""

    max_attempts: int = 3
    base_delay: float = 0.05
    max_delay: float = 2.0
    multiplier: float = 2.0
    jitter: str | None = "full"
    min_ms: float = 0.0
    max_retry_after: float = 60.0

    def checked(self) -> RetrySettings:
        """Itself, or :class:`~seawall.ConfigError` that names every fault."""
        faults = []
        if isinstance(self.max_attempts, bool) or not isinstance(self.max_attempts, int) or self.max_attempts < 1:
            faults.append(f"max_attempts counts the first attempt too: 1 or more, not {self.max_attempts!r}")
        for name in ("base_delay", "max_delay", "min_ms", "max_retry_after"):
            value = getattr(self, name)
            if not is_amount(value):
                unit = "milliseconds" if name == "min_ms" else "seconds"
                faults.append(f"{name} is in {unit}, 0 or more and finite, not {value!r}")
        if not is_amount(self.multiplier, 1.0):
            faults.append(f"multiplier makes the waits grow: 1 or more, not {self.multiplier!r}")
        if self.jitter not in JITTERS:
            faults.append(f"jitter is 'full', 'equal', 'decorrelated' or None, not {self.jitter!r}")
        if not faults and self.max_delay < self.base_delay:
            faults.append(f"max_delay {self.max_delay:g} s is shorter than base_delay {self.base_delay:g} s: raise the one")
        if faults:
            raise ConfigError("; ".join(faults))
        return self

    def ceiling(self, attempt: int) -> float:
        """The longest wait after attempt number ``attempt``: ``base_delay * multiplier ** (attempt - 1)``, capped."""
        try:
            return min(self.max_delay, self.base_delay * self.multiplier ** (attempt - 1))
        except OverflowError:  # attempt 2,000 of a loop without end
            return self.max_delay if self.base_delay else 0.0


def hint_of(ended: Ended) -> float | None:
    """Seconds for which the target asks to be left alone, where it does.

    Looked for on the error and its ``response``, or on the result: an attribute ``retry_after`` in seconds, or the header
    ``Retry-After`` in ``headers``. So the errors and responses of the usual HTTP clients are understood without an import.
    """
    from ..headers import retry_after

    source = ended.result if ended.error is None else ended.error
    for bearer in (source, getattr(source, "response", None)):
        asked: float | None = getattr(bearer, "retry_after", None)
        if is_amount(asked, most=inf):
            return asked
        headers = getattr(bearer, "headers", None)
        if headers is not None and callable(getattr(headers, "get", None)):
            value = headers.get("Retry-After") or headers.get("retry-after")  # a plain dict may hold either spelling
            wait: float | None = retry_after(value, headers.get("Date") or headers.get("date"))
            if wait is not None:
                return wait
    return None
