"""Many threads through one guard: their throughput, in shares of what the same threads do with the bare function.

All threads call until the time is up, so they are in each other's way from the first call to the last. A guard that
serialises its callers shows here and nowhere else.
"""

from __future__ import annotations

import contextlib
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import repeat

from peers import breakers, ours
from peers.record import Run
from peers.rows import Fn, Skip, empty_wrapper, noop

THREADS = (2, 8, 32)
PATIENCE_SECONDS = 30.0


def io_work(x: int) -> int:
    time.sleep(0.001)  # stands for a request: other threads run meanwhile
    return x


@dataclass(frozen=True)
class Work:
    """What the threads call. ``batch``: calls between two looks at the time."""

    name: str
    fn: Fn
    batch: int
    switch_seconds: float


# The default switch interval of 5 ms would hide every race for a guard's lock around a function that takes nanoseconds.
WORKS = (Work("no-op", noop, 20, 0.0002), Work("1 ms of I/O", io_work, 1, 0.005))

GUARDS: dict[str, Callable[[Fn], Fn]] = {
    "bare": lambda fn: fn,
    "wrapper": empty_wrapper,
    "seawall": lambda fn: ours.decorated(ours.breaker(), fn),
    "seawall, star": lambda fn: ours.star(ours.breaker(), fn),
    "seawall, breaker + bulkhead": lambda fn: ours.decorated(ours.target(2 * max(THREADS)), fn),
    **breakers.SYNC,
}


@contextlib.contextmanager
def switching(seconds: float) -> Iterator[None]:
    """Let threads change places every ``seconds``."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(seconds)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


class Rush:
    """``threads`` threads that call ``fn`` until they are told to stop."""

    def __init__(self, fn: Fn, threads: int, batch: int) -> None:
        self._fn, self._batch = fn, batch
        self._gate = threading.Barrier(threads + 1)
        self._going = [True]
        self._calls: list[int] = []
        self._errors: list[Exception] = []
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(threads)]

    def _work(self) -> None:
        fn, batch, going, calls = self._fn, self._batch, self._going, 0
        try:
            self._gate.wait(PATIENCE_SECONDS)
            while going:
                for _ in repeat(None, batch):
                    fn(1)
                calls += batch
        except Exception as e:
            self._errors.append(e)
        self._calls.append(calls)

    def per_second(self, seconds: float) -> float:
        """Calls a second, of all threads together.

        Raises:
            Exception: What a call raised.
        """
        try:
            for thread in self._threads:
                thread.start()
            self._gate.wait(PATIENCE_SECONDS)
            began = time.perf_counter()
            time.sleep(seconds)
        except BaseException:
            self._gate.abort()  # those that wait there leave; not otherwise, some may still be on their way out of it
            raise
        finally:
            self._going.clear()
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
        took = time.perf_counter() - began
        if self._errors:
            raise self._errors[0]
        if len(self._calls) < len(self._threads):
            raise RuntimeError(f"a thread is stuck: not back within {PATIENCE_SECONDS:.0f} s")
        return sum(self._calls) / took


def measure(run: Run, work: Work, threads: int, rounds: int, seconds: float, only: Collection[str] | None) -> str:
    """Measure one setting into ``run`` and return its name."""
    label = f"{work.name}, {threads} threads"
    guarded = built(run, label, work, only)
    found: list[dict[str, float]] = []
    with switching(work.switch_seconds):
        for _ in range(rounds):
            order, took = list(guarded), {}
            random.shuffle(order)
            for name in order:
                try:
                    took[name] = Rush(guarded[name], threads, work.batch).per_second(seconds)
                except Exception as e:
                    run.leave_out(label, name, f"{type(e).__name__}: {e}", missing=False)
                    del guarded[name]
            found.append(took)
    if "bare" in guarded:
        run.contention[label] = {n: statistics.median(took[n] / took["bare"] for took in found) for n in guarded}
    return label


def built(run: Run, label: str, work: Work, only: Collection[str] | None) -> dict[str, Fn]:
    """The guards that are to be had, each around its own function."""
    guarded = {}
    for name, guard in GUARDS.items():
        if only is not None and name not in (*only, "bare", "wrapper"):
            continue
        try:
            guarded[name] = guard(work.fn)
        except (Skip, ImportError) as e:
            run.leave_out(label, name, str(e), missing=True)
        except Exception as e:
            run.leave_out(label, name, f"{type(e).__name__}: {e}", missing=False)
    return guarded
