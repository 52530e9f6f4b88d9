"""An error or a result that cannot be shown, or noted, still is what the call ends with; and it is repeated like any."""

from __future__ import annotations

from typing import Any

import pytest

from seawall import RejectedError, Retry, on_result
from seawall.plan import AttemptsNote
from tests.clock import ManualClock
from tests.guard.both import Form, every_form


def broken(*_: object) -> Any:
    raise ValueError("broken")


class Unsaid(ConnectionError):
    __str__ = __repr__ = broken


class Unnoted(ConnectionError):
    __setattr__ = broken


class WithoutNotes(ConnectionError):
    __notes__ = None  # type: ignore[assignment]


class WithBrokenNotes(ConnectionError):
    __notes__ = property(broken)


class Unshown:
    __repr__ = broken


def ends(form: Form, end: Any) -> tuple[Any, int]:
    """What three attempts of it end with, and how many there were."""
    calls: list[int] = []
    clock = ManualClock()
    retry = Retry(3, base_delay=0, on=[ConnectionError, on_result(lambda _: True)], clock=clock)

    def fn() -> Any:
        calls.append(1)
        if isinstance(end, Exception):
            raise end
        return end

    try:
        return form(retry, fn)(), len(calls)
    except Exception as error:
        return error, len(calls)


@every_form
@pytest.mark.parametrize("kind", [Unsaid, Unnoted, WithoutNotes, WithBrokenNotes])
def test_an_odd_error_is_what_comes_out_after_all_attempts(form: Form, kind: type[Exception]) -> None:
    error = kind("no")
    assert ends(form, error) == (error, 3)
    cause = RuntimeError()
    cause.__cause__ = error
    assert ends(form, cause) == (cause, 1)


@every_form
def test_a_result_that_cannot_be_shown_is_returned_after_all_attempts(form: Form) -> None:
    result = Unshown()
    assert ends(form, result) == (result, 3)


def test_what_cannot_be_shown_goes_by_the_name_of_its_type() -> None:
    error = Unsaid()
    assert ends(lambda stack, fn: stack(fn), error) == (error, 3)
    assert [type(note) for note in error.__notes__] == [AttemptsNote]
    assert "attempt 1: Unsaid, then 0 s" in error.__notes__[0]


@every_form
def test_a_refusal_that_cannot_be_shown_still_leaves_the_error_before_it(form: Form) -> None:
    class Refused(RejectedError):
        __str__ = broken

    ends = [ConnectionError("first"), Refused()]

    def fn() -> None:
        raise ends.pop(0)

    with pytest.raises(ConnectionError, match="first"):
        form(Retry(3, base_delay=0, clock=ManualClock()), fn)()
