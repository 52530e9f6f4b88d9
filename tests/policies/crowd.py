"""A crowd of threads that step off together, round after round, and one of tasks; every wait has an end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

import pytest

from seawall import CircuitBreaker, CircuitOpenError
from seawall.policies.states import BreakerSettings

LONGEST = 60.0  # s; a crowd that waits longer than this is stuck


def in_step(count: int, rounds: int, act: Callable[[int, int], None], between: Callable[[int], None]) -> None:
    """Run ``act(round, who)`` in ``count`` threads at the same moment, and ``between(round)`` alone after each round."""
    errors: list[BaseException] = []
    done = 0

    def alone() -> None:
        nonlocal done
        if done:
            between(done - 1)
        done += 1

    gate = threading.Barrier(count, action=alone, timeout=LONGEST)

    def run(who: int) -> None:
        try:
            for number in range(rounds):
                gate.wait()
                act(number, who)
            gate.wait()
        except threading.BrokenBarrierError:
            pass  # somebody else has something to say
        except BaseException as error:
            errors.append(error)
            gate.abort()

    threads = [threading.Thread(target=run, args=(who,)) for who in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * LONGEST)
    if errors:
        raise errors[0]
    assert done == rounds + 1, "a round did not end in time"


class NoLock:
    """Stands in for a lock and keeps nobody out."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None: ...


class Hesitant(BreakerSettings):
    """Settings that let other threads run at the worst moment: a trial is granted, and not yet on the list."""

    pause: Callable[[], None]

    def lease(self) -> float:
        self.pause()
        return super().lease()


class Rush:
    """``count`` callers at once at a half-open breaker. A trial stays out until each caller knows his answer."""

    def __init__(self, count: int, new_event: Callable[[], Any]) -> None:
        self.count, self.all_know = count, new_event()
        self.ran: list[int] = []
        self.refused: list[int] = []

    def know(self, answers: list[int]) -> None:
        answers.append(1)
        if len(self.ran) + len(self.refused) >= self.count:
            self.all_know.set()

    def trial(self) -> None:
        self.know(self.ran)
        assert self.all_know.wait(LONGEST)

    async def atrial(self) -> None:
        self.know(self.ran)
        await self.all_know.wait()

    def by_call(self, breaker: CircuitBreaker) -> None:
        breaker.call(self.trial)

    def by_decorator(self, breaker: CircuitBreaker) -> None:
        breaker(self.trial)()

    def by_block(self, breaker: CircuitBreaker) -> None:
        with breaker:
            self.trial()

    def by_allow(self, breaker: CircuitBreaker) -> None:
        if not breaker.allow():
            raise CircuitOpenError("", "allow() said no", "", None)
        self.trial()
        breaker.record_success()

    def enter(self, form: Callable[[CircuitBreaker], None], breaker: CircuitBreaker) -> None:
        try:
            form(breaker)
        except CircuitOpenError:
            self.know(self.refused)


FORMS = pytest.mark.parametrize("form", [Rush.by_allow, Rush.by_call, Rush.by_decorator, Rush.by_block])
