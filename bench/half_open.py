"""A half-open breaker under a rush: exactly ``half_open_max_calls`` of 16 callers run, every time.

    python bench/half_open.py
    python bench/half_open.py --repetitions 100

A trial does not end before all 16 have been let in or refused; otherwise a quick success would close the breaker and
let the rest in rightly. So the count is exact, whatever the timing: one repetition that differs is a fault.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from rig import procs, verdict

import seawall

CALLERS = 16
TRIALS = (1, 3)
SWITCH_SECONDS = 1e-6  # the default is 5 ms: far too long for threads to meet inside an admission
JOLT_SHARE = 0.1
PATIENCE_SECONDS = 20.0
Tracer = Callable[[FrameType, str, Any], Any]


class Boom(Exception):
    """The failure that opens the breaker."""


def due_breaker(trials: int) -> seawall.CircuitBreaker:
    """A breaker that has opened and whose trial is due."""
    now = [0.0]
    breaker = seawall.CircuitBreaker(1, 5.0, lambda: now[0], half_open_max_calls=trials, success_threshold=trials,
                                     name="bench")

    def fail() -> None:
        raise Boom

    try:
        breaker.call(fail)
    except Boom:
        pass
    now[0] = 6.0
    return breaker


class Rush:
    """One repetition: who ran, who was refused, and the moment when all have arrived.

    ``list.append`` and ``len`` are single steps under the GIL, and lists lock themselves without it.
    """

    def __init__(self, trials: int) -> None:
        self.trials = trials
        self.breaker = due_breaker(trials)
        self.ran: list[int] = []
        self.refused: list[int] = []
        self.other: list[str] = []

    def all_here(self) -> bool:
        """Whether each caller was let in, refused or failed."""
        return len(self.ran) + len(self.refused) + len(self.other) >= CALLERS

    def outcome(self) -> str:
        """``exact``, or what happened instead."""
        state = str(getattr(self.breaker.state, "value", self.breaker.state))
        if (len(self.ran), len(self.refused), state) == (self.trials, CALLERS - self.trials, "CLOSED"):
            return "exact"
        return (f"{len(self.ran)} ran, {len(self.refused)} refused, then {state}"
                + "".join(f"; {o}" for o in sorted(set(self.other))))


class ThreadRush(Rush):
    """The callers are threads."""

    def __init__(self, trials: int) -> None:
        super().__init__(trials)
        self._done = threading.Event()

    def _trial(self) -> None:
        self.ran.append(1)
        self._arrived()
        self._done.wait(PATIENCE_SECONDS)

    def _arrived(self) -> None:
        if self.all_here():
            self._done.set()

    def caller(self) -> None:
        """One caller."""
        try:
            self.breaker.call(self._trial)
        except seawall.CircuitOpenError:
            self.refused.append(1)
        except Exception as e:  # whatever a faulty breaker raises must not leave the others waiting
            self.other.append(repr(e))
        self._arrived()


class TaskRush(Rush):
    """The callers are tasks of one event loop."""

    def __init__(self, trials: int) -> None:
        super().__init__(trials)
        self._done = asyncio.Event()

    async def _trial(self) -> None:
        self.ran.append(1)
        self._arrived()
        await asyncio.wait_for(self._done.wait(), PATIENCE_SECONDS)

    def _arrived(self) -> None:
        if self.all_here():
            self._done.set()

    async def caller(self) -> None:
        """One caller."""
        await asyncio.sleep(0)
        try:
            await self.breaker.acall(self._trial)
        except seawall.CircuitOpenError:
            self.refused.append(1)
        except Exception as e:  # as above
            self.other.append(repr(e))
        self._arrived()


@contextmanager
def short_switches() -> Iterator[None]:
    """Let threads change places as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def jolt(frame: FrameType, _event: str, _arg: Any) -> Tracer | None:
    """Trace seawall's own code, and let other threads go first at a tenth of its lines.

    Left to themselves threads hardly ever meet inside an admission: a breaker without any lock came out wrong in 2 of
    1,000 repetitions, with this in 3 of 10.
    """
    return jolted if frame.f_globals.get("__name__", "").startswith("seawall") else None


def jolted(_frame: FrameType, event: str, _arg: Any) -> Tracer:
    """One step of a traced function."""
    if event == "line" and random.random() < JOLT_SHARE:
        time.sleep(0)
    return jolted


def rush_threads(trials: int, repetitions: int) -> Counter[str]:
    """Outcomes with threads: the same 16 for all repetitions, let loose together by a barrier."""
    rushes = [ThreadRush(trials) for _ in range(repetitions)]
    barrier = threading.Barrier(CALLERS)

    def work() -> None:
        sys.settrace(jolt)  # for this thread only
        for rush in rushes:
            try:
                barrier.wait(PATIENCE_SECONDS)
            except threading.BrokenBarrierError:
                return
            rush.caller()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(CALLERS)]
    with short_switches():
        try:
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        finally:
            barrier.abort()  # after Ctrl-C those at the barrier leave at once, none starts another rush
    return Counter(r.outcome() for r in rushes)


def rush_tasks(trials: int, repetitions: int) -> Counter[str]:
    """Outcomes with tasks."""
    async def once() -> str:
        rush = TaskRush(trials)
        await asyncio.gather(*(rush.caller() for _ in range(CALLERS)))
        return rush.outcome()

    async def all_of_them() -> Counter[str]:
        return Counter([await once() for _ in range(repetitions)])

    return asyncio.run(all_of_them())


def report(who: str, trials: int, outcomes: Counter[str], repetitions: int) -> verdict.Verdict:
    """Print what happened and judge it."""
    exact = outcomes["exact"]
    print(f"{CALLERS} {who}, half_open_max_calls={trials}: {exact} of {repetitions} repetitions exact "
          f"({trials} ran, {CALLERS - trials} refused, then CLOSED)")
    for what, times in outcomes.most_common(6):
        if what != "exact":
            print(f"  {times} x {what}")
    return verdict.Verdict(f"half-open, {CALLERS} {who}, {trials} at once: repetitions not exact",
                           float(repetitions - exact), 0)


def run(argv: Sequence[str] | None = None) -> list[verdict.Verdict]:
    """Rush the breaker, print, and return the verdicts."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--repetitions", type=int, default=1000)
    a = p.parse_args(argv)
    if a.repetitions < 1:
        p.error("--repetitions must be at least 1")
    ways: list[tuple[str, Callable[[int, int], Counter[str]]]] = [("threads", rush_threads), ("tasks", rush_tasks)]
    print(f"### A half-open breaker and {CALLERS} callers, switch interval {SWITCH_SECONDS:g} s\n")
    with procs.bounded(60 + a.repetitions):
        verdicts = [report(who, trials, rush(trials, a.repetitions), a.repetitions)
                    for who, rush in ways for trials in TRIALS]
    print("\n" + "\n".join(map(str, verdicts)))
    return verdicts


if __name__ == "__main__":
    sys.exit(procs.main_guard(lambda: 0 if all(v.held for v in run()) else 1))
