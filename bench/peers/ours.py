"""Seawall's adapters: how each row is done with the public names.

The rows that people will look at first are measured in three forms: as the decorator makes it (``seawall``), with
``*args, **kwargs`` in place of the function's own signature (``seawall, star``), and by the plain form, which is the
specification (``seawall, plain``). Counters are always on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import seawall
from peers import rows
from peers.others import PLACES
from peers.rows import BIG, HOUR, Fn, add
from seawall.guard import forms


def breaker() -> seawall.CircuitBreaker:
    """One that never opens."""
    return seawall.CircuitBreaker(BIG, HOUR)


def bulkhead() -> seawall.Bulkhead:
    """With room."""
    return seawall.Bulkhead(PLACES)


def target(places: int = PLACES) -> seawall.Target:
    """Both together."""
    return seawall.Target("bench", breaker=breaker(), bulkhead=seawall.Bulkhead(places))


def everything() -> seawall.Target:
    """Retry, breaker and bulkhead."""
    return seawall.Target("bench", breaker=breaker(), bulkhead=bulkhead(), retry=seawall.Retry())


# -- the three forms
def decorated(stack: Any, fn: Fn) -> Fn:
    return stack(fn)


def star(stack: Any, fn: Fn) -> Fn:
    return forms.fused(stack, fn, star=True)


def plain(stack: Any, fn: Fn) -> Fn:
    return forms.plain(stack, fn)


FORMS = {"seawall": decorated, "seawall, star": star, "seawall, plain": plain}
IN_ALL_FORMS: dict[str, Callable[[], Any]] = {
    "breaker_closed": breaker, "breaker_failure": breaker, "abreaker_closed": breaker,
    "bulkhead": bulkhead, "stack": target, "astack": target,
    "retry_first_try": seawall.Retry, "aretry_first_try": seawall.Retry,
    "stack_no_timeout": everything, "astack_no_timeout": everything,
}


# -- one function a row
def opened(fn: Fn) -> Any:
    guarded = seawall.CircuitBreaker(1, HOUR)(fn)
    return rows.aafter_failure(guarded) if fn is rows.afail else rows.after_failure(guarded)


def cycling(fn: Fn) -> Fn:
    return seawall.CircuitBreaker(1, 0.0)(fn)


def never_closing() -> seawall.CircuitBreaker:
    """Held half-open: a trial is due at once, and it takes more good ones than there will be."""
    return seawall.CircuitBreaker(1, 0.0, success_threshold=BIG)


def by_hand() -> Fn:
    guard = breaker()
    allow, well = guard.allow, guard.record_success

    def pair() -> None:
        if allow():
            well()
    return pair


def by_token() -> Fn:
    guard, success = breaker(), seawall.Outcome.SUCCESS
    admit, settle = guard.admit, guard.settle

    def pair() -> None:
        settle(admit(), success)
    return pair


def block() -> Fn:
    guard = breaker()

    def pair() -> None:
        with guard:
            pass
    return pair


def ablock() -> Fn:
    guard = breaker()

    async def pair() -> None:
        async with guard:
            pass
    return pair


def acquiring() -> Fn:
    places = bulkhead()

    def pair() -> None:
        places.acquire()
        places.release()
    return pair


def trying() -> Fn:
    places = bulkhead()

    def pair() -> None:
        if places.try_acquire():
            places.release()
    return pair


def aacquiring() -> Fn:
    places = bulkhead()

    async def pair() -> None:
        await places.aacquire()
        places.release()
    return pair


def timed(fn: Fn) -> Fn:
    return seawall.Timeout(HOUR)(fn)


def under_a_budget(fn: Fn) -> Fn:
    """A budget opened for each call: what an incoming request would do once."""
    guarded, budget = everything()(fn), seawall.budget

    def call(x: int) -> Any:
        with budget(HOUR):
            return guarded(x)
    return call


def all_and_timed(fn: Fn) -> Fn:
    return seawall.Target("bench", breaker=breaker(), bulkhead=bulkhead(), retry=seawall.Retry(),
                          timeout=seawall.Timeout(HOUR))(fn)


def register() -> None:
    """Let seawall take part."""
    for row, stack in IN_ALL_FORMS.items():
        for name, form in FORMS.items():
            add(row, name, lambda r=row, s=stack, f=form: f(s(), rows.ROWS[r].target))
    for row, guard in (("abreaker_failure", breaker), ("abulkhead", bulkhead)):
        add(row, "seawall", lambda r=row, g=guard: g()(rows.ROWS[r].target))
    add("breaker_open", "seawall", partial(opened, rows.fail))
    add("abreaker_open", "seawall", partial(opened, rows.afail))
    add("breaker_cycle", "seawall", partial(cycling, rows.flip))
    add("abreaker_cycle", "seawall", partial(cycling, rows.aflip))
    add("breaker_halfopen", "seawall", lambda: rows.half_open(never_closing()))
    add("abreaker_halfopen", "seawall", lambda: rows.ahalf_open(never_closing()))
    add("breaker_api", "seawall", by_hand)
    add("breaker_api", "seawall, tokens", by_token)
    add("breaker_with", "seawall", block)
    add("abreaker_with", "seawall", ablock)
    add("bulkhead_prim", "seawall", acquiring)
    add("bulkhead_prim", "seawall, try_acquire", trying)
    add("abulkhead_prim", "seawall", aacquiring)
    add("atimeout", "seawall", partial(timed, rows.anoop))
    add("atimeout_yield", "seawall", partial(timed, rows.ayield))
    add("stack_deadline", "seawall", partial(under_a_budget, rows.noop))
    add("astack_timeout_yield", "seawall", partial(all_and_timed, rows.ayield))
