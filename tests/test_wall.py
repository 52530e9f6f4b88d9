"""The wall holds one target a name: whoever asks gets the same one, and trouble with one is nothing to the others."""

from __future__ import annotations

import threading

import pytest

from seawall import (
    Bulkhead,
    BulkheadFullError,
    CircuitBreaker,
    CircuitOpenError,
    ConfigError,
    StateChanged,
    Target,
    Wall,
    on_result,
)
from seawall.events import Event
from tests.clock import ManualClock
from tests.lines import Caller, until


def fail() -> None:
    raise ConnectionError("no answer")


def break_down(target: Target, times: int = 5) -> None:
    for _ in range(times):
        with pytest.raises(ConnectionError):
            target.call(fail)


def parts(target: Target) -> tuple[CircuitBreaker, Bulkhead]:
    assert target.breaker is not None
    assert target.bulkhead is not None
    return target.breaker, target.bulkhead


# -- one for each
@pytest.mark.req("HUB-5", "HUB-9")
def test_a_dead_target_refuses_its_own_callers_only(manual_clock: ManualClock) -> None:
    wall = Wall(clock=manual_clock)
    core, claim = wall.target("CORE"), wall.target("CLAIM")
    before = claim.snapshot()
    break_down(core)
    with pytest.raises(CircuitOpenError, match=r"^CORE is open"):
        core.call(int)
    assert claim.snapshot() == before
    assert [claim.call(int, "7") for _ in range(20)] == [7] * 20


@pytest.mark.req("HUB-5", "HUB-4")
def test_a_target_full_of_hanging_calls_takes_no_place_from_another() -> None:
    wall = Wall()
    core, claim = wall.target("CORE"), wall.target("CLAIM")
    release = threading.Event()
    threads = [threading.Thread(target=lambda: core.call(release.wait, 60)) for _ in range(10)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: parts(core)[1].in_flight == 10)
        with pytest.raises(BulkheadFullError, match=r"^CORE is full: 10 calls running$"):
            core.call(int)
        assert [claim.call(int, "7") for _ in range(50)] == [7] * 50
        assert (parts(claim)[1].peak_active, parts(claim)[1].rejected) == (1, 0)
    finally:
        release.set()
        for thread in threads:
            thread.join(30)


@pytest.mark.parametrize("kind", ["breaker", "bulkhead"])
def test_one_policy_before_two_targets_is_an_error(kind: str) -> None:
    """The first of the classic mistakes: one breaker for everything."""
    wall = Wall()
    shared = {kind: CircuitBreaker() if kind == "breaker" else Bulkhead()}
    wall.target("CORE", **shared)  # type: ignore[arg-type]  # one of the two
    with pytest.raises(ConfigError, match=f"the {kind} given for target 'CLAIM' stands before target 'CORE' already"):
        wall.target("CLAIM", **shared)  # type: ignore[arg-type]
    assert "CLAIM" not in wall
    wall.target("CORE", **shared)  # type: ignore[arg-type]  # the same again is no change


# -- one for all who ask
def test_one_name_is_one_target() -> None:
    wall = Wall()
    core = wall.target("CORE")
    assert wall.target("CORE") is core is wall["CORE"]
    assert wall.target("core") is not core
    assert "CORE" in wall
    assert "CLAIM" not in wall
    assert [target.name for target in wall] == ["CORE", "core"]
    assert len(wall) == 2
    with pytest.raises(KeyError, match="CLAIM"):
        wall["CLAIM"]
    assert "CLAIM" not in wall


def test_many_threads_that_ask_at_once_get_the_same_target(fast_switching: None) -> None:
    for _ in range(50):
        wall, gate = Wall(), threading.Barrier(8)
        got: list[Target] = []

        def ask(wall: Wall = wall, got: list[Target] = got, gate: threading.Barrier = gate) -> None:
            gate.wait(30)
            got.append(wall.target("CORE"))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert got == [wall["CORE"]] * 8


def test_a_target_has_the_default_policies_on_the_walls_clock(manual_clock: ManualClock) -> None:
    breaker, limit = parts(Wall(clock=manual_clock).target("CORE"))
    assert (breaker.settings.failure_threshold, breaker.settings.reset_timeout, limit.settings) == (5, 10.0, (10, 0, 10.0))
    assert breaker.clock is limit.clock is manual_clock
    assert breaker.name == limit.name == "CORE"


def test_given_policies_are_the_targets_own() -> None:
    breaker, limit = CircuitBreaker(3), Bulkhead(2)
    assert parts(Wall().target("CORE", breaker=breaker, bulkhead=limit)) == (breaker, limit)


def test_a_row_exists_before_the_first_call() -> None:
    wall = Wall()
    wall.target("CORE")
    row = wall.snapshot()["CORE"]
    assert row.breaker is not None
    assert row.bulkhead is not None
    assert (row.name, row.breaker.state, row.breaker.started, row.bulkhead.in_flight) == ("CORE", "CLOSED", 0, 0)


# -- other settings for a known name
def test_the_same_settings_again_are_no_change() -> None:
    wall = Wall()
    first = wall.target("CORE", breaker=CircuitBreaker(3, 5.0), bulkhead=Bulkhead(2))
    breaker, limit = parts(first)
    again = wall.target("CORE", breaker=CircuitBreaker(3, 5.0), bulkhead=Bulkhead(2))
    assert again is first
    assert parts(again) == (breaker, limit)


