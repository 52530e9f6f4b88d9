"""A guard that has been made follows its policies at the next call, whatever is changed, in every form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from seawall import (
    Bulkhead,
    BulkheadFullError,
    CircuitBreaker,
    CircuitOpenError,
    Mode,
    StateChanged,
    Target,
    Wall,
    on_result,
)
from seawall.events import Event
from seawall.guard.kinds import ASYNC_GENERATOR, COROUTINE, FUNCTION, GENERATOR, Kind
from tests.clock import ManualClock
from tests.guard.both import Form, driven, every_form, every_kind, of_kind

pytestmark = pytest.mark.req("LIB-1")


class Call:
    """A guarded call whose answer is set from outside; says how it ended and what became of the circuit."""

    def __init__(self, form: Form, target: Target, kind: Kind) -> None:
        assert target.breaker is not None
        self.answer: Any = 200
        self.breaker, self.kind = target.breaker, kind
        self.guarded = form(target, of_kind(kind, self._act))

    def _act(self) -> Any:
        answer = self.answer() if callable(self.answer) else self.answer
        if isinstance(answer, Exception):
            raise answer
        return answer

    def __call__(self, answer: Any) -> str:
        self.answer = answer
        try:
            driven(self.kind, self.guarded())
        except CircuitOpenError:
            return f"refused {self.breaker.state}"
        except BulkheadFullError:
            return "full"
        except Exception as error:
            return f"{type(error).__name__} {self.breaker.state}"
        return f"ok {self.breaker.state}"


@pytest.fixture
def wall(manual_clock: ManualClock) -> Wall:
    wall = Wall(clock=manual_clock)
    wall.target("CORE", breaker=CircuitBreaker(3, 10.0, manual_clock), bulkhead=Bulkhead(2))
    return wall


@pytest.fixture
def make(form: Form, kind: Kind, wall: Wall) -> Callable[[], Call]:
    """Calls that have gone well before, so that the circuit has nothing noted."""

    def made() -> Call:
        call = Call(form, wall["CORE"], kind)
        assert [call(200), call(200)] == ["ok CLOSED"] * 2
        return call

    return made


@pytest.fixture
def call(make: Callable[[], Call]) -> Call:
    return make()


@every_form
@every_kind
def test_another_threshold(call: Call, wall: Wall, manual_clock: ManualClock) -> None:
    wall.target("CORE", breaker=CircuitBreaker(1, 10.0, manual_clock), replace=True)
    assert call(OSError()) == "OSError OPEN"
    assert call(200) == "refused OPEN"


@every_form
@every_kind
def test_a_threshold_raised_or_lowered_between_failures(call: Call, wall: Wall, manual_clock: ManualClock) -> None:
    assert [call(OSError()), call(OSError())] == ["OSError CLOSED"] * 2
    wall.target("CORE", breaker=CircuitBreaker(5, 10.0, manual_clock), replace=True)
    assert call(OSError()) == "OSError CLOSED"
    wall.target("CORE", breaker=CircuitBreaker(2, 10.0, manual_clock), replace=True)
    assert call(OSError()) == "OSError OPEN"


@every_form
@pytest.mark.parametrize("kind", [FUNCTION, COROUTINE], ids=lambda kind: kind.value)
def test_results_that_are_judged_from_now_on_and_then_no_more(call: Call, wall: Wall, manual_clock: ManualClock) -> None:
    judging = CircuitBreaker(3, 10.0, manual_clock, counts_as_failure=[OSError, on_result(lambda status: status == 500)])
    wall.target("CORE", breaker=judging, replace=True)
    for failures in (1, 2):
        assert call(500) == "ok CLOSED"
        assert call.breaker.failures == failures
    assert call(200) == "ok CLOSED"
    assert call.breaker.failures == 0
    assert [call(500), call(500)] == ["ok CLOSED"] * 2
    wall.target("CORE", breaker=CircuitBreaker(3, 10.0, manual_clock, counts_as_failure=OSError), replace=True)
    assert call(500) == "ok CLOSED"
    assert call.breaker.failures == 0  # it went well
    assert call(500) == "ok CLOSED"


@every_form
@pytest.mark.parametrize("kind", [FUNCTION, COROUTINE], ids=lambda kind: kind.value)
def test_a_result_is_judged_by_the_rules_at_its_end(call: Call, wall: Wall, manual_clock: ManualClock) -> None:
    judging = CircuitBreaker(1, 10.0, manual_clock, counts_as_failure=on_result(lambda status: status == 500))

    def change() -> int:
        wall.target("CORE", breaker=judging, replace=True)
        return 500

    assert call(change) == "ok OPEN"


@every_form
@pytest.mark.parametrize("kind", [GENERATOR, ASYNC_GENERATOR], ids=lambda kind: kind.value)
def test_what_a_generator_yields_is_judged_by_nobody(call: Call, wall: Wall, manual_clock: ManualClock) -> None:
    judging = CircuitBreaker(1, 10.0, manual_clock, counts_as_failure=on_result(lambda status: True))
    wall.target("CORE", breaker=judging, replace=True)
    assert call(500) == "ok CLOSED"


@every_form
@every_kind
def test_errors_that_count_from_now_on_or_no_more(call: Call, wall: Wall, manual_clock: ManualClock) -> None:
    assert call(OSError()) == "OSError CLOSED"
    assert call.breaker.failures == 1
    wall.target("CORE", breaker=CircuitBreaker(3, 10.0, manual_clock, counts_as_failure=KeyError), replace=True)
    assert call(OSError()) == "OSError CLOSED"
    assert call.breaker.failures == 0  # not listed: it proves the target alive
    assert [call(KeyError()), call(KeyError())] == ["KeyError CLOSED"] * 2
    wall.target("CORE", breaker=CircuitBreaker(3, 10.0, manual_clock, ignores=KeyError), replace=True)
    assert call(KeyError()) == "KeyError CLOSED"
    assert call.breaker.failures == 2  # ignored: neither
    assert call(OSError()) == "OSError OPEN"


@every_form
@every_kind
def test_another_limit(make: Callable[[], Call], wall: Wall) -> None:
    inner, middle, outer = make(), make(), make()

    def nested() -> list[str]:
        said: list[str] = []
        outer(lambda: said.append(middle(lambda: said.append(inner(200)))))
        return said

    assert nested() == ["full", "ok CLOSED"]
    wall.target("CORE", bulkhead=Bulkhead(3), replace=True)
    assert nested() == ["ok CLOSED", "ok CLOSED"]
    wall.target("CORE", bulkhead=Bulkhead(1), replace=True)
    assert nested() == ["full"]
    limit = wall["CORE"].bulkhead
    assert limit is not None
    assert (limit.in_flight, len(limit.free)) == (0, 1)


@every_form
@every_kind
def test_a_limit_lowered_during_a_call_is_paid_by_the_slot_it_gives_back(call: Call, wall: Wall) -> None:
    limit = wall["CORE"].bulkhead
    assert limit is not None
    assert limit.try_acquire()
    for answer in (200, OSError()):
        wall.target("CORE", bulkhead=Bulkhead(2), replace=True)

        def lower(answer: Any = answer) -> Any:
            wall.target("CORE", bulkhead=Bulkhead(1), replace=True)
            assert limit.alert
            return answer

        call(lower)
        assert (limit.alert, len(limit.free), limit.in_flight) == ([], 0, 1)


BEFORE_AND_OPEN = {
    # mode: (a call while closed, a failing one, one more after it)
    Mode.ENFORCE: ("ok CLOSED", "OSError OPEN", "refused OPEN"),
    Mode.OBSERVE: ("ok CLOSED", "OSError OPEN", "ok OPEN"),
    Mode.FORCED_OPEN: ("refused CLOSED", "refused CLOSED", "refused CLOSED"),
    Mode.FORCED_CLOSED: ("ok CLOSED", "OSError CLOSED", "ok CLOSED"),
    Mode.DISABLED: ("ok CLOSED", "OSError CLOSED", "ok CLOSED"),
}


@every_form
@every_kind
@pytest.mark.parametrize("mode", Mode)
def test_a_mode_set_by_hand_and_its_end(call: Call, mode: Mode, manual_clock: ManualClock) -> None:
    call.breaker.configure(call.breaker.settings._replace(failure_threshold=1))
    call.breaker.set_mode(mode, expires_in=5.0)
    started = call.breaker.started
    said = (call(200), call(OSError()), call(200))
    assert said == BEFORE_AND_OPEN[mode]
    assert call.breaker.started - started == 3 - sum(one.startswith("refused") for one in said)
    assert call.breaker.snapshot().failed == (mode not in (Mode.FORCED_OPEN, Mode.DISABLED))
    manual_clock.advance(5.0)
    open_still = call.breaker.state == "OPEN"
    assert call(200) == ("refused OPEN" if open_still else "ok CLOSED")


@every_form
@every_kind
def test_listeners_that_come_and_go(call: Call, manual_clock: ManualClock) -> None:
    told: list[Event] = []
    call.breaker.configure(call.breaker.settings._replace(failure_threshold=1))
    end = call.breaker.listen(told.append)
    assert call(OSError()) == "OSError OPEN"
    manual_clock.advance(10.0)
    assert call(200) == "ok CLOSED"
    assert [event.new for event in told if isinstance(event, StateChanged)] == ["OPEN", "HALF_OPEN", "CLOSED"]
    end()
    assert call(OSError()) == "OSError OPEN"
    assert len(told) == 3
