"""A slow, obvious breaker, written from the rules and not from the code: the machine in test_breaker_model compares both.

It knows calls and keeps each in a plain list; nothing is shared, cached or short-cut. What it says is the specification.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Literal

Kind = Literal["counted", "trial", "uncounted"]


@dataclass(eq=False)
class Call:
    """One admitted call. ``counted``: let through while closed; ``uncounted``: let through by OBSERVE or DISABLED."""

    kind: Kind
    lease_ends: float = inf
    by_hand: bool = False
    settled: bool = False
    void: bool = False


@dataclass
class Numbers:
    """The settings the model is about."""

    threshold: int
    reset_timeout: float
    at_once: int
    to_close: int
    lease: float
    attempt_limit: float | None


@dataclass
class Model:
    """The rules of section "Breaker", one after another."""

    numbers: Numbers
    now: float = 0.0
    state: str = "CLOSED"
    mode: str = "ENFORCE"
    mode_ends: float = inf
    retry_at: float = 0.0
    counted: list[Call] = field(default_factory=list)  # those whose report still matters
    trials: list[Call] = field(default_factory=list)  # out, oldest first
    row: int = 0  # failures in a row
    cuts: list[float] = field(default_factory=list)  # when the cut calls since the last answer began
    good_trials: int = 0
    neutral_trials: int = 0
    leases_ended: int = 0
    started: int = 0
    rejected: int = 0
    would_reject: int = 0
    changes: list[tuple[str, str, float]] = field(default_factory=list)

    # -- what may be read
    def mode_now(self) -> str:
        return "ENFORCE" if self.now >= self.mode_ends else self.mode

    def next_trial(self) -> float:
        """-inf: at any time."""
        if self.state == "OPEN":
            return self.retry_at
        if self.state == "HALF_OPEN" and len(self.trials) >= self.numbers.at_once:
            return min(call.lease_ends for call in self.trials)
        return -inf

    def wait(self) -> float:
        mode = self.mode_now()
        if mode == "FORCED_OPEN":
            return max(0.0, self.mode_ends - self.now, self.next_trial() - self.now)
        return max(0.0, self.next_trial() - self.now) if mode == "ENFORCE" else 0.0

    def trial_due(self) -> bool:
        return (self.state != "CLOSED" and self.mode_now() in ("ENFORCE", "OBSERVE") and self.now >= self.next_trial())

    # -- changes of state
    def become(self, new: str, at: float) -> None:
        for call in self.counted + self.trials:
            call.void = True
        self.counted, self.trials, self.cuts = [], [], []
        self.good_trials = self.neutral_trials = 0
        if new == "OPEN":
            self.retry_at = at + self.numbers.reset_timeout
        if new == "CLOSED":
            self.row, self.leases_ended, self.retry_at = 0, 0, 0.0
        if new != self.state:
            self.changes.append((self.state, new, at))
        self.state = new

    def let_time_pass(self) -> None:
        ended = [call.lease_ends for call in self.trials if call.lease_ends <= self.now]
        if ended:
            self.leases_ended += 1
            self.row += 1
            self.become("OPEN", min(ended))
        if self.now >= self.mode_ends:
            self.enter_mode("ENFORCE", inf)

    def enter_mode(self, mode: str, ends: float) -> None:
        if "DISABLED" in (mode, self.mode):
            for call in self.counted + self.trials:
                call.void = True
            self.counted, self.trials, self.cuts = [], [], []
            if self.state == "CLOSED":
                self.row = 0
        self.mode, self.mode_ends = mode, inf if mode == "ENFORCE" else ends
        if mode == "FORCED_CLOSED" and self.state != "CLOSED":
            self.become("CLOSED", self.now)

    # -- asking
    def ask(self, remaining: float | None = None, by_hand: bool = False, take: bool = True) -> Call | None:
        """The call, or ``None``: refused. Without ``take`` only the answer counts."""
        self.let_time_pass()
        call = self.decide(remaining, by_hand, take)
        if call is None:
            self.rejected += 1
        elif take:
            self.started += 1
        return call

    def decide(self, remaining: float | None, by_hand: bool, take: bool) -> Call | None:
        if self.mode == "DISABLED":
            return Call("uncounted")
        if self.mode == "FORCED_OPEN":
            return None
        if self.state == "CLOSED":
            call = Call("counted")
            if take:
                self.counted.append(call)
            return call
        if self.trial_due() and self.can_last_a_trial(remaining):
            return self.take_trial(by_hand) if take else Call("uncounted")
        if self.mode == "OBSERVE":
            self.would_reject += take
            return Call("uncounted")
        return None

    def can_last_a_trial(self, remaining: float | None) -> bool:
        limit = self.numbers.attempt_limit
        return limit is None or remaining is None or remaining >= limit or self.now >= self.retry_at + limit

    def take_trial(self, by_hand: bool) -> Call:
        if self.state == "OPEN":
            self.become("HALF_OPEN", self.now)
        lease = self.numbers.lease
        for _ in range(self.leases_ended):
            lease = max(self.numbers.lease, min(3600.0, lease * 2))
        call = Call("trial", self.now + lease, by_hand)
        self.trials.append(call)
        return call

    # -- reports
    def settle(self, call: Call, outcome: str, began: float | None = None) -> None:
        if call.kind == "trial":
            self.let_time_pass()
            call.settled = True
            if not call.void:
                self.end_trial(call, outcome)
        elif call.kind == "counted" and not call.void:
            self.counted.remove(call)
            self.count(outcome, began)

    def report(self, outcome: str) -> None:
        """Without a token: closed counts, half-open settles the oldest trial taken by hand, open is void."""
        self.let_time_pass()
        if self.mode == "DISABLED":
            return
        if self.state == "CLOSED":
            self.count(outcome, None)
        elif by_hand := [call for call in self.trials if call.by_hand]:
            self.settle(by_hand[0], outcome)

    def count(self, outcome: str, began: float | None) -> None:
        if outcome in ("success", "failure", "ignored"):
            self.cuts = []
        if outcome == "success":
            self.row = 0
        if outcome == "failure":
            self.row += 1
            if self.row >= self.numbers.threshold:
                self.trip(self.row)
        if outcome == "cut":
            self.pile_up(self.now if began is None else min(began, self.now))

    def pile_up(self, began: float) -> None:
        limit, numbers = self.numbers.attempt_limit, self.numbers
        if len(self.cuts) < numbers.threshold:  # more of them would say nothing new
            self.cuts.append(began)
        self.cuts[0] = min(self.cuts[0], began)
        old_enough = self.now - self.cuts[0] >= (numbers.reset_timeout if limit is None else limit)
        if len(self.cuts) >= numbers.threshold and old_enough:
            self.trip(self.row + len(self.cuts))

    def trip(self, row: int) -> None:
        self.let_time_pass()
        if self.mode == "FORCED_CLOSED":
            self.row = min(self.row, self.numbers.threshold)
        else:
            self.row = row
            self.become("OPEN", self.now)

    def end_trial(self, call: Call, outcome: str) -> None:
        self.trials.remove(call)
        self.leases_ended = 0
        if outcome == "failure":
            self.row += 1
            self.become("OPEN", self.now)
        elif outcome == "success":
            self.good_trials += 1
            self.neutral_trials = 0
            if self.good_trials >= self.numbers.to_close:
                self.become("CLOSED", self.now)
        else:
            self.neutral_trials += 1
            if self.neutral_trials >= 3:
                self.become("OPEN", self.now)

    def lose(self, call: Call) -> None:
        """Nobody holds its token any more."""
        if call in self.trials:
            self.trials.remove(call)
        if call in self.counted:
            self.counted.remove(call)
