"""What is left of the caller's time: how it comes in with a request, and how it goes on with each attempt.

``X-Budget-Ms`` always goes on. The other forms go on where the client has sent them, with our number in them: theirs is
stale by now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..headers import FORMS

if TYPE_CHECKING:
    from .exchange import Exchange
    from .head import Budgets

__all__ = ["heed", "other_forms", "read_budgets"]


def read_budgets(sent: Budgets) -> tuple[float | None, int]:
    """The smallest budget in any form, in seconds, ``None`` where none could be read; and how many could not be read."""
    best: float | None = None
    bad = 0
    for form, raw in zip(FORMS, sent, strict=True):
        if raw is not None:
            seconds, unread = form.smallest(raw.decode("latin-1"))
            bad += unread
            if seconds is not None and (best is None or seconds < best):
                best = seconds
    return best, bad


def heed(exchange: Exchange, sent: Budgets, now: float) -> None:
    """Take over the budget that the request came with: it can only shorten the target's own.

    On a listener that ignores budgets it changes nothing and is counted.
    """
    hub = exchange.client.hub
    if not exchange.client.heeds_budgets:
        hub.ignored_budgets += 1
        return
    seconds, bad = read_budgets(sent)
    hub.bad_budgets += bad
    if seconds is not None and seconds <= exchange.backend.budget:
        exchange.defaulted = False
        exchange.deadline = now + seconds


def other_forms(sent: Budgets, left: float) -> list[bytes]:
    """Header lines for the forms that the client has sent besides ``X-Budget-Ms``, with what is left in them."""
    forms = zip(FORMS[1:], sent[1:], strict=True)
    return [f"{form.name}: {form.write(left)}".encode() for form, raw in forms if raw is not None]
