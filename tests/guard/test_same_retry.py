"""Retries and budgets in the generated guard, its star form and the plain one: the same answers, numbers and events."""

from __future__ import annotations

import gc
import inspect
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall import Bulkhead, CircuitBreaker, Retry, RetryBudget, Target, budget, on_result
from tests.clock import ManualClock
from tests.guard.both import FORMS, Form, every_form, without_a_loop

ENDS = st.sampled_from(["ok", "ok", "bad", ConnectionError, ConnectionError, TimeoutError, TypeError, KeyError])
SCRIPTS = st.lists(ENDS, min_size=1, max_size=4)
CALLS = st.lists(st.tuples(SCRIPTS, st.none() | st.sampled_from([0.0, 0.5, 9.0])), max_size=8)


def stack_of(parts: str, clock: ManualClock, judged: bool) -> Target:
    on: Any = [ConnectionError, TimeoutError, on_result(lambda result: result == "bad")] if judged else Exception
    return Target(
        "CORE",
        breaker=CircuitBreaker(3, 5.0, clock) if "b" in parts else None,
        bulkhead=Bulkhead(2, clock=clock) if "h" in parts else None,
        retry=Retry(3, base_delay=0, on=on, min_ms=100, clock=clock, retry_budget=RetryBudget(0.5, 1, clock=clock)),
    )


def played(form: Form, parts: str, judged: bool, calls: Any, is_async: bool) -> list[Any]:
    clock = ManualClock()
    story: list[Any] = []
    stack = stack_of(parts, clock, judged)
    assert stack.retry is not None
    stack.retry.listen(lambda event: story.append((*event[:3], type(event[3]))))
    if stack.breaker is not None:
        stack.breaker.listen(story.append)
    script: list[Any] = []

    def fn(seconds: float = 0.25) -> Any:
        clock.advance(seconds)
        end = script.pop(0) if len(script) > 1 else script[0]
        if isinstance(end, type):
            raise end
        return end

    async def afn(seconds: float = 0.25) -> Any:
        return fn(seconds)

    guarded: Any = form(stack, afn if is_async else fn)

    def call() -> Any:
        return without_a_loop(guarded()) if is_async else guarded()

    for ends, allowed in calls:
        script[:] = ends
        try:
            if allowed is None:
                story.append(call())
            else:
                with budget(allowed, clock=clock):
                    story.append(call())
        except Exception as error:
            story.append((type(error), error.args, getattr(error, "__notes__", []), error.__context__))
        story.append(stack.snapshot())
    return story


@given(st.sampled_from(["", "b", "h", "bh"]), st.booleans(), CALLS)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_functions_are_retried_alike_in_every_form(parts: str, judged: bool, calls: Any) -> None:
    first, *others = (played(form, parts, judged, calls, False) for form in FORMS.values())
    for other in others:
        assert other == first


@given(st.sampled_from(["", "b", "h", "bh"]), st.booleans(), st.lists(SCRIPTS, max_size=8))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_coroutines_are_retried_alike_in_every_form(parts: str, judged: bool, calls: list[Any]) -> None:
    # Without waits; a base_delay of 0 still goes through the loop, so only calls that need none are driven by hand.
    once = [([ends[0]] if ends[0] in ("ok", TypeError) else ["ok"], None) for ends in calls]
    first, *others = (played(form, parts, judged, once, True) for form in FORMS.values())
    for other in others:
        assert other == first


@every_form
def test_a_failing_call_leaves_no_cycle_behind(form: Form) -> None:
    target = stack_of("bh", ManualClock(), judged=False)

    def fail() -> None:
        raise ConnectionError

    guarded = form(target, fail)
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            try:
                guarded()
            except Exception:
                pass
        assert gc.collect() == 0
    finally:
        gc.enable()


@every_form
def test_name_and_signature_are_kept(form: Form) -> None:
    @Retry()
    def plain(a: int, *, b: str = "x") -> str:
        """Says so."""
        return b * a

    def inner(a: int, *, b: str = "x") -> str:
        """Says so."""
        return b * a

    guarded = form(Retry(), inner)
    assert (guarded.__name__, guarded.__doc__, guarded(2, b="y"), plain(2)) == ("inner", "Says so.", "yy", "xx")
    assert inspect.signature(guarded) == inspect.signature(inner)
    with pytest.raises(TypeError):
        guarded()  # type: ignore[call-arg]
