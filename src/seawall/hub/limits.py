"""What it means when a limit of an exchange has passed."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from ..outcome import CUT
from ..policies.states import Trial
from . import again
from .ghost import go_on_alone
from .phases import BACKOFF, CONNECTING, QUEUED, RECEIVING, SENDING, STREAMING, TUNNEL, WAITING, WHERE

if TYPE_CHECKING:
    from .exchange import Exchange

__all__ = ["budget_over", "too_long"]


def budget_over(exchange: Exchange, now: float) -> None:
    """The caller's budget is spent: a cut, but for a trial, which runs on without its caller."""
    if exchange.phase == BACKOFF:  # the wait would have ended earlier: the loop was held up
        again.wake(exchange, now)
        return
    if exchange.phase == RECEIVING and exchange.defaulted and exchange.backend.settings.budget_scope != "all":
        exchange.deadline = inf  # how fast the body comes is the client's own affair, within body_gap; see start()
        return
    allowed = exchange.backend.budget if exchange.defaulted else exchange.deadline - exchange.began
    detail = f"the budget of {allowed * 1000:.0f} ms is spent"
    if exchange.phase in (CONNECTING, SENDING, WAITING) and exchange.full and type(exchange.token) is Trial:
        go_on_alone(exchange, "E906", detail)
    else:
        more = {"maybe_executed": True} if exchange.phase in (SENDING, WAITING) and not exchange.started else {}
        exchange.fail("E906", f"{detail} {WHERE[exchange.phase]} {exchange.backend.name}", CUT, **more)


def too_long(exchange: Exchange, now: float) -> None:
    """The limit of the present phase has passed. Whose fault that is depends on who was to act."""
    backend, phase = exchange.backend, exchange.phase
    settings = backend.settings
    if phase == BACKOFF:
        again.wake(exchange, now)
    elif phase == QUEUED:
        backend.bulkhead.rejected += 1
        exchange.fail("E905", f"{backend.name} had no place free within {settings.max_wait:g} s")
    elif phase == CONNECTING:
        exchange.attempt_failed("E901", f"could not connect to {backend.name} within {settings.connect:g} s")
    elif exchange.kept is not None:
        exchange.give_up_keeping()
    elif phase == WAITING or exchange.asking:
        waited = now - exchange.sent_at
        exchange.attempt_failed("E902", f"{backend.name} gave no answer within {waited:.3g} s", maybe_executed=True)
    elif phase == TUNNEL:
        exchange.drop_upstream()
        exchange.end_of_answer(False)
    elif phase == STREAMING and exchange.client.blocked:
        client = exchange.client
        if client.taking():
            exchange.until = now + settings.body_gap
            return
        exchange.client_gone()
        client.cut(by_reset=not exchange.request.v11)
    elif phase == STREAMING or exchange.client.paused:
        gap = f"for {settings.body_gap:g} s"
        what = "sent no more of its answer" if phase == STREAMING else "took no more of the request"
        exchange.attempt_failed("E902", f"{backend.name} {what} {gap}")
    else:
        exchange.fail("E408", f"no more of the body within {exchange.client.hub.settings.body_gap:g} s", CUT)
