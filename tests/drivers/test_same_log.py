"""One plan, four drivers: threads, asyncio, callbacks and virtual time tell the same story of the same history."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from seawall import CircuitOpenError, Deadline, Retry
from seawall.drivers.aio import perform as aperform
from seawall.drivers.callbacks import Steps
from seawall.drivers.ends import until
from seawall.drivers.threads import perform
from seawall.drivers.virtual import Virtual
from seawall.plan import Attempt, Ended, retrying
from tests.clock import ManualClock
from tests.drivers.virtual import run_virtual, the_loop

Story = tuple[list[tuple[Any, ...]], str, float]
TICK = 2**-10  # times that are exact in binary, so that sums come out alike


class Asking(ConnectionError):
    retry_after = 16 * TICK


ENDS: dict[str, Any] = {
    "ok": None, "refused": ConnectionError("no"), "asks": Asking("busy"), "other": KeyError("other"),
    "open": CircuitOpenError("CORE", "is open", "OPEN", 1.0),
}  # fmt: skip


@dataclass(frozen=True)
class History:
    attempts: list[tuple[int, str]]  # how many ticks, and how it ends; the last one again and again
    most: int
    base: int
    jitter: str | None
    seed: int
    allowed: int | None  # ticks

    def retry(self, clock: Any, log: list[Any]) -> Retry:
        random = Random(self.seed)
        retry = Retry(self.most, base_delay=self.base * TICK, max_delay=64 * TICK, jitter=self.jitter, on=ConnectionError,
                      retry_budget=None, clock=clock, random=lambda: random.randrange(8) / 8, name="CORE")  # fmt: skip
        retry.listen(log.append)
        return retry

    def deadline(self, clock: Any) -> Deadline | None:
        return None if self.allowed is None else Deadline.after(self.allowed * TICK + TICK / 2, clock)

    def attempt(self, number: int) -> tuple[float, Ended]:
        ticks, word = self.attempts[min(number, len(self.attempts)) - 1]
        error = ENDS[word]
        return ticks * TICK, Ended("ok") if error is None else Ended(error=error)


histories = st.builds(
    History,
    st.lists(st.tuples(st.integers(0, 40), st.sampled_from(["ok", *["refused"] * 3, "asks", "other", "open"])),
             min_size=1, max_size=5),
    st.integers(1, 5), st.integers(0, 32), st.sampled_from(["full", "equal", "decorrelated", None]), st.integers(0, 99),
    st.none() | st.integers(1, 200),
)  # fmt: skip


def told(log: list[Any], ended: Ended, at: float) -> Story:
    # The error itself by its class: that of a deadline is made afresh each time.
    events = [
        tuple(round(part / TICK, 3) if isinstance(part, float) else type(part) if isinstance(part, Exception) else part
              for part in event)
        for event in log
    ]  # fmt: skip
    return events, repr(ended.result) if ended.error is None else type(ended.error).__name__, round(at / TICK, 3)


class Scripted:
    """Attempts for a driver that has no time of its own: they move a clock, and end with the deadline."""

    def __init__(self, history: History, clock: ManualClock, deadline: Deadline | None) -> None:
        self.history, self.clock, self.deadline, self.number = history, clock, deadline, 0

    def __call__(self) -> Ended:
        self.number += 1
        lasts, ended = self.history.attempt(self.number)
        left = None if self.deadline is None else self.deadline.remaining()
        if left is not None and self.deadline is not None and left < lasts:
            lasts, ended = left, Ended(error=self.deadline.exceeded())
        self.clock.advance(lasts)
        return ended


def by_threads(history: History) -> Story:
    clock, log = ManualClock(), []  # type: ignore[var-annotated]
    deadline = history.deadline(clock)
    script = Scripted(history, clock, deadline)
    try:
        ended = Ended(perform(retrying(history.retry(clock, log), deadline), lambda _: script().unwrap(), clock.advance))
    except Exception as error:
        ended = Ended(error=error)
    return told(log, ended, clock())


def by_callbacks(history: History) -> Story:
    clock, log = ManualClock(), []  # type: ignore[var-annotated]
    deadline = history.deadline(clock)
    script = Scripted(history, clock, deadline)
    steps = Steps(retrying(history.retry(clock, log), deadline))
    while (effect := steps.next) is not None:
        if isinstance(effect, Attempt):
            steps.attempted(script())
        else:
            clock.advance(effect.seconds)
            steps.slept()
    assert steps.ended is not None
    return told(log, steps.ended, clock())


def by_virtual(history: History) -> Story:
    world, log, ends = Virtual(), [], []  # type: ignore[var-annotated]
    deadline = history.deadline(world.clock)
    world.start(retrying(history.retry(world.clock, log), deadline), history.attempt, ends.append, deadline)
    world.run()
    return told(log, ends[0], world.now)


def by_asyncio(history: History) -> Story:
    async def main() -> Story:
        loop, log = the_loop(), []  # type: ignore[var-annotated]
        began = loop.time()

        def clock() -> float:
            return loop.time() - began

        deadline = history.deadline(clock)

        async def attempt(number: int) -> Any:
            lasts, ended = history.attempt(number)
            await asyncio.sleep(lasts)
            return ended.unwrap()

        def bounded(number: int) -> Any:
            return attempt(number) if deadline is None else until(deadline, attempt(number))

        try:
            ended = Ended(await aperform(retrying(history.retry(clock, log), deadline), bounded))
        except Exception as error:
            ended = Ended(error=error)
        return told(log, ended, clock())

    return run_virtual(main())


@given(histories)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_all_drivers_tell_the_same_of_the_same_history(history: History) -> None:
    story = by_threads(history)
    assert by_callbacks(history) == story
    assert by_virtual(history) == story
    assert by_asyncio(history) == story


def test_in_virtual_time_a_day_of_waiting_takes_a_moment_and_ends_where_it_should() -> None:
    world = Virtual()
    retry = Retry(50, base_delay=600.0, max_delay=3600.0, jitter=None, retry_budget=None, clock=world.clock)
    ends: list[Ended] = []
    world.start(retrying(retry), lambda number: (1.0, Ended(error=ConnectionError(str(number)))), ends.append)
    world.run(until=3600.0)
    assert ends == []
    world.run()
    assert str(ends[0].error) == "50"
    assert world.now == 50 + 600 + 1200 + 2400 + 46 * 3600
