"""How an attempt ended, what counts as a failure, and the hub's outcome codes.

An attempt ends in one of five ways. Three are answers: a *success* proves the target alive, a *failure* counts against
it, an *ignored* answer does neither. Two are not: a call *cut* by its caller says nothing by itself, but cuts pile up
while no answer arrives at all; a *discarded* one never ran, or was abandoned by this program, and says nothing ever.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple, TypeAlias, final

from .errors import DeadlineExceededError, RejectedError, TimeoutExceededError

__all__ = [
    "CODES",
    "REFUSALS",
    "SYSTEM_ERRORS",
    "Code",
    "Outcome",
    "Rule",
    "Rules",
    "never_ran",
    "on_result",
    "stands_between",
    "to_rules",
]

log = logging.getLogger("seawall")

MOST_TYPES = 256  # of errors, remembered by each set of rules: a program that makes classes as it goes fills no memory


class Outcome(StrEnum):
    """How one attempt ended; ``== "success"`` holds."""

    SUCCESS = "success"
    FAILURE = "failure"
    IGNORED = "ignored"
    CUT = "cut"
    DISCARDED = "discarded"


SUCCESS, FAILURE, IGNORED, CUT, DISCARDED = Outcome

Rule: TypeAlias = "type[BaseException] | Callable[[Exception], object] | on_result"


@final
class on_result:
    """Marks a predicate that looks at what the call returned instead of what it raised.

    ``counts_as_failure=[ConnectionError, on_result(lambda r: r.status_code >= 500)]``
    """

    __slots__ = ("predicate",)

    def __init__(self, predicate: Callable[[Any], object]) -> None:
        self.predicate = predicate


class Rules:
    """Sorts what a call raised or returned into outcomes.

    Args:
        counts_as_failure: Types of errors, predicates on the error, and :class:`on_result` predicates. An error that
            matches none of them proves the target alive: a success. An exceeded time limit is a failure in any case.
        ignores: Types and predicates that win over the former; the answer then counts for nothing. Refusals, cuts,
            ``GeneratorExit``, ``KeyboardInterrupt`` and ``SystemExit`` never count, whatever is said here.
        limits: Whether an exceeded time limit is a failure though nothing here says so.

    A predicate that raises is logged; the error then counts as a failure and reaches the caller unharmed.
    """

    __slots__ = ("_ignored_tests", "_ignored_types", "_known", "_limits", "_tests", "_types", "failures", "result_tests")

    def __init__(
        self, counts_as_failure: Rule | Iterable[Rule], ignores: Rule | Iterable[Rule] = (), *, limits: bool = True
    ) -> None:
        self._limits: tuple[type[BaseException], ...] = (TimeoutExceededError,) if limits else ()
        self._types, self._tests, self.result_tests = _sort(counts_as_failure, "counts_as_failure")
        self._ignored_types, self._ignored_tests, results = _sort(ignores, "ignores")
        if results:
            raise TypeError("ignores= takes types and predicates on errors; a result that is no failure is a success")
        self._known: dict[type[BaseException], Outcome] = {}  # where the type alone decides
        self.failures: set[type[BaseException]] = set()  # of these, the certain failures: no TypeError, no TimeoutError

    def _key(self) -> tuple[object, ...]:
        return (self._types, self._tests, self.result_tests, self._ignored_types, self._ignored_tests)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Rules) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # equal by value, and nobody's key

    def of_error(self, error: BaseException) -> Outcome:
        """How a call that raised ``error`` ended. Cost: a look into a dictionary, unless predicates are asked."""
        outcome = self._known.get(type(error))
        if outcome is None:
            outcome = self._judge(error)
            if not (self._tests or self._ignored_tests) and len(self._known) < MOST_TYPES:
                self._known[type(error)] = outcome
                if outcome is FAILURE and not isinstance(error, (TypeError, TimeoutError)):
                    self.failures.add(type(error))
        return outcome

    def _judge(self, error: BaseException) -> Outcome:
        if isinstance(error, RejectedError):
            return DISCARDED
        if isinstance(error, DeadlineExceededError) or _is_cancellation(error):
            return CUT
        if not isinstance(error, Exception):
            return DISCARDED
        if isinstance(error, self._ignored_types) or _any(self._ignored_tests, error, False):
            return IGNORED
        if isinstance(error, (*self._types, *self._limits)):
            return FAILURE
        return FAILURE if _any(self._tests, error, True) else SUCCESS

    def of_result(self, result: object) -> Outcome:
        """How a call that returned ``result`` ended."""
        return FAILURE if self.result_tests and _any(self.result_tests, result, True) else SUCCESS

    def names(self, error: BaseException) -> bool:
        """Whether ``error`` is a failure by a rule that means it, and not errors at large."""
        types = tuple(kind for kind in self._types if kind not in (Exception, BaseException))
        return isinstance(error, types) or _any(self._tests, error, False)


def to_rules(counts_as_failure: Rule | Iterable[Rule], ignores: Rule | Iterable[Rule]) -> Rules:
    """The rules; one object for all who go by the default."""
    default = counts_as_failure is Exception and ignores == ()
    return DEFAULT_RULES if default else Rules(counts_as_failure, ignores)


_between: set[CodeType] = set()


def stands_between(code: CodeType) -> None:
    """``code`` is our own and calls what is guarded: an error out of it alone was raised before the function began."""
    _between.add(code)


def never_ran(error: BaseException, fn: object) -> bool:
    """Whether a ``TypeError`` means wrong arguments: raised by the call itself, before the function's first line.

    The traceback then ends in the guard, or in what the guard calls it through. For a function in C it always does, so
    there nobody can tell.
    """
    place = error.__traceback__
    while place is not None and (place := place.tb_next) is not None:
        if place.tb_frame.f_code not in _between:
            return False
    while isinstance(fn, (partial, MethodType)):
        fn = fn.func if isinstance(fn, partial) else fn.__func__
    return isinstance(fn, FunctionType) or isinstance(type(fn).__call__, FunctionType)


def _sort(
    rules: Rule | Iterable[Rule], where: str
) -> tuple[tuple[type[BaseException], ...], list[Callable[[Any], object]], list[Callable[[Any], object]]]:
    types: list[type[BaseException]] = []
    tests: list[Callable[[Any], object]] = []
    results: list[Callable[[Any], object]] = []
    single = isinstance(rules, (type, on_result)) or callable(rules) or not isinstance(rules, Iterable)
    for rule in [rules] if single else rules:  # type: ignore[union-attr]  # callable() does not narrow the union
        # By isinstance(x, type), not by metaclass: a class whose metaclass is its own is a class all the same.
        if isinstance(rule, type):
            if not issubclass(rule, BaseException):
                raise TypeError(f"{where}= takes exception types, predicates and on_result(...); {rule!r} is no exception")
            types.append(rule)
        elif isinstance(rule, on_result):
            results.append(rule.predicate)
        elif callable(rule):
            tests.append(rule)
        else:
            raise TypeError(f"{where}= takes exception types, predicates and on_result(...), not {rule!r}")
    return tuple(types), tests, results


def _any(tests: list[Callable[[Any], object]], value: object, if_it_raises: bool) -> bool:
    for test in tests:
        try:
            if test(value):
                return True
        except Exception:
            log.exception("predicate %r failed on %r", test, value)
            if if_it_raises:
                return True
    return False


def _is_cancellation(error: BaseException) -> bool:
    """Whether this is asyncio's ``CancelledError``, without importing asyncio: who raises it has done so."""
    exceptions = sys.modules.get("asyncio.exceptions")
    return exceptions is not None and isinstance(error, exceptions.CancelledError)


