"""A place that a call holds is put back once, by its caller or, when it was abandoned, by its thread; interrupts too."""

from __future__ import annotations

import contextlib
import functools
import itertools
import random
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import pytest

from seawall import Timeout, TimeoutExceededError
from seawall.drivers import pool
from seawall.drivers.pool import run
from tests.drivers.permit import Permit, short_idle
from tests.lines import until
from tests.points import Point, at_each_point
from tests.policies.hung import Hung, hung

__all__ = ["hung", "short_idle"]


@pytest.mark.parametrize("fails", [False, True])
def test_a_call_that_ends_in_time_leaves_the_permit_to_its_caller(fails: bool) -> None:
    def call() -> int:
        assert permit.free == []
        return 7 // (not fails)

    permit = Permit()
    with contextlib.suppress(ZeroDivisionError):
        assert permit.call(Timeout(30.0), call) == 7
    assert permit.free == ["caller"]


@pytest.mark.parametrize("fails", [False, True])
def test_an_abandoned_call_keeps_its_permit_until_it_returns(fails: bool, hung: Hung) -> None:
    def call() -> int:
        hung()
        return 7 // (not fails)

    permit, limit = Permit(), Timeout(0.02)
    with pytest.raises(TimeoutExceededError):
        permit.call(limit, call)
    assert (permit.held, permit.free, limit.abandoned) == (None, [], 1)
    hung.let_go()
    until(lambda: permit.free)
    assert (permit.free, limit.abandoned) == (["late"], 0)
    assert permit.late_in[0].startswith("seawall-")


@pytest.mark.usefixtures("fast_switching")
def test_calls_that_last_just_as_long_as_their_limit_put_their_permit_back_once() -> None:
    limit = Timeout(0.001, max_abandoned=10**6)
    permits: list[Permit] = []
    outcomes: list[str] = []

    def calls(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(150):
            permit = Permit()
            pause = threading.Event()
            seconds = chance.uniform(0.0, 0.002)
            permits.append(permit)
            try:
                permit.call(limit, functools.partial(pause.wait, seconds))
                outcomes.append("in time")
            except TimeoutExceededError:
                outcomes.append("late")

    callers = [threading.Thread(target=calls, args=(seed,)) for seed in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    until(lambda: not limit.abandoned and all(permit.free for permit in permits))
    assert len(outcomes) == len(permits) == 600
    assert [len(permit.free) for permit in permits] == [1] * 600
    assert sum(permit.free == ["late"] for permit in permits) == outcomes.count("late") == limit.abandoned_total


class EachInstruction(Point):
    """The ``number``-th instruction of one function, counted from 0: there another thread takes its turn."""

    def __init__(self, number: int, code: CodeType, strike: Callable[[], object]) -> None:
        super().__init__(number, strike)
        self._code = code

    def _step(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "opcode" and frame.f_code is self._code:
            if self._seen == self.number:
                self.reached = f"line {frame.f_lineno}"
                self.strike()
            self._seen += 1
        return self._step


@pytest.mark.parametrize("fails", [False, True])
def test_a_call_that_ends_at_any_instruction_of_its_caller_puts_its_permit_back_once(
    fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool._pool, "idle", {})
    hand_over, handed, gate = pool._hand_over, threading.Event(), threading.Event()

    def hand_over_and_tell(*call: Any) -> None:
        hand_over(*call)
        handed.set()

    def call() -> int:
        gate.wait(30)
        return 7 // (not fails)

    def end() -> None:
        if handed.is_set():
            gate.set()
            until(lambda: pool._pool.idle)  # its one thread has nothing to do any more

    def once(number: int) -> tuple[str, int]:
        handed.clear()
        gate.clear()
        point, permit, limit = EachInstruction(number, run.__code__, end), Permit(), Timeout(0.0001)
        with contextlib.suppress(ZeroDivisionError, TimeoutExceededError):
            point.run(lambda: permit.call(limit, call))
        end()
        assert permit.free == (["late"] if limit.abandoned_total else ["caller"]), point.reached
        assert limit.abandoned == 0, point.reached
        return point.reached, limit.abandoned_total

    monkeypatch.setattr(pool, "_hand_over", hand_over_and_tell)
    ends = list(itertools.takewhile(lambda end: end[0], map(once, itertools.count())))
    assert len(ends) > 50
    assert {late for _, late in ends} == {0, 1}


# -- interrupts
def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.fault("F48")
@pytest.mark.usefixtures("short_idle")
@pytest.mark.parametrize("ends", ["in time", "with an error", "late"])
def test_a_caller_interrupted_anywhere_puts_the_permit_back_once_and_leaves_no_call_uncounted(ends: str) -> None:
    def once(struck: Callable[[Callable[[], object]], None]) -> None:
        gate, began = threading.Event(), threading.Event()
        permit, limit = Permit(), Timeout(0.001 if ends == "late" else 30.0)

        def call() -> None:
            began.set()
            if ends == "late":
                gate.wait(30)
            if ends == "with an error":
                raise OSError

        with contextlib.suppress(KeyboardInterrupt, OSError, TimeoutExceededError):
            struck(lambda: permit.call(limit, call))
        if ends == "late":
            assert limit.abandoned == limit.abandoned_total == (permit.free == [])
            assert limit.abandoned or not began.is_set()
        gate.set()
        until(lambda: permit.free and not limit.abandoned)
        assert permit.free == (["late"] if limit.abandoned_total else ["caller"])
        assert Timeout(30.0).call(str, 7) == "7"

    assert at_each_point(once, interrupt) > 15
