"""What a web framework answers where a call was refused or came too late.

The answers are those of the hub: ``application/problem+json`` (RFC 9457) with the hub's code, so that whoever calls a
service can treat its refusals and the hub's as one.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import NamedTuple

from ..errors import (
    BulkheadFullError,
    CircuitOpenError,
    DeadlineExceededError,
    NoBudgetError,
    NoThreadError,
    RejectedError,
    SeawallError,
    TimeoutExceededError,
)
from ..problem import problem

__all__ = ["Answer", "answer"]

OF_CLASSES: tuple[tuple[type[SeawallError], str | None], ...] = (
    (CircuitOpenError, "E904"),
    (BulkheadFullError, "E905"),
    (NoThreadError, "E905"),
    (NoBudgetError, "E906"),
    (DeadlineExceededError, "E906"),
    (TimeoutExceededError, "E902"),
    (RejectedError, None),  # a refusal that the hub has no code for
)


class Answer(NamedTuple):
    """An answer, as a framework can send it.

    Attributes:
        status: The HTTP status.
        headers: Names and values; ``Content-Length`` is among them.
        body: JSON, with a line break at its end.
    """

    status: int
    headers: list[tuple[str, str]]
    body: bytes


def answer(error: BaseException) -> Answer | None:
    """What to answer instead of ``error``; ``None`` where it is no refusal and no time limit of Seawall's.

    The members of the body are ``type``, ``code``, ``title``, ``status``, ``detail``, and where they are known ``target``
    and ``retry_after_ms``. ``Retry-After`` is in whole seconds, rounded up, at least 1.

    Args:
        error: Judged by its class, so that a client's own errors which are Seawall's as well are answered too. Of an
            ``ExceptionGroup`` with one member, that member. What caused it is not looked at.
    """
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    codes = [code for kind, code in OF_CLASSES if isinstance(error, kind)]
    if not codes:
        return None
    code = codes[0]
    wait: float | None = getattr(error, "retry_after", None)
    wait = max(0.0, wait) if wait is not None and isfinite(wait) else None
    said = problem(code, str(error), target=str(getattr(error, "target", "")), retry_after=wait)
    headers = [("Content-Type", "application/problem+json")]
    if code is not None:
        headers.append(("X-Seawall-Code", code))
    if said.retry_after is not None:
        headers.append(("Retry-After", str(said.retry_after)))
    body = json.dumps({"type": "about:blank"} | said.members).encode() + b"\n"
    headers.append(("Content-Length", str(len(body))))
    return Answer(said.status, headers, body)
