"""A retry repeats what pays: few times, spread at random, within the caller's time; and says why it stopped."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
from types import SimpleNamespace
from typing import Any

import pytest

import seawall
from seawall import (
    CircuitBreaker,
    CircuitOpenError,
    ConfigError,
    Retry,
    RetryBudget,
    RetryEnded,
    RetryScheduled,
    Target,
    budget,
    on_result,
)
from seawall.drivers.threads import perform
from seawall.plan import AttemptsNote, Ended, retrying
from seawall.policies.retry_settings import RetrySettings
from tests.clock import ManualClock


class Play:
    """A retry whose attempts are scripted, and whose waits move a clock."""

    def __init__(self, *ends: Any, seconds: float = 0.0, random: float = 1.0, **settings: Any) -> None:
        self.clock, self.ends, self.seconds = ManualClock(), list(ends), seconds
        self.waits: list[float] = []
        settings.setdefault("retry_budget", None)
        self.retry = Retry(clock=self.clock, random=lambda: random, name="CORE", **settings)
        self.events: list[Any] = []
        self.retry.listen(self.events.append)

    def attempt(self, number: int) -> Any:
        self.clock.advance(self.seconds)
        end = self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]
        if isinstance(end, BaseException):
            raise end
        return end

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.clock.advance(seconds)

    def run(self, allowed: float | None = None) -> Any:
        if allowed is None:
            return perform(retrying(self.retry), self.attempt, self.sleep)
        with budget(allowed, clock=self.clock) as deadline:
            return perform(retrying(self.retry, deadline), self.attempt, self.sleep)

    @property
    def reason(self) -> str | None:
        return next((event.reason for event in self.events if isinstance(event, RetryEnded)), None)


NO = ConnectionError("no")


def asking(seconds: Any, **headers: str) -> Exception:
    error = ConnectionError("busy")
    error.retry_after = seconds  # type: ignore[attr-defined]
    error.response = SimpleNamespace(headers=headers)  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize(("ends", "settings", "allowed", "waits", "reason"), [
    (["ok"], {}, None, [], None),
    ([NO, "ok"], {}, None, [0.05], "success"),
    ([NO], {}, None, [0.05, 0.1], "attempts"),
    ([NO], {"max_attempts": 1}, None, [], "attempts"),
    ([NO], {"max_attempts": 6, "multiplier": 4.0}, None, [0.05, 0.2, 0.8, 2.0, 2.0], "attempts"),
    ([NO], {"max_attempts": 9}, 0.2, [0.05, 0.1], "budget"),
    ([NO], {"max_attempts": 9, "min_ms": 100}, 0.2, [0.05], "budget"),
    ([NO], {"retry_budget": RetryBudget(0.0, 0)}, None, [], "retry_budget"),
    ([ValueError("bug of the data")], {"on": ConnectionError}, None, [], None),
    ([NO, ValueError("other")], {"on": ConnectionError}, None, [0.05], "other"),
    ([TypeError("a mistake")], {}, None, [], None),
    ([TypeError("a mistake"), "ok"], {"on": TypeError}, None, [0.05], "success"),
    ([CircuitOpenError("CORE", "is open", "OPEN", 1.0)], {}, None, [], None),
    ([NO, CircuitOpenError("CORE", "is open", "OPEN", 1.0)], {}, None, [0.05], "refused"),
    ([NO, seawall.NoBudgetError("CORE", "was not called", "", None)], {}, None, [0.05], "budget"),
    ([asking(0.7), "ok"], {}, None, [0.7], "success"),
    ([asking(3600)], {}, 5.0, [], "pushback"),
    ([asking(30)], {}, 5.0, [], "budget"),
    ([asking(-3), "ok"], {}, None, [0.05], "success"),
    ([asking("soon"), "ok"], {}, None, [0.05], "success"),
    ([asking(None, **{"Retry-After": "2"}), "ok"], {}, None, [2.0], "success"),
    ([asking(None, **{"Retry-After": "garbage"}), "ok"], {}, None, [0.05], "success"),
    ([asking(None, **{"Retry-After": "-5"}), "ok"], {}, None, [0.05], "success"),
    ([asking(None, **{"Retry-After": "Mon, 30 Nov 2026 10:00:07 GMT", "Date": "Mon, 30 Nov 2026 10:00:00 GMT"}), "ok"], {},
     None, [7.0], "success"),
    ([asking(61)], {"max_retry_after": 61}, None, [61.0, 61.0], "attempts"),
    ([asking(float("inf"))], {}, None, [], "pushback"),
    ([asking(float("nan")), "ok"], {}, None, [0.05], "success"),
    ([asking(True), "ok"], {}, None, [0.05], "success"),
    ([asking(None, **{"retry-after": "2"}), "ok"], {}, None, [2.0], "success"),
    ([NO, "ok"], {"hint": lambda _: -1.0}, None, [0.05], "success"),
    ([NO, "ok"], {"hint": lambda _: float("nan")}, None, [0.05], "success"),
    ([NO, "ok"], {"hint": lambda _: "7"}, None, [0.05], "success"),
    ([NO, "ok"], {"hint": lambda _: 7}, None, [7], "success"),
    ([NO], {"hint": lambda _: 10**400}, None, [], "pushback"),
    ([NO, "ok"], {"max_attempts": 5000, "base_delay": 0, "multiplier": 1e300}, None, [0.0], "success"),
])  # fmt: skip
@pytest.mark.fault("F30")
def test_what_follows_from_how_the_attempts_end(
    ends: list[Any], settings: dict[str, Any], allowed: float | None, waits: list[float], reason: str | None
) -> None:
    play = Play(*ends, **settings)
    with contextlib.suppress(Exception):
        play.run(allowed)
    assert play.waits == pytest.approx(waits)
    assert play.reason == reason
    assert len([event for event in play.events if isinstance(event, RetryScheduled)]) == len(waits)


def test_a_refusal_in_the_middle_leaves_the_error_of_the_last_attempt_that_ran() -> None:
    play = Play(NO, CircuitOpenError("CORE", "is open", "OPEN", 1.0))
    with pytest.raises(ConnectionError) as caught:
        play.run()
    assert "(refused: CORE is open; next trial in 1 s)" in caught.value.__notes__[-1]


def test_the_last_error_has_one_note_however_often_it_is_raised() -> None:
    one = ConnectionError("always the same object")
    one.add_note("mine")
    for _ in range(3):
        play = Play(one, max_attempts=7)
        with pytest.raises(ConnectionError) as caught:
            play.run()
        assert caught.value is one
        assert [type(note) for note in one.__notes__] == [str, AttemptsNote]
    assert one.__notes__[1].startswith("CORE: gave up after attempt 7 of 7 (attempts); 3 earlier; attempt 4: Conn")
    assert pickle.loads(pickle.dumps(one)).__notes__ == one.__notes__


def test_a_result_that_is_not_wanted_is_repeated_and_the_last_one_returned() -> None:
    play = Play(503, 503, 500, on=on_result(lambda status: status >= 500))
    assert play.run() == 500
    assert play.reason == "attempts"
    assert Play(503, 200, on=on_result(lambda status: status >= 500)).run() == 200


def test_what_another_loop_has_given_up_on_is_not_repeated_unless_it_is_named() -> None:
    def inner() -> None:
        Retry(2, base_delay=0).call(fail)

    def wrapped() -> None:
        try:
            inner()
        except ConnectionError as error:
            raise RuntimeError("of our own") from error

    calls: list[int] = []

    def fail() -> None:
        calls.append(1)
        raise ConnectionError

    for outer, fn, expected in (
        (Retry(3, base_delay=0), inner, 2), (Retry(3, base_delay=0), wrapped, 2),
        (Retry(3, base_delay=0, on=ConnectionError), inner, 6),
        (Retry(3, base_delay=0, on=lambda error: isinstance(error, RuntimeError)), wrapped, 6),
    ):  # fmt: skip
        calls.clear()
        with pytest.raises((ConnectionError, RuntimeError)):
            outer.call(fn)
        assert len(calls) == expected


@pytest.mark.parametrize(("jitter", "chance", "waits"), [
    ("full", 0.0, [0.0, 0.0, 0.0]), ("full", 0.5, [0.5, 1.0, 2.0]), ("full", 1.0, [1.0, 2.0, 4.0]),
    ("equal", 0.0, [0.5, 1.0, 2.0]), ("equal", 1.0, [1.0, 2.0, 4.0]),
    ("decorrelated", 0.0, [1.0, 1.0, 1.0]), ("decorrelated", 1.0, [3.0, 5.0, 5.0]),
    (None, 0.3, [1.0, 2.0, 4.0]),
])  # fmt: skip
def test_how_the_wait_is_drawn(jitter: str | None, chance: float, waits: list[float]) -> None:
    play = Play(NO, max_attempts=4, base_delay=1.0, max_delay=5.0, jitter=jitter, random=chance)
    with pytest.raises(ConnectionError):
        play.run()
    assert play.waits == waits


def test_without_a_base_no_attempt_waits_however_high_the_power() -> None:
    assert [Retry(5000, base_delay=0, multiplier=1e300).ceiling(attempt) for attempt in (1, 2, 4999)] == [0.0, 0.0, 0.0]
    assert Retry(5000, base_delay=0.1, multiplier=1e300).ceiling(4999) == 2.0


def test_a_hint_is_looked_for_on_the_response_too_where_the_error_has_headers_of_its_own() -> None:
    error = asking(None, **{"Retry-After": "3"})
    error.headers = {"X-Of-The-Error": "1"}  # type: ignore[attr-defined]
    play = Play(error, "ok")
    play.run()
    assert play.waits == [3.0]


def test_faults_in_the_settings_are_all_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        Retry(0, base_delay=-1, max_delay=float("nan"), multiplier=0.5, jitter="some", min_ms=-2, max_retry_after=-1)
    words = ("max_attempts", "base_delay", "max_delay", "multiplier", "jitter", "min_ms", "max_retry_after")
    assert [word for word in words if word not in str(caught.value)] == []
    with pytest.raises(ConfigError, match="max_delay"):
        Retry(max_delay=10**400)  # no float can hold it
    with pytest.raises(ConfigError, match="shorter than base_delay"):
        Retry(base_delay=3.0)
    with pytest.raises(TypeError, match="@again"):
        Retry(print)  # type: ignore[arg-type]


def test_what_cannot_begin_anew_is_refused() -> None:
    def generator() -> Any:
        yield 1

    retry = Retry()
    for wrong in (lambda: retry(generator), lambda: retry.call(generator), retry.__enter__):
        with pytest.raises(TypeError, match=r"cannot (be repeated|repeat)|cannot repeat"):
            wrong()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit])
def test_an_end_from_outside_is_never_repeated(kind: type[BaseException]) -> None:
    play = Play(kind())
    with pytest.raises(kind):
        play.run()
    assert (play.waits, play.events) == ([], [])


def test_numbers_and_settings_can_be_read_and_changed_in_place() -> None:
    retry = Retry(2, base_delay=0, name="CORE", retry_budget=RetryBudget())
    works = [False]

    @retry
    def fn() -> str:
        if not works[0]:
            raise ConnectionError
        return "ok"

    with pytest.raises(ConnectionError):
        fn()
    works[0] = True
    assert fn() == "ok"
    seen = retry.snapshot()
    assert (seen.name, seen.max_attempts, seen.calls, seen.retries, seen.stopped) == ("CORE", 2, 2, 1, {"attempts": 1})
    works[0] = False
    retry.configure(RetrySettings(4, 0.0))
    with pytest.raises(ConnectionError):
        fn()
    assert retry.retries == 4


def test_a_listener_and_a_hint_that_fail_change_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: Any) -> float:
        raise ValueError("broken")

    play = Play(NO, "ok", hint=broken)
    play.retry.listen(broken)
    assert play.run() == "ok"
    assert len(caplog.records) == 3  # the hint, and the listener at each of two events


def test_in_a_target_its_calls_are_counted_by_the_breaker() -> None:
    target = seawall.Target("CORE", breaker=seawall.CircuitBreaker(), retry=Retry(3, base_delay=0))
    outcomes = [ConnectionError(), "ok", "ok"]

    @target
    def fn() -> Any:
        end = outcomes.pop(0)
        if isinstance(end, Exception):
            raise end
        return end

    assert (fn(), fn()) == ("ok", "ok")
    assert target.breaker is not None
    assert target.retry is not None
    assert (target.breaker.started, target.retry.calls, target.retry.retries) == (3, 2, 1)


def test_a_plan_may_be_told_that_something_must_not_be_done_twice() -> None:
    play = Play(NO)
    plan = retrying(play.retry, repeatable=lambda ended: False)
    with pytest.raises(ConnectionError):
        perform(plan, play.attempt, play.sleep)
    assert (play.waits, play.reason) == ([], "not_idempotent")


def test_ended_gives_its_result_or_raises_its_error_as_it_is() -> None:
    assert Ended(3).unwrap() == 3
    error = KeyError("x")
    with pytest.raises(KeyError) as caught:
        Ended(None, error).unwrap()
    assert caught.value is error


# -- counts: what a breaker counts for both
def _always(error: Exception) -> Any:
    def fail() -> None:
        raise error

    return fail


def test_a_breaker_that_has_counted_before_lifts_no_cap() -> None:
    breaker = CircuitBreaker(10**9)
    for _ in range(1000):
        breaker.call(int)
    shared = RetryBudget(0.2, 0)
    target = Target("CORE", breaker=breaker, retry=Retry(3, base_delay=0.0, retry_budget=shared))
    assert target.retry is not None
    assert (target.retry.calls, shared.calls) == (0, 0)
    for _ in range(50):
        with pytest.raises(ConnectionError):
            target.call(_always(ConnectionError("no")))
    assert breaker.started - 1000 <= 60
    alone = Retry(3, base_delay=0.0, retry_budget=None)
    Target("CORE", breaker=breaker, retry=alone).call(int)
    assert alone.calls == 1


@pytest.mark.parametrize("shared", [None, RetryBudget()])
def test_a_repeat_that_is_refused_takes_no_call_out_of_the_count(shared: RetryBudget | None) -> None:
    breaker, again = CircuitBreaker(1), Retry(3, base_delay=0.0, retry_budget=shared)
    target = Target("CORE", breaker=breaker, retry=again)
    for _ in range(5):
        with pytest.raises(ConnectionError):
            target.call(_always(ConnectionError("no")))
        breaker.reset()
    assert (again.calls, again.retries, again.snapshot().stopped) == (5, 5, {"refused": 5})


# -- ends in the middle
def test_a_call_that_is_cut_in_the_wait_is_told_of() -> None:
    play = Play(NO)

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        perform(retrying(play.retry), play.attempt, interrupted)
    assert (play.reason, play.retry.snapshot().stopped) == ("cut", {"cut": 1})
    assert [event.attempts for event in play.events if isinstance(event, RetryEnded)] == [1]


def test_a_call_that_is_cut_in_a_further_attempt_is_told_of() -> None:
    play = Play(NO, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        play.run()
    assert [(event.reason, event.attempts) for event in play.events if isinstance(event, RetryEnded)] == [("cut", 2)]


# -- errors and results of others that cannot be printed, or take no notes
class Mute(Exception):
    def __str__(self) -> str:
        raise IndexError("tuple index out of range")


class Stiff(Exception):
    def __setattr__(self, name: str, value: object) -> None:
        raise TypeError("frozen")


class Noted(Exception):
    __notes__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("error", [Mute(), Stiff(), Noted()], ids=lambda error: type(error).__name__)
def test_an_error_that_is_of_no_help_comes_out_all_the_same(error: Exception) -> None:
    play = Play(error)
    with pytest.raises(type(error)) as raised:
        play.run()
    assert raised.value is error
    assert play.reason == "attempts"


def test_a_result_that_cannot_be_printed_is_repeated_all_the_same() -> None:
    class Odd:
        def __repr__(self) -> str:
            raise AttributeError

    assert Play(Odd(), "good", on=on_result(lambda result: result != "good")).run() == "good"


def test_the_response_of_an_error_may_ask_by_an_attribute() -> None:
    error = ConnectionError("busy")
    error.response = SimpleNamespace(retry_after=99.0)  # type: ignore[attr-defined]
    play = Play(error)
    with pytest.raises(ConnectionError):
        play.run()
    assert play.reason == "pushback"
