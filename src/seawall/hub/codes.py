"""What an outcome code means for the breaker; the codes that targets give come from here too."""

from __future__ import annotations

from collections.abc import Set

from ..outcome import DISCARDED, FAILURE, IGNORED, SUCCESS, Outcome

__all__ = ["ANY", "Judge", "code_of_status", "readable"]

ANY = "any"
"""``--failures any``: everything but ``0000`` is a failure."""

NEUTRAL = frozenset({"B408", "B429"})  # the target says "not now": alive, and not to be praised for it
SILENT = frozenset({"E901", "E902", "E903"})  # no answer, so no proof of life where it is not counted as a failure


def code_of_status(status: int) -> str:
    """The code of an answer that has no code of its own."""
    if status >= 500:
        return "E500"
    return f"B{status}" if status >= 400 else "0000"


def readable(code: object) -> str:
    """A code that came from outside, as far as it can stand in a header and a label."""
    text = str(code)[:32]
    return text if text.isascii() and text.isprintable() and text else "_unreadable"


class Judge:
    """Codes to outcomes by one rule, the same on both doors."""

    __slots__ = ("_failures", "_known")

    def __init__(self, failures: Set[str] | str) -> None:
        self._failures = failures
        self._known: dict[str, Outcome] = {}

    def __call__(self, code: str) -> Outcome:
        """The outcome that ``code`` is for the breaker. Not asked about calls that were not made."""
        outcome = self._known.get(code)
        if outcome is None:
            outcome = self._judge(code)
            if len(self._known) < 256:  # codes come from outside
                self._known[code] = outcome
        return outcome

    def _judge(self, code: str) -> Outcome:
        if self._failures == ANY:
            return SUCCESS if code == "0000" else FAILURE
        if code in self._failures:
            return FAILURE
        if code in NEUTRAL:
            return IGNORED
        return DISCARDED if code in SILENT else SUCCESS