DEFAULT_RULES = Rules(Exception, ())


class Code(NamedTuple):
    """One of the hub's own outcome codes."""

    code: str
    status: int
    meaning: str


CODES: dict[str, Code] = {
    row.code: row
    for row in (
        Code("E400", 400, "the request was not understood"),
        Code("E404", 404, "no such target"),
        Code("E408", 408, "the client sends too slowly"),
        Code("E413", 413, "the body is too large"),
        Code("E431", 431, "the request head is too large"),
        Code("E500", 502, "the target answered with a server error"),
        Code("E901", 502, "could not connect to the target"),
        Code("E902", 504, "the target did not answer in time"),
        Code("E903", 502, "the target broke off, or did not speak HTTP"),
        Code("E904", 503, "the circuit of the target is open"),
        Code("E905", 503, "no room: as many calls as allowed are running"),
        Code("E906", 504, "no budget left"),
        Code("E907", 429, "too many requests"),
        Code("E908", 503, "the hub is draining"),
        Code("E999", 500, "a fault of the hub itself"),
    )
}
"""The codes the hub gives itself, with the HTTP status each is answered with."""

SYSTEM_ERRORS = frozenset({"E500", "E901", "E902", "E903"})
"""What counts as a failure of the target unless ``--failures`` says otherwise."""

REFUSALS = frozenset({"E904", "E905", "E906", "E907", "E908"})
"""The call was not made: these never count, under any rule."""
