"""Any callable is guarded, in any form, and stays what it was: kind, name, signature, arguments, result, error."""

from __future__ import annotations

import asyncio
import functools
import inspect
import pickle
import types
import xmlrpc.client
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any
from unittest.mock import AsyncMock

import pytest

from seawall import Bulkhead, CircuitBreaker, CircuitOpenError, Target, on_result
from seawall.guard import Guarded
from tests.aio import run_async
from tests.clock import ManualClock
from tests.guard.both import FORMS

shared = CircuitBreaker(2, 10.0, ManualClock(), name="CORE")
pytestmark = pytest.mark.req("LIB-1")


@pytest.fixture
def breaker(manual_clock: ManualClock) -> CircuitBreaker:
    return CircuitBreaker(2, 10.0, manual_clock, name="CORE")


@shared
def at_module_level(a: int, b: str = "b", *rest: int, key: bool = False, **more: object) -> tuple[object, ...]:
    """What it does."""
    return (a, b, rest, key, more)


class Dependency:
    """Something that is called, in every way there is."""

    def __init__(self, failing: bool = False) -> None:
        self.failing = failing

    def result(self, *args: object, **kwargs: object) -> Any:
        if self.failing:
            raise ConnectionError("down")
        return (args, kwargs)

    async def aresult(self, *args: object, **kwargs: object) -> Any:
        await asyncio.sleep(0)
        return self.result(*args, **kwargs)

    def items(self, *args: object, **kwargs: object) -> Generator[Any, None, None]:
        yield self.result(*args, **kwargs)

    async def aitems(self, *args: object, **kwargs: object) -> AsyncGenerator[Any, None]:
        yield await self.aresult(*args, **kwargs)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self.result(*args, **kwargs)


class AsyncDependency(Dependency):
    async def __call__(self, *args: object, **kwargs: object) -> Any:
        return await self.aresult(*args, **kwargs)


class ItemsDependency(Dependency):
    def __call__(self, *args: object, **kwargs: object) -> Generator[Any, None, None]:
        return (yield from self.items(*args, **kwargs))


def plain(dependency: Dependency) -> Callable[..., Any]:
    def function(*args: object, **kwargs: object) -> Any:
        return dependency.result(*args, **kwargs)

    return function


def coroutine(dependency: Dependency) -> Callable[..., Any]:
    async def function(*args: object, **kwargs: object) -> Any:
        return await dependency.aresult(*args, **kwargs)

    return function


SUBJECTS: dict[str, Callable[[bool], Callable[..., Any]]] = {
    "function": lambda failing: plain(Dependency(failing)),
    "coroutine function": lambda failing: coroutine(Dependency(failing)),
    "generator function": lambda failing: Dependency(failing).items,
    "async generator function": lambda failing: Dependency(failing).aitems,
    "bound method": lambda failing: Dependency(failing).result,
    "bound coroutine method": lambda failing: Dependency(failing).aresult,
    "partial": lambda failing: functools.partial(plain(Dependency(failing))),
    "partial of a partial of a coroutine function":
        lambda failing: functools.partial(functools.partial(coroutine(Dependency(failing)))),
    "partial of a coroutine method": lambda failing: functools.partial(Dependency(failing).aresult),
    "partial of a generator function": lambda failing: functools.partial(Dependency(failing).items),
    "callable object": lambda failing: Dependency(failing),
    "object with async __call__": lambda failing: AsyncDependency(failing),
    "partial of an object with async __call__": lambda failing: functools.partial(AsyncDependency(failing)),
    "object with a generator for __call__": lambda failing: ItemsDependency(failing),
    "mock of a coroutine function":
        lambda failing: AsyncMock(side_effect=ConnectionError) if failing else AsyncMock(return_value=((1,), {"k": 2})),
}


def outcome_of(value: Any) -> Any:
    """Drive whatever kind of thing a call gave to its end."""
    if inspect.isasyncgen(value):
        async def collect() -> list[Any]:
            return [item async for item in value]

        first, = run_async(collect())
        return first
    if inspect.isgenerator(value):
        first, = value
        return first
    return run_async(value) if inspect.iscoroutine(value) else value


