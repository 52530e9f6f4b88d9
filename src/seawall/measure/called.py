"""How a call ended: what :func:`~seawall.measure.call.call` gives back, and its errors in words."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .answer import BadAnswer
from .url import Url

__all__ = ["REFUSED", "Called", "Interrupted", "in_words", "is_ragged_end"]

REFUSED = "connection refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """How one call ended.

    Attributes:
        url: As it was given.
        phase: Where it ended. ``connect``: not reached (name look-up, refused, TLS, the limit for them). ``read``:
            anything after. ``total``: at the total, or at the end of the budget in the middle of an answer. ``done``: the
            whole answer is in, whatever its status. ``no_budget``: not made, too little was left.
        status: HTTP status, as soon as the head was in.
        elapsed: Seconds.
        error: What ended it, in words; ``None`` when done.
        limit: Which limit ended it: ``connect``, ``read``, ``total``, ``budget``; ``""`` for none.
        read_limit: Seconds of silence that were allowed: ``read``, cut to what was left of the budget.
        headers: Of the answer, names in lower case.
        body: Its first 64 KiB.
        body_bytes: How long it was.
    """

    url: str
    phase: str
    status: int | None = None
    elapsed: float = 0.0
    error: str | None = None
    limit: str = ""
    read_limit: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    body_bytes: int = 0

    @property
    def elapsed_ms(self) -> float:
        """Milliseconds, to a tenth."""
        return round(self.elapsed * 1000, 1)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C fell into a call.

    Attributes:
        called: As far as it had come.
    """

    def __init__(self, called: Called) -> None:
        super().__init__()
        self.called = called


def is_ragged_end(error: Any) -> bool:
    """Whether a TLS connection ended without the word that it ends."""
    return type(error).__name__ == "SSLEOFError"


def in_words(error: Any, url: Url) -> str:
    """What went wrong, as a reader wants it: short, and in lower case."""
    if isinstance(error, BadAnswer):
        return str(error)
    if isinstance(error, socket.gaierror):
        return f"the name {url.host} was not found ({error.strerror})"
    if isinstance(error, ConnectionRefusedError):
        return REFUSED
    if isinstance(error, ConnectionResetError):
        return "connection reset by the target"
    if hasattr(error, "verify_message"):
        return f"TLS: the certificate is not accepted: {error.verify_message}"
    if hasattr(error, "library"):
        return f"TLS: {(error.reason or error.strerror or str(error)).lower().replace('_', ' ')}"
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]
