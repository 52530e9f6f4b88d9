"""The body of an answer that is no target's: ``application/problem+json`` (RFC 9457), of the hub and in web frameworks."""

from __future__ import annotations

from http import HTTPStatus
from math import ceil
from typing import Any, NamedTuple

from .outcome import CODES

__all__ = ["Problem", "problem"]

WAITING_CODES = frozenset({"E904", "E907"})  # always say when to come back
UNKNOWN_WAIT = 1.0  # s, said by these where nobody knows better


class Problem(NamedTuple):
    """What is wrong.

    Attributes:
        status: The HTTP status.
        members: Of the body.
        retry_after: For the header: whole seconds, rounded up, at least 1; ``None``: nobody knows.
    """

    status: int
    members: dict[str, Any]
    retry_after: int | None


def problem(
    code: str | None, detail: str, *, status: int | None = None, target: str = "", retry_after: float | None = None
) -> Problem:
    """What is wrong, in the words of RFC 9457.

    Args:
        code: One of :data:`~seawall.outcome.CODES`; ``None``: there is none for it, and ``status`` says all.
        detail: One sentence: what happened, with its number.
        status: Instead of the code's own.
        target: The target's name, where one was found.
        retry_after: Seconds until asking again makes sense.
    """
    status = status or (CODES[code].status if code is not None else HTTPStatus.SERVICE_UNAVAILABLE.value)
    members: dict[str, Any] = {} if code is None else {"code": code}
    title = HTTPStatus(status).phrase if code is None else CODES[code].meaning
    members |= {"title": title, "status": status, "detail": detail}
    if target:
        members["target"] = target
    if retry_after is None and code in WAITING_CODES:
        retry_after = UNKNOWN_WAIT
    if retry_after is None:
        return Problem(status, members, None)
    members["retry_after_ms"] = max(0, ceil(retry_after * 1000))
    return Problem(status, members, max(1, ceil(retry_after)))