def forms(guard: Guarded, fn: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    return {"decorator": guard(fn), "call": lambda *args, **kwargs: guard.call(fn, *args, **kwargs)}


@pytest.mark.fault("F02", "F09")
@pytest.mark.parametrize("form", ["decorator", "call"])
@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_callable_is_guarded_in_both_forms(subject: str, form: str, breaker: CircuitBreaker) -> None:
    working, failing = (forms(breaker, SUBJECTS[subject](fails))[form] for fails in (False, True))
    assert outcome_of(working(1, k=2)) == ((1,), {"k": 2})
    for failures in (1, 2):
        with pytest.raises(ConnectionError):
            outcome_of(failing(1))
        assert breaker.failures == failures
    with pytest.raises(CircuitOpenError):
        outcome_of(working(1))
    assert (breaker.state, breaker.started, breaker.rejected) == ("OPEN", 3, 1)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_what_is_guarded_stays_of_its_kind(subject: str, breaker: CircuitBreaker) -> None:
    fn = SUBJECTS[subject](False)
    guarded = breaker(fn)
    inner = fn
    while isinstance(inner, functools.partial):
        inner = inner.func
    one = inner if inspect.isroutine(inner) or isinstance(inner, AsyncMock) else type(inner).__call__
    for kind in (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
        assert kind(guarded) == kind(one)


def test_name_docstring_signature_and_attributes_are_kept(breaker: CircuitBreaker) -> None:
    def transfer(amount: int, /, to: str, *, fast: bool = False) -> str:
        """Move money."""
        return f"{amount} {to} {fast}"

    transfer.route = "/transfer"  # type: ignore[attr-defined]  # what frameworks put there
    guarded = breaker(transfer)
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__", "route"):
        assert getattr(guarded, name) == getattr(transfer, name)
    assert inspect.signature(guarded) == inspect.signature(transfer)
    assert inspect.unwrap(guarded) is transfer
    assert guarded(1, to="x", fast=True) == "1 x True"


def test_arguments_and_result_pass_unchanged() -> None:
    assert at_module_level(1, "c", 3, 4, key=True, self=5, fn=6) == (1, "c", (3, 4), True, {"self": 5, "fn": 6})
    result = object()
    assert shared.call(lambda fn, self: (fn, self), fn=1, self=2) == (1, 2)
    assert shared(lambda: result)() is result


def test_a_guarded_function_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(at_module_level)) is at_module_level


@pytest.mark.req("LIB-4")
def test_the_error_of_a_failed_call_passes_unchanged_the_one_that_trips_included(breaker: CircuitBreaker) -> None:
    error, cause = ConnectionError("down"), OSError("because")

    def call() -> None:
        raise error from cause

    for _ in range(2):
        with pytest.raises(ConnectionError) as caught:
            breaker.call(call)
        assert caught.value is error
        assert (error.__cause__, error.__context__, hasattr(error, "__notes__")) == (cause, None, False)
    assert breaker.state == "OPEN"


class Account:
    """Methods of every sort under one breaker."""

    def __init__(self, number: int) -> None:
        self.number = number

    @shared
    def read(self) -> int:
        return self.number

    @staticmethod
    @shared
    def static(value: int) -> int:
        return value

    @classmethod
    @shared
    def named(cls, value: int) -> tuple[str, int]:
        return cls.__name__, value

    @property
    @shared
    def balance(self) -> int:
        return self.number * 2


def test_methods_bind_and_static_and_class_methods_are_guarded_below_their_decorator() -> None:
    before, account = shared.started, Account(7)
    assert (account.read(), Account.read(account), account.static(1), Account.static(2)) == (7, 7, 1, 2)
    assert (account.named(3), Account.named(4), account.balance) == (("Account", 3), ("Account", 4), 14)
    assert shared.started == before + 7


@pytest.mark.fault("F09")
@pytest.mark.parametrize(("subject", "advice"), [
    (staticmethod(len), "cannot guard a staticmethod object: write its decorator above the guard"),
    (vars(Account)["named"], "cannot guard a classmethod object"),
    (property(len), "cannot guard a property object"),
    (functools.partialmethod(len), "cannot guard a partialmethod object"),
    (functools.cached_property(len), "it is not callable. Guard the function that makes it"),
    (Account, r"cannot guard the class Account: guard its methods, or calls to it by .call\(Account, ...\)"),
    (7, "cannot guard 7: it is not callable"),
    (None, "cannot guard None"),
    (types.coroutine(lambda: (yield)), "made by types.coroutine: guard the coroutine function that awaits it"),
])
def test_what_cannot_be_guarded_is_refused_at_decoration(subject: Any, advice: str, breaker: CircuitBreaker) -> None:
    with pytest.raises(TypeError, match=advice):
        breaker(subject)


def test_a_class_can_be_called_behind_the_policies(breaker: CircuitBreaker) -> None:
    assert breaker.call(Account, 3).number == 3
    assert breaker.call(len, "abc") == 3
    assert breaker.started == 2


@pytest.mark.fault("F02")
@pytest.mark.parametrize("form", ["decorator", "plain", "star", "call"])
def test_a_proxy_that_has_every_attribute_is_a_plain_callable(form: str, breaker: CircuitBreaker) -> None:
    """A method of an XML-RPC proxy makes a method of any name it is asked for, ``__code__`` and ``__name__`` included."""

    class Transport(xmlrpc.client.Transport):
        def request(self, *args: object, **kwargs: object) -> Any:
            if breaker.started > 1:
                raise ConnectionError
            return (42,)

    add: Any = xmlrpc.client.ServerProxy("http://127.0.0.1/", transport=Transport()).add
    if form == "call":
        call: Any = functools.partial(breaker.call, add)
    else:
        call = breaker(add) if form == "decorator" else FORMS[form](breaker, add)
    assert call(1, 2) == 42
    with pytest.raises(ConnectionError):
        call(1, 2)
    assert (breaker.started, breaker.failures) == (2, 1)
    if form != "call":
        assert (call.__wrapped__, type(call.__name__)) == (add, str)


def test_acall_awaits_whatever_the_call_gives(breaker: CircuitBreaker) -> None:
    async def work(value: int) -> int:
        if value < 0:
            raise ConnectionError
        return value

    async def main() -> None:
        assert await breaker.acall(work, 1) == 1
        assert await breaker.acall(lambda: work(2)) == 2
        for _ in range(2):
            with pytest.raises(ConnectionError):
                await breaker.acall(work, value=-1)
        with pytest.raises(CircuitOpenError):
            await breaker.acall(work, 3)

    run_async(main())
    assert (breaker.started, breaker.rejected) == (4, 1)


def test_a_failing_result_is_a_failure_and_still_returned(manual_clock: ManualClock) -> None:
    breaker = CircuitBreaker(2, 10.0, manual_clock, counts_as_failure=on_result(lambda status: status >= 500))
    assert [breaker.call(lambda: 503), breaker(lambda: 200)(), breaker.call(lambda: 500)] == [503, 200, 500]
    assert (breaker.state, breaker.failures) == ("CLOSED", 1)

    async def status() -> int:
        return 500

    assert run_async(breaker(status)()) == 500
    with pytest.raises(CircuitOpenError, match="last result"):
        breaker.call(lambda: 200)


def test_blocks_and_generators_have_no_result_to_judge(manual_clock: ManualClock, caplog: pytest.LogCaptureFixture) -> None:
    breaker = CircuitBreaker(1, 10.0, manual_clock, counts_as_failure=on_result(lambda answer: answer.status >= 500))
    with breaker:
        pass
    assert outcome_of(breaker(Dependency().items)(1)) == ((1,), {})
    assert outcome_of(breaker(Dependency().aitems)()) == ((), {})
    assert (breaker.state, caplog.records) == ("CLOSED", [])


def test_one_guard_over_many_functions_is_one_breaker_under_one_name(breaker: CircuitBreaker) -> None:
    first, second = breaker(Dependency(failing=True)), breaker(plain(Dependency(failing=True)))
    for guarded in (first, second):
        with pytest.raises(ConnectionError):
            guarded()
    with pytest.raises(CircuitOpenError, match="CORE is open: 2 failures in a row"):
        first()


def test_a_call_takes_no_trial_before_it_has_a_place(manual_clock: ManualClock) -> None:
    breaker, limit = CircuitBreaker(1, 10.0, manual_clock), Bulkhead(1)
    target = Target("CORE", breaker=breaker, bulkhead=limit)
    breaker.record_failure()
    manual_clock.set(10)
    assert limit.try_acquire()
    with pytest.raises(Exception, match="is full"):
        target.call(lambda: None)
    assert (breaker.state, breaker.snapshot().trials) == ("OPEN", 0)
    limit.release()
    target.call(lambda: None)
    assert (breaker.state, limit.in_flight) == ("CLOSED", 0)
