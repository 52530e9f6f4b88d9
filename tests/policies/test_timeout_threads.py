"""A function that has not returned in time is left alone and raises; one that has is what it was without the limit."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import operator
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import Any, TypeAlias

import pytest

import seawall
from seawall import (
    CircuitBreaker,
    ConfigError,
    DeadlineExceededError,
    NoBudgetError,
    NoThreadError,
    RejectedError,
    Timeout,
    TimeoutExceededError,
)
from tests.aio import run_async
from tests.clock import ManualClock
from tests.lines import until
from tests.policies.hung import Hung, hung

__all__ = ["hung"]

Form: TypeAlias = "Callable[[Timeout, Callable[..., Any]], Callable[..., Any]]"
FORMS: list[Form] = [lambda limit, fn: limit(fn), lambda limit, fn: functools.partial(limit.call, fn)]
each_form = pytest.mark.parametrize("form", FORMS, ids=["decorated", "called"])


# -- in time
@each_form
def test_a_call_that_ends_in_time_is_what_it_was_without_the_limit(form: Form) -> None:
    def call(*args: object, **kwargs: object) -> object:
        return args, kwargs, threading.current_thread() is caller

    caller = threading.current_thread()
    limit = Timeout(30.0)
    assert form(limit, call)() == ((), {}, False)
    assert form(limit, call)(1, timeout=2, fn=3) == ((1,), {"timeout": 2, "fn": 3}, False)
    assert (limit.abandoned, limit.abandoned_total) == (0, 0)


@dataclass(frozen=True)
class FrozenError(Exception):
    """Refuses each assignment, as a frozen dataclass does."""

    number: int


@each_form
@pytest.mark.parametrize("error", [
    ZeroDivisionError(), TimeoutExceededError("other", 9.0), StopIteration(7), KeyboardInterrupt(), SystemExit(3),
    GeneratorExit(), FrozenError(1),
])
def test_the_errors_of_a_call_pass_unchanged(form: Form, error: BaseException) -> None:
    def call() -> None:
        try:
            raise LookupError
        except LookupError:
            raise error  # noqa: B904  # the context is what is looked at

    try:
        int("no number")
    except ValueError:
        with pytest.raises(type(error)) as caught:
            form(Timeout(30.0), call)()
    assert caught.value is error
    assert error.__cause__ is None
    assert isinstance(error.__context__, LookupError)


@each_form
def test_a_traceback_leads_from_the_caller_into_the_call(form: Form) -> None:
    def call() -> None:
        inner()

    def inner() -> None:
        raise OSError

    with pytest.raises(OSError, match=r"^$") as caught:
        form(Timeout(30.0), call)()
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[0] == "test_a_traceback_leads_from_the_caller_into_the_call"
    assert names[-3:] == ["run", "call", "inner"]


@pytest.mark.fault("F35")
@each_form
def test_a_call_sees_a_copy_of_its_callers_context(form: Form) -> None:
    mark: ContextVar[str] = ContextVar("mark", default="nobody's")

    def call() -> str:
        before = mark.get()
        mark.set("the call's")
        return before

    def main() -> tuple[object, str]:
        mark.set("the caller's")
        return form(Timeout(30.0), call)(), mark.get()

    assert copy_context().run(main) == ("the caller's", "the caller's")
    assert form(Timeout(30.0), mark.get)() == "nobody's"  # nothing is left over in the thread


def test_limits_nest(hung: Hung) -> None:
    outer, inner = Timeout(30.0), Timeout(0.02)

    @outer
    def call() -> str:
        with pytest.raises(TimeoutExceededError):
            inner.call(hung)
        return outer.call(str, 7)

    assert call() == "7"
    assert (outer.abandoned_total, inner.abandoned_total) == (0, 1)


# -- not in time
@pytest.mark.req("LIB-5")
@each_form
def test_a_call_that_does_not_is_abandoned_and_goes_on(form: Form, hung: Hung) -> None:
    limit = Timeout(0.05, name="CORE")
    begin = time.monotonic()
    with pytest.raises(TimeoutExceededError, match=r"^CORE: no answer within 0.05 s$") as caught:
        form(limit, hung)("late")
    assert time.monotonic() - begin >= 0.049
    assert (caught.value.target, caught.value.limit, caught.value.__context__) == ("CORE", 0.05, None)
    assert (limit.abandoned, limit.abandoned_total, hung.ended) == (1, 1, [])
    hung.let_go()
    until(lambda: not limit.abandoned)
    assert (limit.abandoned_total, hung.ended) == (1, ["late"])


def test_what_an_abandoned_call_raises_is_dropped(capfd: pytest.CaptureFixture[str]) -> None:
    def call() -> None:
        gate.wait(30)
        raise SystemExit(3)

    limit, gate = Timeout(0.01), threading.Event()
    with pytest.raises(TimeoutExceededError):
        limit.call(call)
    gate.set()
    until(lambda: not limit.abandoned)
    assert Timeout(30.0).call(str, 7) == "7"
    assert capfd.readouterr() == ("", "")


def test_each_error_is_made_afresh(hung: Hung) -> None:
    errors = set()
    for _ in range(2):
        with pytest.raises(TimeoutExceededError) as caught:
            Timeout(0.01).call(hung)
        errors.add(caught.value)
    assert len(errors) == 2


def test_the_longest_limit_there_is_is_no_error() -> None:
    assert Timeout(sys.float_info.max).call(str, 7) == "7"


def test_a_thread_whose_event_loop_is_running_is_blocked_like_by_any_function(hung: Hung) -> None:
    async def main() -> str:
        with pytest.raises(TimeoutExceededError):
            Timeout(0.01).call(hung)
        return Timeout(30.0).call(str, 7)

    assert run_async(main()) == "7"


def test_an_interrupted_caller_abandons_its_call(hung: Hung) -> None:
    """The main thread waits, as in a program that somebody stops by Ctrl-C.

    A signal that comes between the release of the GIL and the wait for a lock does not end that wait: so it is sent until
    it is seen, and answered once.
    """

    def answer(*_: object) -> None:
        if not seen.is_set():
            seen.set()
            raise KeyboardInterrupt

    def call() -> None:
        for _ in range(600):
            if seen.is_set():
                break
            signal.pthread_kill(main.ident or 0, signal.SIGINT)
            seen.wait(0.05)
        hung()

    main, seen = threading.main_thread(), threading.Event()
    assert threading.current_thread() is main
    limit = Timeout(60.0)
    before = signal.signal(signal.SIGINT, answer)
    try:
        with pytest.raises(KeyboardInterrupt):
            limit.call(call)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (limit.abandoned, limit.abandoned_total) == (1, 1)
    hung.let_go()
    until(lambda: not limit.abandoned)


# -- so many, and no more
@pytest.mark.fault("F34")
@each_form
def test_past_max_abandoned_a_call_is_refused_until_one_returns(form: Form, hung: Hung) -> None:
    limit = Timeout(0.02, name="CORE", max_abandoned=2)
    for _ in range(2):
        with pytest.raises(TimeoutExceededError):
            form(limit, hung)()
    with pytest.raises(NoThreadError) as caught:
        form(limit, pytest.fail)("it ran")
    refusal = caught.value
    assert (limit.abandoned, limit.abandoned_total) == (2, 2)
    assert str(refusal) == (
        "CORE was not called: 2 calls given up after 0.02 s still running, 2 allowed; "
        "set a timeout on the client that hangs"
    )
    assert isinstance(refusal, RejectedError)
    assert (refusal.target, refusal.retry_after) == ("CORE", None)
    assert str(pickle.loads(pickle.dumps(refusal))) == str(refusal)
    hung.let_go()
    until(lambda: not limit.abandoned)
    ran: list[None] = []
    with contextlib.suppress(TimeoutExceededError):  # a loaded machine may be late with it
        form(limit, ran.append)(None)
    until(lambda: ran)


def test_a_hung_target_takes_no_thread_from_another(hung: Hung) -> None:
    core, claim = Timeout(0.01, max_abandoned=1), Timeout(30.0, max_abandoned=1)
    with pytest.raises(TimeoutExceededError):
        core.call(hung)
    with pytest.raises(NoThreadError, match="the target was not called: 1 call given up"):
        core.call(hung)
    assert claim.call(str, 7) == "7"


def test_calls_that_run_when_the_last_place_goes_are_given_up_all_the_same(hung: Hung) -> None:
    limit = Timeout(0.2, max_abandoned=1)
    ends: list[str] = []

    def call() -> None:
        try:
            limit.call(hung)
        except TimeoutExceededError:
            ends.append("timeout")

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(ends) == limit.abandoned == limit.abandoned_total == 4


@pytest.mark.parametrize("number", [0, -1, 1.0, True, None, "2"])
def test_max_abandoned_is_a_number_of_calls(number: Any) -> None:
    with pytest.raises(ConfigError, match="max_abandoned is a number of calls, 1 or more, not"):
        Timeout(1.0, max_abandoned=number)


# -- within a budget
def test_a_shorter_budget_ends_the_waiting_and_is_what_is_blamed(hung: Hung) -> None:
    limit = Timeout(30.0)
    begin = time.monotonic()
    with seawall.budget(0.3):
        with pytest.raises(DeadlineExceededError, match="the budget of 300 ms is spent"):
            limit.call(hung)
        with pytest.raises(NoBudgetError, match="0 ms of the budget are left"):
            limit(pytest.fail)("it ran")
    assert time.monotonic() - begin >= 0.299
    assert (limit.abandoned, limit.abandoned_total) == (1, 1)


def test_a_longer_budget_changes_nothing_and_is_told_to_the_call(hung: Hung) -> None:
    limit = Timeout(0.01, name="CORE")
    with seawall.budget(60.0):
        left = limit.call(seawall.remaining)
        with pytest.raises(TimeoutExceededError, match=r"CORE: no answer within 0\.01 s"):
            limit.call(hung)
    assert left is not None
    assert 0.0 < left <= 60.0


def test_a_budget_on_another_clock_is_waited_for_in_real_seconds(manual_clock: ManualClock, hung: Hung) -> None:
    with seawall.budget(0.02, clock=manual_clock), pytest.raises(DeadlineExceededError):
        Timeout(30.0).call(hung)


# -- under a breaker
@pytest.mark.req("LIB-5")
def test_an_exceeded_limit_is_a_failure_a_refusal_and_a_spent_budget_are_not(
    manual_clock: ManualClock, hung: Hung
) -> None:
    breaker = CircuitBreaker(2, name="CORE")
    limit = Timeout(0.02, name="CORE", max_abandoned=2)

    @breaker
    @limit
    def call() -> None:
        hung()

    with pytest.raises(TimeoutExceededError):
        call()
    with seawall.budget(0.01, clock=manual_clock), pytest.raises(DeadlineExceededError):
        call()
    with pytest.raises(NoThreadError):
        call()
    assert (breaker.state, breaker.failures) == ("CLOSED", 1)
    hung.let_go()
    until(lambda: not limit.abandoned)
    hung.hold()
    with pytest.raises(TimeoutExceededError):
        call()
    assert breaker.state == "OPEN"
    assert breaker.snapshot().reason == "2 failures in a row, last TimeoutExceededError"


# -- around what
def test_the_decorator_keeps_name_docstring_and_signature() -> None:
    def call(one: int, /, two: str = "2", *, three: float) -> None:
        """What it does."""

    call.mark = 7  # type: ignore[attr-defined]
    limited: Any = Timeout(1.0)(call)
    assert (limited.__name__, limited.__doc__, limited.__module__) == ("call", "What it does.", __name__)
    assert inspect.signature(limited) == inspect.signature(call)
    assert (limited.__wrapped__, limited.mark) == (call, 7)
    assert not inspect.iscoroutinefunction(limited)
    with pytest.raises(TypeError, match="three"):
        limited(1)


def test_methods_builtins_partials_and_callable_objects_are_functions_too() -> None:
    limit = Timeout(30.0)

    class Client:
        @limit
        def get(self, work: Callable[[], object]) -> object:
            return work()

        @staticmethod
        @limit
        def static(work: Callable[[], object]) -> object:
            return work()

        @classmethod
        @limit
        def of_class(cls, work: Callable[[], object]) -> object:
            return work()

        def __call__(self, work: Callable[[], object]) -> object:
            return work()

    client = Client()
    calls: list[Callable[[Callable[[], object]], object]] = [
        client.get, Client.static, Client.of_class, limit(client), limit(operator.call), limit(functools.partial(client)),
        lambda work: limit.call(client, work), lambda work: limit.call(operator.call, work),
    ]  # fmt: skip
    for call in calls:
        assert call(lambda: 7) == 7
    assert limit.call(Client) is not client  # a class too, where it is called


def test_generators_are_refused() -> None:
    def values() -> Iterator[int]:
        yield 1

    with pytest.raises(TypeError, match=r"the generator .*Limit the calls inside it, or the function that consumes it"):
        Timeout(1.0).call(values)


def test_the_making_of_a_coroutine_is_no_call_to_limit() -> None:
    async def work() -> int:
        return 7

    limit = Timeout(30.0)
    calls: list[Callable[[], object]] = [limit(lambda: work()), lambda: limit.call(lambda: work())]
    for call in calls:
        with pytest.raises(TypeError, match=r"only the making of it was under the limit.*await limit.acall"):
            call()


def test_call_of_a_coroutine_function_is_the_limited_coroutine() -> None:
    async def main() -> None:
        assert await Timeout(30.0).call(asyncio.sleep, 0.0, 7) == 7
        with pytest.raises(TimeoutExceededError):
            await Timeout(0.01).call(asyncio.sleep, 60.0)

    run_async(main())


def test_a_block_in_a_thread_is_refused_with_a_hint() -> None:
    limit: Any = Timeout(1.0)
    with pytest.raises(TypeError, match=r"write  async with limit:  in a coroutine.*write  @limit  above it"):
        with limit:
            pytest.fail("it ran")
    with contextlib.ExitStack() as stack, pytest.raises(TypeError, match="cannot be ended"):
        stack.enter_context(limit)
