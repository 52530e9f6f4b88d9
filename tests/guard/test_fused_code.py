"""The generated code: star form, tracebacks, one code object a shape, clean errors, nothing kept alive; doing without."""

from __future__ import annotations

import functools
import gc
import linecache
import operator
import os
import subprocess
import sys
import traceback
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from seawall import Bulkhead, BulkheadFullError, CircuitBreaker, CircuitOpenError, Target
from seawall.guard import forms
from seawall.guard.fused import _SHAPES, STAR, _maker, signature
from seawall.guard.kinds import FUNCTION, Kind
from tests.clock import ManualClock
from tests.guard.both import Form, driven, every_form, every_kind, of_kind

pytestmark = pytest.mark.req("LIB-1")


def both(clock: ManualClock | None = None, threshold: int = 2, limit: int = 1) -> Target:
    breaker = CircuitBreaker(threshold, 10.0, clock or ManualClock())
    return Target("CORE", breaker=breaker, bulkhead=Bulkhead(limit))


class Client:
    def method(self, a: int, b: int = 2) -> tuple[int, int]:
        return a, b

    def __call__(self, a: int, b: int = 2) -> tuple[int, int]:
        return a, b


# -- the star form
@pytest.mark.parametrize(("fn", "args", "kwargs", "result"), [
    (len, ("abc",), {}, 3),
    (max, (1, 3), {}, 3),
    (sorted, ([2, 1],), {"reverse": True}, [2, 1]),
    ("a-b".split, ("-",), {}, ["a", "b"]),
    (functools.partial(Client().method, 1), (), {"b": 3}, (1, 3)),
    (functools.partial(int, base=2), ("11",), {}, 3),
    (Client(), (1,), {}, (1, 2)),
    (Client().method, (1, 3), {}, (1, 3)),
    (operator.itemgetter(1), ("abc",), {}, "b"),
    (functools.lru_cache(lambda a: a), (1,), {}, 1),
])
def test_what_has_no_code_of_its_own_is_guarded_with_star_arguments(fn: Any, args: Any, kwargs: Any, result: Any) -> None:
    target = both()
    guarded = forms.fused(target, fn)
    assert guarded(*args, **kwargs) == result
    assert guarded.__code__ is forms.fused(both(), len).__code__
    assert target.snapshot().breaker.started == target.snapshot().bulkhead.completed == 1  # type: ignore[union-attr]


def test_a_function_gets_star_arguments_where_it_is_asked() -> None:
    guarded = forms.fused(both(), Client.method, star=True)
    assert guarded(Client(), 1, b=3) == (1, 3)
    assert guarded.__code__.co_argcount == 0


# -- arguments
@every_kind
def test_wrong_arguments_ask_no_policy_in_the_exact_form(kind: Kind, manual_clock: ManualClock) -> None:
    target = both(manual_clock, threshold=1)
    guarded: Any = forms.fused(target, of_kind(kind, lambda: None))
    assert target.breaker is not None
    for _ in ("closed", "open", "a trial is due"):
        before = target.snapshot()
        with pytest.raises(TypeError, match=r"\(\) got an unexpected keyword argument 'no_such'"):
            guarded(no_such=1)  # at the call, as the function itself: not when it is awaited or begun
        assert target.snapshot() == before
        target.breaker.record_failure()
        manual_clock.advance(5.0)


# -- tracebacks
def raises(reason: str) -> None:
    raise ConnectionError(reason)


def test_a_traceback_shows_the_generated_line() -> None:
    guarded = forms.fused(both(), raises)
    linecache.checkcache()  # what a traceback does before it is printed
    with pytest.raises(ConnectionError) as caught:
        guarded("down")
    mine, generated, theirs = traceback.extract_tb(caught.value.__traceback__)
    assert (generated.filename, generated.line) == ("<seawall guard function bh (reason)>", "result = fn(reason)")
    assert (mine.name, theirs.name) == ("test_a_traceback_shows_the_generated_line", "raises")


# -- one code object a shape
def test_functions_of_one_shape_share_one_code_object() -> None:
    def one(a: int, b: int = 1) -> int:
        return a + b

    def two(a: str, b: str) -> str:
        return a * 2 + b

    first, second = forms.fused(both(), one), forms.fused(both(), two)
    assert first.__code__ is second.__code__
    assert (first(1), second("a", "b")) == (2, "aab")
    others = [
        forms.fused(CircuitBreaker(), one), forms.fused(Bulkhead(), one), forms.fused(both(), one, star=True),
        forms.fused(both(), lambda a, c: a), forms.fused(both(), lambda a, *, b: a), forms.fused(both(), lambda a, *b: a),
    ]  # fmt: skip
    assert len({first.__code__, *(other.__code__ for other in others)}) == 7


