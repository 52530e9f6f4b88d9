"""A deadline fires once, never early, at most 10 ms late, and an idle wheel keeps no timer."""

from __future__ import annotations

import asyncio
import heapq
import logging
import math
from collections.abc import Callable
from itertools import count, pairwise

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from seawall.hub.wheel import NOWHERE, TURNS, Timed, Wheel

SLOT = 0.01
TINY = 1e-9  # what float arithmetic may add to a sum of times


class Handle:
    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeLoop:
    """Time set by hand; calls run in the order of their times."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now
        self.calls = 0
        self._heap: list[tuple[float, int, Handle]] = []
        self._order = count()

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], object], /) -> Handle:
        handle = Handle(callback)
        heapq.heappush(self._heap, (when, next(self._order), handle))
        return handle

    def timers(self) -> list[float]:
        return [when for when, _, handle in self._heap if not handle.cancelled]

    def advance(self, seconds: float, *, stall: float = 0.0) -> None:
        """Let time pass; with `stall` the loop was busy and finds that much of it gone at once."""
        end = self.now + seconds
        limit = self.calls + 10_000
        self.now += stall
        while self._heap and self._heap[0][0] <= end:
            when, _, handle = heapq.heappop(self._heap)
            if not handle.cancelled:
                self.now = max(self.now, when)
                self.calls += 1
                assert self.calls < limit, "the wheel spins"
                handle.callback()
        self.now = max(self.now, end)


class Entry(Timed):
    """Notes when it fires; may do something more."""

    __slots__ = ("action", "fired")

    def __init__(self, action: Callable[[float], None] | None = None) -> None:
        super().__init__()
        self.fired: list[float] = []
        self.action = action

    def on_due(self, now: float) -> None:
        self.fired.append(now)
        if self.action is not None:
            self.action(now)


@pytest.fixture
def loop() -> FakeLoop:
    return FakeLoop()


@pytest.fixture
def wheel(loop: FakeLoop) -> Wheel:
    return Wheel(loop)


@pytest.mark.parametrize("start", [0.0, 1000.0, 1000.0049, 123456.789, 9_000_000.003])
@pytest.mark.parametrize("wait", [0.0, 0.0001, 0.0099, 0.01, 0.0101, 0.1, 0.29, 3.0, 3600.0])
def test_fires_once_within_its_slot(start: float, wait: float) -> None:
    loop = FakeLoop(start)
    wheel, entry = Wheel(loop), Entry()
    due = start + wait
    wheel.set(entry, due)
    loop.advance(wait + 1.0)
    assert len(entry.fired) == 1
    assert due <= entry.fired[0] <= due + SLOT + TINY
    assert (entry.due, entry.armed, len(wheel)) == (math.inf, NOWHERE, 0)


@pytest.mark.fault("F54")
def test_a_short_budget_behind_a_long_one_is_cut_in_time(wheel: Wheel, loop: FakeLoop) -> None:
    long, short = Entry(), Entry()
    wheel.set(long, loop.now + 3.0)
    wheel.set(short, loop.now + 0.1)
    loop.advance(5.0)
    assert 1000.1 <= short.fired[0] <= 1000.1 + SLOT + TINY
    assert 1003.0 <= long.fired[0] <= 1003.0 + SLOT + TINY


async def short_behind_long() -> tuple[Entry, Entry, float]:
    loop = asyncio.get_running_loop()
    wheel, done = Wheel(loop), asyncio.Event()
    long, short = Entry(lambda now: done.set()), Entry()
    start = loop.time()
    wheel.set(long, start + 0.3)
    wheel.set(short, start + 0.1)
    await asyncio.wait_for(done.wait(), 10.0)
    wheel.close()
    return long, short, start


@pytest.mark.fault("F54")
@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_a_short_budget_is_cut_first_on_a_real_loop(kind: str) -> None:
    """Only the order is asserted, and that nothing was early: a loaded machine may be late."""
    factory = pytest.importorskip("uvloop").new_event_loop if kind == "uvloop" else None
    with asyncio.Runner(loop_factory=factory) as runner:
        long, short, start = runner.run(short_behind_long())
    assert len(short.fired) == len(long.fired) == 1
    assert start + 0.1 <= short.fired[0] < long.fired[0]
    assert long.fired[0] >= start + 0.3


def test_an_idle_wheel_has_no_timer(wheel: Wheel, loop: FakeLoop) -> None:
    entry = Entry()
    assert loop.timers() == []
    wheel.set(entry, math.inf)
    assert loop.timers() == []
    wheel.set(entry, loop.now + 0.05)
    assert len(loop.timers()) == 1
    loop.advance(1.0)
    assert loop.timers() == []
    assert loop.calls == 1


def test_one_timer_stands_for_many_entries(wheel: Wheel, loop: FakeLoop) -> None:
    entries = [Entry() for _ in range(1000)]
    for place, entry in enumerate(reversed(entries)):
        wheel.set(entry, loop.now + 1.0 + place / 1000)
        assert len(loop.timers()) == 1
    loop.advance(10.0)
    assert all(len(entry.fired) == 1 for entry in entries)
    assert loop.calls <= 101


def test_putting_off_moves_nothing_until_the_slot_ends(wheel: Wheel, loop: FakeLoop) -> None:
    entry = Entry()
    wheel.set(entry, loop.now + 1.0)
    stands = entry.armed
    for step in range(1, 100):
        wheel.set(entry, loop.now + 1.0 + step / 100)
    assert entry.armed == stands
    loop.advance(1.5)
    assert (entry.fired, len(wheel)) == ([], 1)
    loop.advance(1.0)
    assert len(entry.fired) == 1
    assert 1001.99 <= entry.fired[0] <= 1001.99 + SLOT + TINY
    assert loop.calls == 2


def test_a_later_due_written_directly_is_honoured(wheel: Wheel, loop: FakeLoop) -> None:
    put_off, done = Entry(), Entry()
    wheel.set(put_off, loop.now + 0.1)
    wheel.set(done, loop.now + 0.1)
    put_off.due = loop.now + 0.2
    done.due = math.inf
    loop.advance(0.15)
    assert put_off.fired == []
    loop.advance(0.1)
    assert len(put_off.fired) == 1
    assert done.fired == []
    assert len(wheel) == 0


def test_a_dropped_entry_is_not_held_and_never_fires(wheel: Wheel, loop: FakeLoop) -> None:
    entry = Entry()
    wheel.drop(entry)
    wheel.set(entry, loop.now + 3600.0)
    wheel.drop(entry)
    wheel.drop(entry)
    assert (len(wheel), entry.armed, entry.due) == (0, NOWHERE, math.inf)
    loop.advance(4000.0)
    assert entry.fired == []
    assert loop.timers() == []


def test_on_due_may_set_itself_again(wheel: Wheel, loop: FakeLoop) -> None:
    entry = Entry(lambda now: wheel.set(entry, now + 0.1) if len(entry.fired) < 5 else None)
    wheel.set(entry, loop.now + 0.1)
    loop.advance(5.0)
    assert len(entry.fired) == 5
    assert all(later - sooner + TINY >= 0.1 for sooner, later in pairwise(entry.fired))


def test_a_due_in_the_past_fires_when_the_loop_comes_round(wheel: Wheel, loop: FakeLoop) -> None:
    entry = Entry(lambda now: wheel.set(entry, now - 5.0) if len(entry.fired) < 3 else None)
    wheel.set(entry, loop.now - 1.0)
    assert entry.fired == []
    loop.advance(0.0)
    assert entry.fired == [1000.0] * 3
    assert loop.calls == 3


def test_a_loop_that_was_held_up_reads_what_came_in_before_it_judges(wheel: Wheel, loop: FakeLoop) -> None:
    """The entry is put off by what the loop finds in its next turns; so no limit is held against it."""
    answered, hung = Entry(), Entry()
    for entry in (answered, hung):
        wheel.set(entry, loop.now + 0.5)
    turns = iter(range(TURNS))

    def turn() -> None:
        if next(turns) == TURNS - 1:
            answered.due = math.inf
        else:
            loop.call_at(loop.now, turn)

    loop.call_at(loop.now + 0.4, turn)
    loop.advance(2.0, stall=1.0)
    assert answered.fired == []
    assert len(hung.fired) == 1


def test_on_due_may_drop_put_off_and_bring_forward_others_of_its_slot(wheel: Wheel, loop: FakeLoop) -> None:
    dropped, later, past = Entry(), Entry(), Entry()

    def act(now: float) -> None:
        wheel.drop(dropped)
        wheel.set(later, now + 1.0)
        wheel.set(past, now - 1.0)

    wheel.set(Entry(act), 1000.0)
    for entry in (dropped, later, past):
        wheel.set(entry, 1000.001)
    loop.advance(0.5)
    assert (dropped.fired, later.fired, len(past.fired)) == ([], [], 1)
    loop.advance(5.0)
    assert (len(dropped.fired), len(later.fired), len(past.fired)) == (0, 1, 1)
    assert len(wheel) == 0


def test_an_on_due_that_raises_is_logged_and_the_others_fire(
    wheel: Wheel, loop: FakeLoop, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(now: float) -> None:
        raise RuntimeError("broken handler")

    entries = [Entry(), Entry(fail), Entry()]
    for entry in entries:
        wheel.set(entry, loop.now + 0.05)
    with caplog.at_level(logging.ERROR, "seawall.hub"):
        loop.advance(1.0)
    assert [len(entry.fired) for entry in entries] == [1, 1, 1]
    assert [record.name for record in caplog.records] == ["seawall.hub"]
    assert "broken handler" in caplog.text


def test_an_interrupt_in_on_due_loses_no_other_deadline(wheel: Wheel, loop: FakeLoop) -> None:
    def interrupt(now: float) -> None:
        raise KeyboardInterrupt

    first, last = Entry(interrupt), Entry()
    wheel.set(first, loop.now + 0.05)
    wheel.set(last, loop.now + 0.05)
    with pytest.raises(KeyboardInterrupt):
        loop.advance(1.0)
    assert last.fired == []
    loop.advance(1.0)
    assert (len(first.fired), len(last.fired)) == (1, 1)


def test_close_forgets_everything_and_ignores_what_comes_later(wheel: Wheel, loop: FakeLoop) -> None:
    closing, after, other = Entry(lambda now: wheel.close()), Entry(), Entry()
    wheel.set(closing, loop.now + 0.05)
    wheel.set(after, loop.now + 0.05)
    wheel.set(other, loop.now + 1.0)
    loop.advance(0.5)
    wheel.set(other, loop.now + 0.1)
    wheel.close()
    loop.advance(5.0)
    assert (len(closing.fired), after.fired, other.fired) == (1, [], [])
    assert (len(wheel), loop.timers()) == (0, [])


def test_the_base_class_has_no_deadline_of_its_own() -> None:
    with pytest.raises(NotImplementedError):
        Timed().on_due(0.0)


class WheelMachine(RuleBasedStateMachine):
    """The wheel against the obvious: a table of dues that is looked through at each moment."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = FakeLoop(1000.003)
        self.wheel = Wheel(self.loop)
        self.entries = [self.entry(place) for place in range(6)]
        self.model: dict[int, tuple[float, float]] = {}  # place -> (due, latest moment to fire)
        self.slack = 0.0

    def entry(self, place: int) -> Entry:
        return Entry(lambda now: self.check(place, now))

    def check(self, place: int, now: float) -> None:
        assert place in self.model, "fired though nothing was due"
        due, latest = self.model.pop(place)
        assert due <= now <= latest + self.slack + TINY
        if place == 5:  # one that takes up its work again at once
            self.put(place, now + 0.025)
        if place == 4:  # and one that ends another's
            self.take(3)

    def put(self, place: int, due: float) -> None:
        self.model[place] = (due, max(due, self.loop.now) + SLOT)
        self.wheel.set(self.entries[place], due)

    def take(self, place: int) -> None:
        self.model.pop(place, None)
        self.wheel.drop(self.entries[place])

    @rule(place=st.integers(0, 5), wait=st.integers(-20, 400).map(lambda ms: ms / 1000))
    def set(self, place: int, wait: float) -> None:
        self.put(place, self.loop.now + wait)

    @rule(place=st.integers(0, 5))
    def drop(self, place: int) -> None:
        self.take(place)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), more=st.integers(0, 300).map(lambda ms: ms / 1000))
    def write_a_later_due(self, data: st.DataObject, more: float) -> None:
        place = data.draw(st.sampled_from(sorted(self.model)))
        due, latest = self.model[place]
        self.model[place] = (due + more, latest + more)
        self.entries[place].due = due + more

    @rule(place=st.integers(0, 5))
    def finish(self, place: int) -> None:
        self.model.pop(place, None)
        self.entries[place].due = math.inf

    @rule(seconds=st.integers(0, 500).map(lambda ms: ms / 1000), stalled=st.booleans())
    def advance(self, seconds: float, stalled: bool) -> None:
        self.slack = seconds if stalled else 0.0
        self.loop.advance(seconds, stall=self.slack)

    @invariant()
    def nothing_is_lost(self) -> None:
        for due, latest in self.model.values():
            assert max(due, latest) + TINY >= self.loop.now
        if self.model:
            assert self.loop.timers()

    @invariant()
    def at_most_one_timer(self) -> None:
        assert len(self.loop.timers()) <= 1

    def teardown(self) -> None:
        self.take(5)
        self.slack = 0.0
        self.loop.advance(2.0)
        assert (self.model, len(self.wheel), self.loop.timers()) == ({}, 0, [])


TestWheelMachine = WheelMachine.TestCase
TestWheelMachine.settings = settings(max_examples=100, stateful_step_count=40, deadline=None, derandomize=True)
