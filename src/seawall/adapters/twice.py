"""Two retry loops around one call: three attempts of three attempts are nine. Found, and said once."""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock

from ..outcome import log
from ..target import Target

__all__ = ["sdk_repeats", "warn_of_retries"]

MOST = 1024  # warnings remembered
_said: set[Hashable] = set()
_lock = Lock()


def warn_of_retries(target: Target | None, whose: str, attempts: int, remedy: str) -> None:
    """Say once that ``whose`` loop of so many ``attempts`` stands with the target's own.

    Args:
        target: Whose calls it repeats; ``None``: of many, by whatever retry each has.
        whose: Of the client, in words.
        attempts: The most it makes of one call.
        remedy: What to write instead.
    """
    ours = 1 if target is None or target.retry is None else target.retry.settings.max_attempts
    name = "" if target is None else target.name
    if attempts < 2 or not _first((name, whose, attempts, ours)):
        return
    if target is None:
        product = f"together with the retry of a target they multiply: {attempts} times as many"
    else:
        product = f"{attempts} times {ours} of Seawall's: up to {attempts * ours} calls to {name} for one"
    log.warning("%s makes up to %d attempts of each call; %s. Seawall counts each by itself. %s",
                whose, attempts, product, remedy)  # fmt: skip


def sdk_repeats(target: Target, count: object) -> None:
    """A request that says by ``X-Stainless-Retry-Count`` that the SDK which sends it repeats it."""
    text = count.decode("latin-1") if isinstance(count, bytes) else str(count)
    if text.isdigit() and int(text) > 0:
        warn_of_retries(
            target, "the SDK", int(text) + 1, "Make its client with max_retries=0, or by seawall.llm.options(...)."
        )


def _first(what: Hashable) -> bool:
    with _lock:
        if what in _said or len(_said) >= MOST:
            return False
        _said.add(what)
        return True