@pytest.mark.fault("F20")
@pytest.mark.parametrize(("breaker", "limit", "words"), [
    (CircuitBreaker(3), None, r"\(failure_threshold 3 instead of 5\)"),
    (CircuitBreaker(3, 1.0), None, r"\(failure_threshold 3 instead of 5, reset_timeout 1.0 instead of 10.0\)"),
    (CircuitBreaker(counts_as_failure=OSError), None, r"\(other rules in counts_as_failure or ignores\)"),
    (CircuitBreaker(counts_as_failure=on_result(bool)), Bulkhead(), r"\(other rules in counts_as_failure or ignores\)"),
    (None, Bulkhead(20), r"\(max_concurrent 20 instead of 10\)"),
    (CircuitBreaker(3), Bulkhead(max_queue=5), r"\(failure_threshold 3 instead of 5, max_queue 5 instead of 0\)"),
])
def test_other_settings_for_a_known_name_are_an_error_that_names_them(
    breaker: CircuitBreaker | None, limit: Bulkhead | None, words: str
) -> None:
    wall = Wall()
    core = wall.target("CORE")
    old = [policy.settings for policy in parts(core)]
    with pytest.raises(ConfigError, match=rf"^target 'CORE' is known with other settings {words}: ask .* replace=True$"):
        wall.target("CORE", breaker=breaker, bulkhead=limit)
    assert [policy.settings for policy in parts(core)] == old


@pytest.mark.fault("F20")
def test_replace_changes_the_settings_and_keeps_state_counters_and_guards(manual_clock: ManualClock) -> None:
    wall = Wall(clock=manual_clock)
    core = wall.target("CORE")
    breaker, limit = parts(core)
    guarded = core(fail)
    for _ in range(2):
        with pytest.raises(ConnectionError):
            guarded()
    same = wall.target("CORE", breaker=CircuitBreaker(3, 2.0), bulkhead=Bulkhead(1), replace=True)
    assert same is core
    assert parts(core) == (breaker, limit)
    assert (breaker.failures, breaker.started, limit.completed) == (2, 2, 2)
    running = Caller(limit)
    with pytest.raises(BulkheadFullError):
        guarded()
    running.leave()
    with pytest.raises(ConnectionError):
        guarded()
    assert (breaker.state, breaker.retry_at) == ("OPEN", 2.0)
    wall.target("CORE", breaker=CircuitBreaker(3, 60.0), replace=True)
    assert (breaker.state, breaker.retry_at, limit.settings.max_concurrent) == ("OPEN", 2.0, 1)


def test_replace_takes_other_rules_too() -> None:
    wall = Wall()
    guarded = wall.target("CORE", breaker=CircuitBreaker(1))(fail)
    wall.target("CORE", breaker=CircuitBreaker(1, counts_as_failure=ValueError), replace=True)
    for _ in range(3):
        with pytest.raises(ConnectionError):
            guarded()
    assert parts(wall["CORE"])[0].state == "CLOSED"


def test_replace_for_a_new_name_makes_it() -> None:
    assert parts(Wall().target("CORE", bulkhead=Bulkhead(3), replace=True))[1].max_concurrent == 3


# -- listening
def test_a_listener_hears_of_targets_there_are_and_of_those_to_come(manual_clock: ManualClock) -> None:
    wall = Wall(clock=manual_clock)
    core = wall.target("CORE")
    heard: list[tuple[str, str, str]] = []

    def listener(event: Event) -> None:
        assert isinstance(event, StateChanged)
        heard.append((event.target, event.old, event.new))

    wall.listen(listener)
    claim = wall.target("CLAIM")
    break_down(core)
    break_down(claim)
    manual_clock.advance(10.0)
    core.call(int)
    assert heard == [
        ("CORE", "CLOSED", "OPEN"), ("CLAIM", "CLOSED", "OPEN"),
        ("CORE", "OPEN", "HALF_OPEN"), ("CORE", "HALF_OPEN", "CLOSED"),
    ]


def test_a_listener_may_ask_the_wall(manual_clock: ManualClock) -> None:
    wall = Wall(clock=manual_clock)
    seen: list[int] = []

    def listener(event: Event) -> None:
        wall.target(f"after {event.target}")
        seen.append(len(wall.snapshot()))

    wall.listen(listener)
    break_down(wall.target("CORE"))
    assert seen == [2]


# -- many
def test_a_thousand_targets_are_listed_while_others_come_and_calls_go_on(fast_switching: None) -> None:
    wall = Wall()
    for i in range(1000):
        wall.target(f"T{i}")
    ended = threading.Event()
    calls: list[int] = []

    def traffic() -> None:
        i = 0
        while not ended.is_set():
            calls.append(wall.target(f"new {i}").call(int, "1"))
            i += 1

    thread = threading.Thread(target=traffic)
    thread.start()
    try:
        for _ in range(5):
            rows = wall.snapshot()
            assert len(rows) >= 1000
            assert [rows[f"T{i}"].name for i in (0, 500, 999)] == ["T0", "T500", "T999"]
        until(lambda: calls)
    finally:
        ended.set()
        thread.join(30)
    assert sum(calls) == len(calls)


def test_listing_takes_no_lock_of_the_wall() -> None:
    """Who lists is not stopped by who registers, nor the other way round."""
    wall = Wall()
    wall.target("CORE")
    with wall._lock:
        assert list(wall.snapshot()) == ["CORE"]
        assert wall["CORE"].call(int) == 0
