"""Faults that others shipped around retries and time limits: F16, F27, F28, F29, F31, F32, F37."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from seawall import BudgetHeaders, Bulkhead, CircuitBreaker, Retry, Target, Timeout, budget, remaining
from seawall.drivers.threads import perform
from seawall.plan import retrying
from tests.aio import run_async
from tests.clock import ManualClock
from tests.drivers.virtual import run_virtual, the_loop
from tests.guard.both import Form, every_form


@every_form
@pytest.mark.fault("F16")
def test_attempts_are_counted_one_by_one_and_a_success_forgets_them(form: Form) -> None:
    """Two failures, then a success, in each of several calls in turn: five in a row never come together."""
    breaker = CircuitBreaker(5, 60.0)
    stack = Target("CORE", breaker=breaker, retry=Retry(3, base_delay=0, retry_budget=None))
    number = 0

    def fn() -> int:
        nonlocal number
        number += 1
        if number % 3:
            raise ConnectionError
        return number

    guarded = form(stack, fn)
    assert [guarded() for _ in range(10)] == [3 * n for n in range(1, 11)]
    seen = breaker.snapshot()
    assert (seen.state, seen.failures, seen.failed, seen.started) == ("CLOSED", 0, 20, 30)


@pytest.mark.fault("F27")
def test_no_further_attempt_is_made_once_the_limit_has_passed() -> None:
    clock, calls = ManualClock(), []

    def lasts_long(number: int) -> None:
        calls.append(number)
        clock.advance(5.0)
        raise ConnectionError

    with budget(2.0, clock=clock) as deadline, pytest.raises(ConnectionError) as caught:
        perform(retrying(Retry(3, base_delay=0, clock=clock), deadline), lasts_long, clock.advance)
    assert calls == [1]
    assert "(budget)" in caught.value.__notes__[-1]


@pytest.mark.fault("F28")
def test_each_attempt_is_told_what_is_left_for_it() -> None:
    """250 ms in all, 100 an attempt, each of which runs into its limit: 100, 100 and 50 are sent on."""
    told: list[str] = []
    limit, wire = Timeout(0.1, name="CORE"), BudgetHeaders()
    core = Target("CORE", retry=Retry(5, base_delay=0, retry_budget=None), timeout=limit)

    @core
    async def call() -> None:
        told.append(wire.outgoing(limit.seconds)["X-Budget-Ms"])
        await asyncio.sleep(30)

    async def main() -> None:
        with budget(0.25, clock=the_loop().time), pytest.raises(TimeoutError):
            await call()

    run_virtual(main())
    assert told[:2] == ["100", "100"]
    assert [int(ms) for ms in told[2:]] == [pytest.approx(50, abs=1)]


@pytest.mark.fault("F29")
def test_the_ceiling_of_a_huge_attempt_number_is_the_cap() -> None:
    retry = Retry(3, multiplier=2.0, max_delay=2.0)
    assert [retry.ceiling(number) for number in (1, 2, 2000, 10**9)] == [0.05, 0.1, 2.0, 2.0]


@pytest.mark.fault("F31")
def test_threads_in_one_retried_function_count_for_themselves() -> None:
    retry = Retry(3, base_delay=0, retry_budget=None)
    together = threading.Barrier(4)
    counts: dict[int, int] = {}

    @retry
    def fn() -> None:
        me = threading.get_ident()
        counts[me] = counts.get(me, 0) + 1
        together.wait(30)
        raise ConnectionError

    def work() -> None:
        with pytest.raises(ConnectionError):
            fn()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(counts.values()) == [3, 3, 3, 3]


@pytest.mark.fault("F32")
def test_while_a_task_waits_for_its_next_attempt_others_go_on() -> None:
    bulkhead = Bulkhead(1)
    core = Target("CORE", bulkhead=bulkhead, retry=Retry(2, base_delay=2.0, max_delay=2.0, jitter=None))
    seen: list[Any] = []

    @core
    async def fails() -> None:
        raise ConnectionError

    async def main() -> None:
        task = asyncio.ensure_future(fails())
        for _ in range(3):
            await asyncio.sleep(0.5)
            seen.append((task.done(), bulkhead.in_flight))
        with pytest.raises(ConnectionError):
            await task
        seen.append(the_loop().time() >= 2.0)

    run_virtual(main())
    assert seen == [(False, 0)] * 3 + [True]  # nor does it keep its place meanwhile


@every_form
@pytest.mark.fault("F37")
@pytest.mark.parametrize("names", [("CORE", "CORE", "CORE"), ("", "", ""), ("A", "B", "C")], ids="-".join)
def test_three_layers_of_three_are_three_calls(
    form: Form, names: tuple[str, str, str], caplog: pytest.LogCaptureFixture
) -> None:
    counts = [0, 0, 0]
    retries = [Retry(3, base_delay=0, name=name, retry_budget=None) for name in names]

    def layer(depth: int) -> Any:
        def fn() -> Any:
            counts[depth] += 1
            if depth == 2:
                raise ConnectionError
            return layer(depth + 1)()

        return form(retries[depth], fn)

    def alayer(depth: int) -> Any:
        async def fn() -> Any:
            counts[depth] += 1
            if depth == 2:
                raise ConnectionError
            return await alayer(depth + 1)()

        return form(retries[depth], fn)

    for call in (layer(0), lambda: run_async(alayer(0)())):
        counts[:] = [0, 0, 0]
        caplog.clear()
        with caplog.at_level(logging.WARNING), pytest.raises(ConnectionError):
            call()
        assert counts[2] == 3
        if names[0] == "CORE":
            assert counts == [3, 3, 3]  # the inner loops run once, and the outermost repeats
            assert all("runs once inside <Retry CORE 3 attempts>" in record.message for record in caplog.records)
    if names[0] == "CORE":
        retries[1]._warned.clear()
        with pytest.raises(ConnectionError):
            layer(0)()
        assert caplog.records


@pytest.mark.fault("F37")
def test_a_budget_is_what_ends_even_a_loop_without_end() -> None:
    clock = ManualClock()
    retry = Retry(10**9, jitter=None, clock=clock, retry_budget=None)
    with budget(1.0, clock=clock) as deadline, pytest.raises(ConnectionError):
        perform(retrying(retry, deadline), lambda _: _fail(), clock.advance)
    assert 0.0 < clock() <= 1.0
    assert remaining() is None


def _fail() -> None:
    raise ConnectionError