def test_a_shape_is_compiled_once_and_only_so_many_are_kept() -> None:
    _maker.cache_clear()
    for _ in range(3):
        forms.fused(both(), raises)
    assert (_maker.cache_info().misses, _maker.cache_info().maxsize) == (1, _SHAPES)
    for number in range(_SHAPES):
        _maker(FUNCTION, "", f"p{number}", f"p{number}", (f"p{number}",))
    assert _maker.cache_info().currsize == _SHAPES
    assert forms.fused(both(), len)("abc") == 3


def test_a_signature_is_read_from_the_code() -> None:
    assert signature(raises.__code__) == ("reason", "reason", ("reason",))
    assert signature((lambda a, /, b, *, c: 0).__code__) == ("a, /, b, *, c", "a, b, c=c", ("a", "b", "c"))
    assert signature((lambda *args, **kwargs: 0).__code__) == STAR


# -- errors
def refused(guarded: Callable[[], Any], kind: Kind) -> BaseException:
    with pytest.raises((CircuitOpenError, BulkheadFullError)) as caught:
        driven(kind, guarded())
    return caught.value


@every_form
@every_kind
def test_a_refusal_has_no_context_that_would_be_printed_with_it(
    form: Form, kind: Kind, manual_clock: ManualClock
) -> None:
    target = both(manual_clock, threshold=1)
    guarded, errors = form(target, of_kind(kind, lambda: None)), []
    breaker, limit = target.breaker, target.bulkhead
    assert breaker is not None
    assert limit is not None
    assert limit.try_acquire()
    errors.append(refused(guarded, kind))
    breaker.record_failure()
    errors.append(refused(guarded, kind))
    manual_clock.advance(10.0)
    errors.append(refused(guarded, kind))  # a trial is due, and there is no place
    limit.release()
    trial = breaker.admit()
    errors.append(refused(guarded, kind))
    breaker.set_mode("FORCED_OPEN")
    errors.append(refused(guarded, kind))
    assert [type(error) for error in errors] == [
        BulkheadFullError, CircuitOpenError, BulkheadFullError, CircuitOpenError, CircuitOpenError]
    assert [(error.__context__, error.__cause__) for error in errors] == [(None, None)] * 5
    breaker.discard(trial)


@every_form
@every_kind
def test_an_error_passes_as_it_is(form: Form, kind: Kind) -> None:
    error, cause = ConnectionError("down"), OSError("because")

    def act() -> None:
        raise error from cause

    guarded = form(both(), of_kind(kind, act))
    for _ in range(2):
        with pytest.raises(ConnectionError) as caught:
            driven(kind, guarded())
        assert caught.value is error
        assert (error.__cause__, error.__context__, hasattr(error, "__notes__")) == (cause, None, False)


# -- nothing kept alive
@pytest.fixture
def no_collector() -> Iterator[None]:
    """Only counting references: what needs the collector is a cycle."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Watched:
    """Stands in a frame; its death is the frame's."""


@every_form
@every_kind
@pytest.mark.usefixtures("no_collector")
def test_a_guarded_function_that_is_dropped_is_gone(form: Form, kind: Kind) -> None:
    target = both()
    fn = of_kind(kind, Watched)
    guarded = form(target, fn)
    driven(kind, guarded())
    alive = [weakref.ref(guarded), weakref.ref(fn)]
    del guarded, fn
    assert [ref() for ref in alive] == [None, None]
    policies: list[weakref.ref[Any]] = [weakref.ref(target.breaker), weakref.ref(target.bulkhead)]
    del target
    assert [ref() for ref in policies] == [None, None]


@every_form
@every_kind
@pytest.mark.usefixtures("no_collector")
def test_an_error_that_has_been_dealt_with_leaves_no_frame_alive(form: Form, kind: Kind, manual_clock: ManualClock) -> None:
    alive: list[weakref.ref[Any]] = []
    target = both(manual_clock)

    def act() -> None:
        local = Watched()
        alive.append(weakref.ref(local))
        raise ConnectionError

    guarded = form(target, of_kind(kind, act))
    for _ in range(2):  # the second one trips
        try:
            driven(kind, guarded())
        except ConnectionError:
            pass
    manual_clock.advance(10.0)
    try:
        driven(kind, guarded())  # a trial
    except ConnectionError:
        pass
    assert [ref() for ref in alive] == [None] * 3


# -- without it
@pytest.mark.parametrize("value", ["1", "yes", "0", "", None])
def test_one_variable_of_the_environment_forces_the_plain_form(value: str | None) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("SEAWALL_PLAIN", None)
    if value is not None:
        environment["SEAWALL_PLAIN"] = value
    program = "import seawall; print(seawall.CircuitBreaker()(lambda a: a).__code__.co_varnames[0])"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60,
                          check=True)
    assert done.stdout.strip() == ("args" if value in ("1", "yes") else "a")


def test_the_decorator_takes_the_form_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    for forced, first in ((True, "args"), (False, "reason")):
        monkeypatch.setattr(forms, "FORCED_PLAIN", forced)
        assert both()(raises).__code__.co_varnames[0] == first
