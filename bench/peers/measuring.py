"""A row is measured: all candidates in each round, in random order, and every ratio is taken inside its round.

So a machine that changes its speed halfway bends no ratio. The figure is the median over the rounds.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import random
import statistics
import time
from typing import Any

from rig import procs

from peers import loops
from peers.record import Figure, Run
from peers.rows import BASELINES, Fn, Row, Skip, wrong_end

WARM_CALLS = 50     # the specialising interpreter settles within a few
EMPTY_CALLS = 20_000
MOST_CALLS = 2_000_000


class Caller:
    """Calls a row's candidates: on one event loop for all of them where they have to be awaited.

    Each slice is a task of its own, so that Ctrl-C ends a run within milliseconds.
    """

    def __init__(self, row: Row, runner: asyncio.Runner) -> None:
        self._row, self._loop, self._runner = row, loops.LOOPS[row.mode], runner

    def finished(self, value: Any) -> Any:
        """``value``, awaited if it is a coroutine."""
        return self._runner.run(value) if inspect.iscoroutine(value) else value

    def seconds(self, fn: Fn, n: int) -> float:
        """What ``n`` calls took."""
        return float(self.finished(self._loop(fn, n)))

    def built(self, cand: str) -> Fn:
        """What a candidate's factory makes, called a few times and found to do what the row is about.

        Raises:
            Skip, ImportError: It is not to be had.
        """
        fn: Fn = self.finished(self._row.cands[cand]())
        error: BaseException | None = None
        try:
            self.finished(loops.first_call(fn, self._row.mode))
        except Exception as e:
            error = e
        if cand not in BASELINES and (wrong := wrong_end(self._row, error)):
            raise RuntimeError(wrong)
        if self._row.mode.endswith("cycle"):
            self.finished(fn(0))
        self.seconds(fn, WARM_CALLS)
        return fn

    def enough_calls(self, fn: Fn, slice_s: float) -> int:
        """How many calls take about ``slice_s`` seconds."""
        n = 16
        while (took := self.seconds(fn, n)) < slice_s / 4 and n < MOST_CALLS:
            n *= 2
        return max(8, int(n * slice_s / max(took, 1e-9)))


def build_all(row: Row, caller: Caller, run: Run) -> dict[str, Fn]:
    """The candidates that are to be had; what is not is noted."""
    built = {}
    for name in row.cands:
        try:
            built[name] = caller.built(name)
        except (Skip, ImportError) as e:
            run.leave_out(row.name, name, str(e), missing=True)
        except Exception as e:
            run.leave_out(row.name, name, f"{type(e).__name__}: {e}", missing=False)
    return built


def measure(row: Row, run: Run, rounds: int, slice_s: float) -> dict[str, Figure]:
    """Measure a row; its figures are put into ``run`` too."""
    with asyncio.Runner() as runner:
        caller = Caller(row, runner)
        built = build_all(row, caller, run)
        counts = {name: caller.enough_calls(fn, slice_s) for name, fn in built.items()}
        order, times = list(built), []
        gc.collect()
        began, busy, ours = time.monotonic(), procs.busy_seconds(), time.process_time()
        for _ in range(rounds):
            random.shuffle(order)
            nothing = loops.empty(EMPTY_CALLS) / EMPTY_CALLS
            times.append({name: caller.seconds(built[name], counts[name]) / counts[name] - nothing for name in order})
        foreign = procs.busy_seconds() - busy - (time.process_time() - ours)
        run.foreign.append(max(0.0, foreign) / (time.monotonic() - began))
    run.rows[row.name] = {name: figure(times, name) for name in built}
    return run.rows[row.name]


def figure(times: list[dict[str, float]], name: str) -> Figure:
    """One candidate's figure from the rounds' seconds per call."""
    def ratios(to: str) -> list[float]:
        return [took[name] / max(took[to], 1e-12) for took in times]

    xbare = ratios("bare")
    low, middle, high = statistics.quantiles(xbare, n=4, method="inclusive")
    xwrap = statistics.median(ratios("wrapper")) if "wrapper" in times[0] else None
    return Figure(middle, low, high, xwrap, min(took[name] for took in times) * 1e9)
