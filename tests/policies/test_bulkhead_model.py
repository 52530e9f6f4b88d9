"""Whatever is done to a bulkhead, in any order, it agrees with a slow and obvious model after every step."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule

from seawall import Bulkhead, BulkheadFullError
from seawall.policies.slots import BulkheadSettings
from tests.lines import Caller, assert_at_rest

LIMITS = st.integers(1, 4)
QUEUES = st.none() | st.integers(0, 4)


class Model:
    """Places counted with integers, the line kept as a list. ``holding`` have a place: running, or about to claim it."""

    def __init__(self, limit: int, room: int | None) -> None:
        self.limit, self.room = limit, room
        self.line: list[Caller] = []
        self.holding = self.by_hand = self.unclaimed = 0
        self.started = self.ended = self.rejected = self.admitted = self.peak = 0
        self.wakes: dict[Caller, int] = {}

    def has_room(self) -> bool:
        return self.holding < self.limit and not self.line

    def hold(self) -> None:
        self.holding += 1
        self.peak = max(self.peak, self.holding)

    def serve(self) -> None:
        """Places go to the head of the line, one by one; each one is woken once."""
        while self.line and self.holding < self.limit:
            self.wakes[self.line.pop(0)] = 1
            self.unclaimed += 1
            self.hold()

    def give_back(self) -> None:
        self.holding -= 1
        self.serve()


class Comparison(RuleBasedStateMachine):
    tickets: Bundle[Caller | None] = Bundle("tickets")
    running: Bundle[Caller | None] = Bundle("running")

    def __init__(self) -> None:
        super().__init__()
        self.limit, self.model = Bulkhead(2, max_queue=2), Model(2, 2)
        self.open: list[Caller] = []

    def entered(self) -> Caller | None:
        """Let one caller in, if the model says so; both must agree."""
        model = self.model
        if model.has_room():
            caller = Caller(self.limit)
            assert caller.ticket is None
            model.hold()
            self.start()
        elif model.room is None or len(model.line) < model.room:
            caller = Caller(self.limit)
            assert caller.in_line
            model.line.append(caller)
            model.wakes[caller] = 0
            model.admitted += 1
        else:
            with pytest.raises(BulkheadFullError):
                Caller(self.limit)
            model.rejected += 1
            return None
        self.open.append(caller)
        return caller

    def start(self) -> None:
        next(self.limit.started_ticks)
        self.model.started += 1

    @precondition(lambda self: self.model.has_room())
    @rule(target=running)
    def run(self) -> Caller:
        caller = self.entered()
        assert caller is not None
        return caller

    @precondition(lambda self: not self.model.has_room())
    @rule(target=tickets)
    def queue(self) -> Caller | None:
        return self.entered()

    @rule(ticket=consumes(tickets), target=running)
    def claim(self, ticket: Caller | None) -> Caller | None:
        """Late or in time: a waiter wakes whether it has been granted a place or not."""
        if ticket is None or ticket.ticket is None:
            return None
        if ticket in self.model.line:
            with pytest.raises(BulkheadFullError):
                ticket.claim()
            self.model.line.remove(ticket)
            self.model.rejected += 1
            return None
        ticket.claim()
        self.model.unclaimed -= 1
        self.start()
        return ticket

    @rule(ticket=consumes(tickets))
    def withdraw(self, ticket: Caller | None) -> None:
        if ticket is None or ticket.ticket is None:
            return
        ticket.withdraw()
        if ticket in self.model.line:
            self.model.line.remove(ticket)
        else:
            self.model.unclaimed -= 1
            self.model.give_back()

    @rule(caller=consumes(running))
    def leave(self, caller: Caller | None) -> None:
        if caller is None:
            return
        caller.leave()
        self.model.ended += 1
        self.model.give_back()

    @rule()
    def try_acquire(self) -> None:
        room = self.model.has_room()
        assert self.limit.try_acquire() is room
        if room:
            self.model.hold()
            self.model.by_hand += 1
            self.model.started += 1
        else:
            self.model.rejected += 1

    @precondition(lambda self: self.model.has_room())
    @rule(timeout=st.sampled_from([None, 0.0, 5.0]))
    def acquire(self, timeout: float | None) -> None:
        self.limit.acquire(timeout)
        self.model.hold()
        self.model.by_hand += 1
        self.model.started += 1

    @rule()
    def release(self) -> None:
        if not self.model.by_hand:
            with pytest.raises(ValueError, match="more often"):
                self.limit.release()
            return
        self.limit.release()
        self.model.by_hand -= 1
        self.model.ended += 1
        self.model.give_back()

    @rule(number=LIMITS, room=QUEUES)
    def configure(self, number: int, room: int | None) -> None:
        self.limit.configure(BulkheadSettings(number, room, 10.0))
        self.model.limit, self.model.room = number, room
        self.model.serve()

    @invariant()
    def agree(self) -> None:
        limit, model = self.limit, self.model
        assert (limit.in_flight, limit.waiting, limit.peak_active) == (model.holding, len(model.line), model.peak)
        assert (limit.started, limit.rejected, limit.admitted_waiters) == (model.started, model.rejected, model.admitted)
        assert model.ended - model.unclaimed <= limit.completed <= model.ended
        assert bool(limit.alert) is bool(model.line or model.holding > model.limit)
        assert limit._total == max(limit.max_concurrent, model.holding)
        assert {caller: caller.woken for caller in model.wakes} == model.wakes
        assert [caller for caller in self.open if caller.in_line] == model.line

    def teardown(self) -> None:
        for caller in self.open:
            if caller.ticket is not None:
                caller.withdraw()
            elif caller.held is not None:
                caller.leave()
        for _ in range(self.model.by_hand):
            self.limit.release()
        assert_at_rest(self.limit)


TestModel = pytest.mark.fault("F22")(Comparison.TestCase)
TestModel.settings = settings(max_examples=150, stateful_step_count=40)
