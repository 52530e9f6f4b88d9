"""Whatever is done to a breaker, in whatever order, it says what a slow, obvious model says."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from seawall import CircuitBreaker, CircuitOpenError, Mode, StateChanged
from seawall.events import Event
from seawall.outcome import Outcome
from seawall.policies.states import BreakerSettings, Token, Trial
from tests.clock import ManualClock
from tests.policies.breaker_model import Call, Model, Numbers

# Whole numbers, so that sums are exact and instants meet: a lease ends as an open time ends as a mode expires.
SECONDS = st.sampled_from([0, 1, 2, 3, 5, 8, 13, 60, 4000])
NUMBERS = st.builds(
    Numbers, threshold=st.integers(1, 4), reset_timeout=st.sampled_from([0, 1, 3, 10]), at_once=st.integers(1, 3),
    to_close=st.integers(1, 3), lease=st.sampled_from([1, 2, 5, 900]), attempt_limit=st.sampled_from([None, 2, 4]),
)


def settings_of(numbers: Numbers) -> BreakerSettings:
    return BreakerSettings(numbers.threshold, numbers.reset_timeout, numbers.at_once, numbers.to_close, numbers.lease,
                           numbers.attempt_limit)


class BreakerMachine(RuleBasedStateMachine):
    """Calls are kept by number, and real tokens in one place only: forgetting one there loses it for good."""

    @initialize(numbers=NUMBERS)
    def start(self, numbers: Numbers) -> None:
        self.clock = ManualClock()
        self.model = Model(numbers)
        self.breaker = CircuitBreaker(*settings_of(numbers)[:2], self.clock, name="CORE", **{
            key: value for key, value in settings_of(numbers)._asdict().items()
            if key not in ("failure_threshold", "reset_timeout")})
        self.calls: list[tuple[Token, Call]] = []
        self.told: list[Event] = []
        self.breaker.listen(self.told.append)

    @rule(seconds=SECONDS)
    def let_time_pass(self, seconds: float) -> None:
        self.model.now = self.clock.advance(seconds)

    @rule(remaining=st.sampled_from([None, None, 1, 3, 5]), take=st.sampled_from([True, True, True, False]))
    def ask(self, remaining: float | None, take: bool) -> None:
        call = self.model.ask(remaining, take=take)
        if call is None:
            with pytest.raises(CircuitOpenError) as caught:
                self.breaker.admit(remaining) if take else self.breaker.check(remaining)
            wait = caught.value.retry_after
            assert (float("inf") if wait is None else wait) == self.model.wait()
        elif not take:
            self.breaker.check(remaining)
        else:
            token = self.breaker.admit(remaining)
            assert isinstance(token, Trial) is (call.kind == "trial")
            self.calls.append((token, call))

    @precondition(lambda self: self.calls)
    @rule(which=st.integers(0, 99), outcome=st.sampled_from([*Outcome, Outcome.FAILURE, Outcome.CUT]),
          ago=st.sampled_from([None, 0, 1, 4, 20, -5]))
    def settle(self, which: int, outcome: Outcome, ago: float | None) -> None:
        token, call = self.calls[which % len(self.calls)]
        if call.settled:
            with pytest.raises(RuntimeError, match="settled before"):
                self.breaker.settle(token, outcome)
            return
        began = None if ago is None else self.model.now - ago
        self.model.settle(call, outcome.value, began)
        self.breaker.settle(token, outcome, "E901", began=began)
        if call.kind != "trial":  # only a trial knows that it has been settled
            self.calls.remove((token, call))

    @precondition(lambda self: self.calls)
    @rule(which=st.integers(0, 99))
    def lose(self, which: int) -> None:
        self.model.lose(self.calls.pop(which % len(self.calls))[1])

    @rule(times=st.integers(1, 3))
    def allow(self, times: int) -> None:
        for _ in range(times):
            assert self.breaker.allow() is (self.model.ask(by_hand=True) is not None)

    @rule(outcome=st.sampled_from(["success", "failure", "failure"]), times=st.integers(1, 4))
    def report(self, outcome: str, times: int) -> None:
        for _ in range(times):
            self.model.report(outcome)
            self.breaker.record_success() if outcome == "success" else self.breaker.record_failure("E902")

    @rule(mode=st.sampled_from([*Mode, *[Mode.ENFORCE] * 4]), expires_in=st.sampled_from([None, 1, 3, 50]))
    def set_mode(self, mode: Mode, expires_in: float | None) -> None:
        self.model.let_time_pass()
        self.model.enter_mode(mode.value, float("inf") if expires_in is None else self.model.now + expires_in)
        self.breaker.set_mode(mode, expires_in=expires_in)

    @rule()
    def reset(self) -> None:
        self.model.let_time_pass()
        self.model.become("CLOSED", self.model.now)
        self.breaker.reset()

    @rule(numbers=NUMBERS)
    def configure(self, numbers: Numbers) -> None:
        self.model.let_time_pass()
        self.model.numbers = numbers
        self.breaker.configure(settings_of(numbers))

    @invariant()
    def both_say_the_same(self) -> None:
        model, shot = self.model, self.breaker.snapshot()
        assert shot == self.breaker.snapshot()
        assert (shot.state, shot.retry_at, shot.failures, shot.trials, shot.mode) == (
            model.state, model.retry_at, model.row, len(model.trials), model.mode_now())
        assert (shot.started, shot.rejected, shot.would_reject) == (model.started, model.rejected, model.would_reject)
        assert (shot.retry_after, shot.trial_due) == (model.wait(), model.trial_due())
        assert (self.breaker.state, self.breaker.mode, self.breaker.failures, self.breaker.retry_after) == (
            shot.state, shot.mode, shot.failures, shot.retry_after)

    @invariant()
    def each_change_is_told_once_and_in_order(self) -> None:
        told = [(e.old, e.new, e.at) for e in self.told if isinstance(e, StateChanged)]
        assert told == self.model.changes
        assert [old for old, _, _ in told] == ["CLOSED", *(new for _, new, _ in told)][:len(told)]


TestBreaker = pytest.mark.req("HUB-1", "HUB-2", "LIB-3")(BreakerMachine.TestCase)
TestBreaker.settings = settings(max_examples=150, stateful_step_count=40)
