"""What a call raised or returned is sorted into outcomes by types and predicates; refusals and interrupts never count."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from seawall import (
    BulkheadFullError,
    CircuitOpenError,
    DeadlineExceededError,
    NoBudgetError,
    TimeoutExceededError,
    on_result,
)
from seawall.outcome import CODES, CUT, DISCARDED, FAILURE, IGNORED, REFUSALS, SUCCESS, SYSTEM_ERRORS, Outcome, Rules


class BusinessError(Exception):
    def __init__(self, code: str = "") -> None:
        self.code = code


@pytest.mark.parametrize(("counts", "ignores", "error", "outcome"), [
    (Exception, (), ValueError(), FAILURE),
    (ConnectionError, (), ConnectionResetError(), FAILURE),
    (ConnectionError, (), ValueError(), SUCCESS),  # an error nobody listed proves the target alive
    ((ConnectionError, TimeoutError), (), TimeoutError(), FAILURE),
    (ConnectionError, (), TimeoutExceededError("CORE", 2.0), FAILURE),
    (ConnectionError, TimeoutError, TimeoutExceededError("CORE", 2.0), IGNORED),
    ([ConnectionError], BusinessError, BusinessError(), IGNORED),
    (Exception, BusinessError, BusinessError(), IGNORED),
    (Exception, [KeyError, BusinessError], ValueError(), FAILURE),
    (lambda error: error.code == "E", (), BusinessError("E"), FAILURE),
    (lambda error: error.code == "E", (), BusinessError("B"), SUCCESS),
    ([ConnectionError, lambda error: error.args == (1,)], (), KeyError(1), FAILURE),
    (Exception, lambda error: error.args == (1,), KeyError(1), IGNORED),
    (Exception, lambda error: error.args == (1,), KeyError(2), FAILURE),
    ((), (), ValueError(), SUCCESS),
    (on_result(bool), (), ValueError(), SUCCESS),
    (ExceptionGroup, (), ExceptionGroup("two", [ValueError(), KeyError()]), FAILURE),
])
def test_errors(counts: Any, ignores: Any, error: Exception, outcome: Outcome) -> None:
    assert Rules(counts, ignores).of_error(error) is outcome


@pytest.mark.req("HUB-7")
@pytest.mark.parametrize("counts", [Exception, BaseException, lambda error: True])
@pytest.mark.parametrize(("error", "outcome"), [
    (CircuitOpenError("CORE", "is open", "OPEN", 1.0), DISCARDED), (BulkheadFullError(), DISCARDED),
    (NoBudgetError(), DISCARDED), (KeyboardInterrupt(), DISCARDED), (SystemExit(), DISCARDED), (GeneratorExit(), DISCARDED),
    (asyncio.CancelledError(), CUT), (DeadlineExceededError(), CUT),
])
def test_some_never_count_whatever_the_rules_say(counts: Any, error: BaseException, outcome: Outcome) -> None:
    assert Rules(counts, ()).of_error(error) is outcome


def test_the_users_own_timeout_is_a_failure_and_no_cut() -> None:
    assert Rules(Exception, ()).of_error(TimeoutError()) is FAILURE


@pytest.mark.parametrize(("rules", "result", "outcome"), [
    (on_result(lambda status: status >= 500), 503, FAILURE),
    (on_result(lambda status: status >= 500), 404, SUCCESS),
    ([ConnectionError, on_result(lambda r: r is None), on_result(lambda r: r == 7)], 7, FAILURE),
    (Exception, ValueError(), SUCCESS),  # an error that is returned is a result like any other
])
def test_results(rules: Any, result: object, outcome: Outcome) -> None:
    assert Rules(rules, ()).of_result(result) is outcome


@pytest.mark.parametrize("wrong", [int, "ConnectionError", ["ConnectionError"], 7, None, [None]])
@pytest.mark.parametrize("where", ["counts_as_failure", "ignores"])
def test_what_is_no_rule_is_refused_at_once(where: str, wrong: Any) -> None:
    args = (wrong, ()) if where == "counts_as_failure" else (Exception, wrong)
    with pytest.raises(TypeError, match=f"{where}= takes exception types, predicates and on_result"):
        Rules(*args)


def test_a_result_cannot_be_ignored() -> None:
    with pytest.raises(TypeError, match="a result that is no failure is a success"):
        Rules(Exception, on_result(bool))


@pytest.mark.fault("F12")
def test_a_predicate_that_raises_counts_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def broken(value: object) -> bool:
        raise LookupError

    assert Rules(broken, ()).of_error(ValueError()) is FAILURE
    assert Rules(on_result(broken), ()).of_result(7) is FAILURE
    assert Rules(Exception, broken).of_error(ValueError()) is FAILURE
    assert Rules((), broken).of_error(ValueError()) is SUCCESS  # it ignores nothing, and nothing else counts
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 4


def test_an_interrupt_out_of_a_predicate_is_not_swallowed() -> None:
    def interrupted(error: object) -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Rules(interrupted, ()).of_error(ValueError())


@pytest.mark.fault("F13")
def test_a_class_is_a_class_whatever_its_metaclass() -> None:
    class Meta(type):
        def __call__(cls, *args: object) -> Any:
            return True if args else super().__call__()

    class OddError(Exception, metaclass=Meta):
        pass

    rules = Rules(Exception, OddError)
    assert rules.of_error(ValueError()) is FAILURE
    assert rules.of_error(OddError()) is IGNORED


def test_rules_are_equal_by_what_they_say() -> None:
    def predicate(error: object) -> bool:
        return True

    assert Rules([KeyError, predicate], ()) == Rules((KeyError, predicate), [])
    assert Rules(KeyError, ()) != Rules(ValueError, ())
    assert Rules(KeyError, ()) != Rules(KeyError, ValueError)
    assert Rules(KeyError, ()) != "KeyError"


@pytest.mark.req("HUB-7")
def test_codes_fit_together() -> None:
    assert all(row.code == key for key, row in CODES.items())
    assert set(CODES) >= SYSTEM_ERRORS | REFUSALS
    assert not SYSTEM_ERRORS & REFUSALS
    assert {"E500", "E901", "E902"} <= SYSTEM_ERRORS
    assert all(400 <= row.status < 600 and row.meaning for row in CODES.values())
