"""Random histories of a guarded target: what is done to it, and a world that plays them and writes down every answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias

from hypothesis import strategies as st

from seawall import Bulkhead, CircuitBreaker, DeadlineExceededError, Mode, RejectedError, Target, on_result
from seawall.events import Event
from seawall.guard.kinds import ASYNC_GENERATOR, COROUTINE, FUNCTION, GENERATOR, Kind
from seawall.outcome import Rules, to_rules
from seawall.policies.slots import BulkheadSettings
from seawall.policies.states import BreakerSettings
from tests.clock import ManualClock
from tests.guard.both import Form

Step: TypeAlias = "tuple[Any, ...]"


class Odd(ValueError):
    """One error that some rules ignore."""


@dataclass(frozen=True)
class Script:
    """What a guarded function does: ``inside``, ``pauses`` times a wait or an item, then its end."""

    inside: tuple[Step, ...]
    pauses: int
    end: Any  # a result, or the class of an error
    stubborn: bool  # goes on when an error is thrown in, and fails when it is closed


ERRORS: list[Any] = [
    ConnectionError, Odd, TypeError, DeadlineExceededError, asyncio.CancelledError, KeyboardInterrupt,
    RejectedError, GeneratorExit, StopIteration,
]  # fmt: skip
RULES: list[Rules] = [
    to_rules(Exception, ()),
    to_rules((ConnectionError, TypeError), Odd),
    to_rules([Exception, on_result(lambda result: result == "bad")], ()),
    to_rules(lambda error: isinstance(error, ConnectionError), lambda error: isinstance(error, Odd)),
]
WRONG: list[tuple[tuple[Any, ...], dict[str, Any]]] = [((), {}), ((1, 2), {}), ((), {"script": 1}), ((1,), {"no": 2})]

settings_of_breakers = st.builds(
    BreakerSettings, st.integers(1, 3), st.sampled_from([0, 3]), st.integers(1, 2), st.integers(1, 2),
    st.sampled_from([None, 2]), st.sampled_from([None, 2]),
)  # fmt: skip
settings_of_bulkheads = st.builds(BulkheadSettings, st.integers(1, 2), st.just(0), st.just(None))


CALLS = ["call"] * 12
BY_HAND = [
    "advance", "advance", "advance", "configure", "configure", "set mode", "resize", "reset", "record failure",
    "record success", "allow", "try acquire", "release",
]  # fmt: skip
UNDER_WAY = ["go on"] * 5 + ["throw", "throw", "close"]
ARGUMENTS: dict[str, st.SearchStrategy[tuple[Any, ...]]] = {
    "advance": st.tuples(st.sampled_from([1, 2, 3, 3, 60])),
    "configure": st.tuples(settings_of_breakers, st.integers(0, len(RULES) - 1)),
    "set mode": st.tuples(st.sampled_from([*Mode, *[Mode.ENFORCE] * 5]), st.sampled_from([None, 1, 3])),
    "resize": st.tuples(settings_of_bulkheads),
    "go on": st.tuples(st.integers(0, 3)),
    "throw": st.tuples(st.integers(0, 3), st.sampled_from(ERRORS[:-2])),
    "close": st.tuples(st.integers(0, 3)),
    "wrong": st.tuples(st.integers(0, len(WRONG) - 1)),
}
ENDS = st.sampled_from(["good"] * 5 + ["bad"] * 3 + [ConnectionError] * 6 + ERRORS)


@st.composite
def _steps(draw: st.DrawFn, names: list[str], depth: int, most: int) -> tuple[Step, ...]:
    steps: list[Step] = []
    for _ in range(draw(st.integers(most // 2, most))):
        name = draw(st.sampled_from(names))
        if name == "call":
            inside = draw(_steps(names, depth - 1, 3)) if depth and not draw(st.integers(0, 4)) else ()
            steps.append((name, Script(inside, draw(st.sampled_from([0, 0, 1, 2])), draw(ENDS), draw(st.booleans()))))
        else:
            steps.append((name, *draw(ARGUMENTS.get(name, st.just(())))))
    return tuple(steps)


def histories(kind: Kind, wrong: bool = False) -> st.SearchStrategy[tuple[Step, ...]]:
    """Steps one after the other; a call may take some of them inside itself, calls of the same function included."""
    names = CALLS + BY_HAND + (UNDER_WAY if kind is not FUNCTION else []) + ["wrong"] * 5 * wrong
    return _steps(names, depth=2, most=16)


def made(error: Any) -> BaseException:
    args = ("X", "is full", "", 1.5) if error is RejectedError else ("down",)
    new: BaseException = error(*args)
    return new


class Rests:
    """Awaits once: whoever drives the coroutine has the turn."""

    def __await__(self) -> Generator[str, str, str]:
        return (yield "rests")


class World:
    """One target, one guarded function before it, and the record of all that was answered, counted and told."""

    def __init__(self, form: Form, kind: Kind, setup: str) -> None:
        self.clock, self.kind = ManualClock(), kind
        breaker = CircuitBreaker(2, 3.0, self.clock) if "b" in setup else None
        limit = Bulkhead(2, clock=self.clock) if "h" in setup else None
        self.target = Target("CORE", breaker=breaker, bulkhead=limit)
        self.record: list[Any] = []
        self.target.listen(self._told)
        functions = {
            FUNCTION: self._function, COROUTINE: self._coroutine, GENERATOR: self._generator,
            ASYNC_GENERATOR: self._async_generator,
        }  # fmt: skip
        inner: Any = functions[kind].__func__  # type: ignore[attr-defined]  # a method: the function is what has a code
        self.guarded = form(self.target, inner)
        self.depth = 0  # plays inside plays
        self.flows: list[Any] = []  # coroutines and generators under way

    def _told(self, event: Event) -> None:
        self.record.append(event)

    # -- what is guarded
    def _function(self, script: Script) -> Any:
        self.play(script.inside)
        return self._end(script)

    async def _coroutine(self, script: Script) -> Any:
        self.play(script.inside)
        for _ in range(script.pauses):
            try:
                self.record.append(await Rests())
            except Exception:
                if not script.stubborn:
                    raise
        return self._end(script)

    def _generator(self, script: Script) -> Generator[Any, Any, Any]:
        self.play(script.inside)
        for number in range(script.pauses):
            try:
                self.record.append((yield number))
            except GeneratorExit:
                if script.stubborn:
                    raise ConnectionError("while it was closed") from None
                raise
            except Exception:
                if not script.stubborn:
                    raise
        return self._end(script)

    async def _async_generator(self, script: Script) -> AsyncGenerator[Any, Any]:
        self.play(script.inside)
        for number in range(script.pauses):
            try:
                self.record.append((yield number))
            except GeneratorExit:
                if script.stubborn:
                    raise ConnectionError("while it was closed") from None
                raise
            except Exception:
                if not script.stubborn:
                    raise
        self._end(script)

    def _end(self, script: Script) -> Any:
        if isinstance(script.end, type):
            raise made(script.end)
        return script.end

    # -- what is done to it
    def play(self, steps: Any) -> None:
        self.depth += 1
        for name, *rest in steps:
            try:
                answer = self._done(name.replace(" ", "_"), rest)
            except BaseException as error:
                answer = (type(error), str(error), getattr(error, "retry_after", None), type(error.__context__),
                          getattr(error, "value", None))
            self.record.append((name, answer, self.target.snapshot()))
        self.depth -= 1

    def _done(self, name: str, rest: list[Any]) -> Any:
        for does in (getattr(self, f"do_{name}", None), getattr(self.target.breaker, name, None),
                     getattr(self.target.bulkhead, name, None)):  # fmt: skip
            if does is not None:
                return does(*rest)
        return "no such policy"

    def finish(self) -> list[Any]:
        """Close what is under way; the whole record."""
        self.play([("close", 0)] * len(self.flows))
        return self.record

    def do_call(self, script: Script, *wrong: Any) -> Any:
        value = self.guarded(self, script)
        if self.kind is FUNCTION:
            return value
        self.flows.append(value)
        return self._go_on(-1, "send", None)

    def do_wrong(self, which: int) -> Any:
        args, kwargs = WRONG[which]
        value = self.guarded(self, *args, **kwargs) if which else self.guarded()
        if self.kind is FUNCTION:
            return value
        self.flows.append(value)
        return self._go_on(-1, "send", None)

    def _go_on(self, which: int, way: str, *what: Any) -> Any:
        if not self.flows:
            return "none"
        flow = self.flows.pop(which if which < 0 else which % len(self.flows))
        if self.kind is ASYNC_GENERATOR:
            answer = self._driven(getattr(flow, {"send": "asend", "throw": "athrow", "close": "aclose"}[way])(*what))
        else:
            answer = getattr(flow, way)(*what)
        if way != "close":
            self.flows.append(flow)  # it has not ended, or it would have raised
        return answer

    def _driven(self, awaitable: Any) -> Any:
        try:
            awaitable.send(None)
        except StopIteration as end:
            return end.value
        raise AssertionError("it waits")

    def do_go_on(self, which: int) -> Any:
        return self._go_on(which, "send", None)

    def do_throw(self, which: int, error: Any) -> Any:
        return self._go_on(which, "throw", made(error))

    def do_close(self, which: int) -> Any:
        return self._go_on(which, "close")

    def do_advance(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def do_configure(self, settings: BreakerSettings, rules: int) -> None:
        if self.target.breaker is not None:
            self.target.breaker.configure(settings, RULES[rules])

    def do_set_mode(self, mode: Mode, expires_in: float | None) -> None:
        if self.target.breaker is not None:
            self.target.breaker.set_mode(mode, "by hand", expires_in=expires_in)

    def do_resize(self, settings: BulkheadSettings) -> None:
        if self.target.bulkhead is not None:
            self.target.bulkhead.configure(settings)
