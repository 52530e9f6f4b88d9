"""Limits, nested and cancelled at random, end like asyncio.timeout, step by step and to the same moment."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall import Timeout
from tests.drivers.virtual import run_virtual, the_loop

Step: TypeAlias = "tuple[str, float, Any]"
Limit: TypeAlias = "Callable[[float], Any]"
Log: TypeAlias = "list[tuple[float, str, int]]"

# Quarters are exact in binary: what falls together does so in both.
times = st.integers(0, 12).map(lambda quarters: quarters / 4)
durations = st.sampled_from([0.25, 0.5, 1.0, 1.0, 1.75])
sleeps = st.tuples(st.just("sleep"), times, st.none())


def around(inner: st.SearchStrategy[Step]) -> st.SearchStrategy[Step]:
    steps = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.tuples(st.just("limit"), durations, steps),
        st.tuples(st.just("caught limit"), durations, steps),
        st.tuples(st.just("clean up"), times, steps),
        st.tuples(st.just("suppress"), times, steps),
        st.tuples(st.just("fail"), times, steps),
        st.tuples(st.just("together"), times, steps),
    )


plans = st.lists(st.recursive(sleeps, around, max_leaves=8), min_size=1, max_size=4)


class Player:
    """Plays a plan under one kind of limit and writes down when each step ended, how, and with how many requests."""

    def __init__(self, limit: Limit) -> None:
        self.limit = limit
        self.log: Log = []

    async def play(self, steps: list[Step]) -> None:
        for what, seconds, inner in steps:
            try:
                await self.step(what, seconds, inner)
            except BaseException as error:
                kind = "TimeoutError" if isinstance(error, TimeoutError) else type(error).__name__
                self.note(f"{what}: {kind}")
                raise
            self.note(what)

    def note(self, what: str) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.log.append((the_loop().time(), what, task.cancelling()))

    async def step(self, what: str, seconds: float, inner: list[Step]) -> None:
        if what == "sleep":
            await asyncio.sleep(seconds)
        elif what == "limit":
            async with self.limit(seconds):
                await self.play(inner)
        elif what == "caught limit":
            try:
                async with self.limit(seconds):
                    await self.play(inner)
            except TimeoutError:
                self.note("caught")
        elif what == "together":
            async with asyncio.TaskGroup() as group:
                group.create_task(self.play(inner))
                await asyncio.sleep(seconds)
        else:
            await self.step_to_the_end(what, seconds, inner)

    async def step_to_the_end(self, what: str, seconds: float, inner: list[Step]) -> None:
        try:
            await self.play(inner)
        except asyncio.CancelledError:
            if what == "fail":
                raise ZeroDivisionError from None
            if what == "clean up":
                raise
        finally:
            await asyncio.sleep(seconds)


def played(limit: Limit, plan: list[Step], cancels: list[float]) -> Log:
    player = Player(limit)

    async def main() -> None:
        task = asyncio.create_task(player.play(plan))
        for seconds in cancels:
            the_loop().call_at(1000.0 + seconds, task.cancel)
        await asyncio.wait([task])
        player.log.append((the_loop().time(), "cancelled" if task.cancelled() else "ended", task.cancelling()))
        if not task.cancelled():
            task.exception()

    run_virtual(main())
    return player.log


@pytest.mark.parametrize("limit", [Timeout, functools.cache(Timeout)], ids=["each its own", "one a duration"])
@settings(max_examples=400)
@given(plans, st.lists(times, max_size=2))
def test_limits_end_like_those_of_asyncio(limit: Limit, plan: list[Step], cancels: list[float]) -> None:
    assert played(limit, plan, cancels) == played(asyncio.timeout, plan, cancels)
