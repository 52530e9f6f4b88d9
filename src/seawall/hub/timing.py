"""Where the time of an answer went, for its client: ``Server-Timing`` (W3C), milliseconds.

::

    Server-Timing: queue;dur=1.2, target;dur=120.4, wait;dur=48.1, attempts;desc="2"

``queue``: in line for a place. ``target``: from having a place to the head of the answer (on the transaction door: to its
end), over all attempts. ``wait``: between attempts. What is missing to the whole is the client's: sending its request.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .exchange import Exchange
    from .target_settings import TargetSettings

__all__ = ["server_timing", "times"]


def times(target: TargetSettings, wanted: str) -> bool:
    """Whether there is anything to tell in answers of ``target``; ``wanted`` as ``server_timing`` of the hub's settings."""
    return wanted == "all" or (wanted == "auto" and (target.max_queue > 0 or target.retry > 1))


def server_timing(exchange: Exchange) -> bytes:
    """The header line with its CRLF.

    To be asked where ``backend.times``, and ``exchange.timed`` or ``hub.times_all``: the common answer asks for nothing.
    """
    target, attempts = exchange.spent, exchange.attempts
    began = min(exchange.connect_at, exchange.sent_at)
    if began != inf:
        target += exchange.backend.clock() - began
        attempts += 1
    return b'Server-Timing: queue;dur=%.1f, target;dur=%.1f, wait;dur=%.1f, attempts;desc="%d"\r\n' % (
        exchange.queued * 1000, target * 1000, exchange.waited * 1000, attempts,
    )  # fmt: skip
