"""Retrying, written once: a generator that yields what is to be done and is sent how it ended.

A plan waits for nothing and calls nothing. A driver performs its effects: by blocking a thread, by awaiting, in virtual
time, or from the callbacks of a protocol. So the order of things, the reasons to stop and the events are the same for
all of them::

    plan = retrying(retry, deadline)
    Attempt(1) --> Ended --> Sleep(0.031) --> Attempt(2) --> Ended --> returns the Ended that counts

A driver that gives up closes the plan.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from .errors import DeadlineExceededError, NoBudgetError, RejectedError, seconds

if TYPE_CHECKING:
    from .deadline import Deadline
    from .policies.retry import Retry

__all__ = [
    "IDEMPOTENT", "Attempt", "AttemptsNote", "Effect", "Ended", "Plan", "Reason", "Sleep", "has_exhausted", "retrying",
]  # fmt: skip

log = logging.getLogger("seawall")

IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"})
"""HTTP methods that do no harm a second time. Source: RFC 9110, 9.2.2."""

TOLD = 3  # attempts told of in the note on the last error


class Reason(StrEnum):
    """Why no further attempt was made; ``== "budget"`` holds."""

    SUCCESS = "success"
    ATTEMPTS = "attempts"
    """There were ``max_attempts``."""
    BUDGET = "budget"
    """The wait and one more call did not fit into what is left of the caller's time."""
    RETRY_BUDGET = "retry_budget"
    """Too many of the calls to this target are repeated already."""
    NOT_IDEMPOTENT = "not_idempotent"
    """The attempt may have done its work, and doing it twice was not declared harmless."""
    PUSHBACK = "pushback"
    """The target asked to be left alone for longer than ``max_retry_after``."""
    CUT = "cut"
    """Nobody waits for it any more: its caller was cancelled or interrupted."""
    REFUSED = "refused"
    """The next attempt was refused: its circuit had opened, or there was no room."""
    OTHER = "other"
    """It ended in a way that is not retried."""


class Attempt(NamedTuple):
    """To be done: one attempt, counted from 1. The driver sends back its :class:`Ended`."""

    number: int


class Sleep(NamedTuple):
    """To be done: wait so many seconds. The driver sends back ``None``."""

    seconds: float


class Ended(NamedTuple):
    """How an attempt ended: with a result, or with an error."""

    result: Any = None
    error: BaseException | None = None

    def unwrap(self) -> Any:
        """The result, or the error raised. To be called outside any handler: an error gets no context not its own."""
        if self.error is None:
            return self.result
        try:
            raise self.error
        finally:
            del self  # the error's traceback holds this frame: no cycle


Effect: TypeAlias = Attempt | Sleep
Plan: TypeAlias = Generator[Effect, Ended | None, Ended]


class AttemptsNote(str):
    """The note on an error that was re-raised after the last attempt: what the others ended with."""

    given_up_in: frozenset[int] = frozenset()  # the loops around the one that wrote it, by their identities


def retrying(
    retry: Retry,
    deadline: Deadline | None = None,
    ended: Ended | None = None,
    *,
    around: Callable[[], list[Retry]] = list,
    repeatable: Callable[[Ended], bool] | None = None,
    counted: bool = False,
) -> Plan:
    """The plan of one call.

    Args:
        retry: How often, how long in between, and what for.
        deadline: The end of every wait and attempt.
        ended: How the first attempt ended, where it has been made already.
        around: Finds the loops in which this one stands, asked after a failure. Where one of them is for the same target
            this one runs once: the outer one repeats it.
        repeatable: Whether what ended so may be done again; default: yes, who wraps a function in a retry says so.
        counted: Whether a breaker of the retry counts the first attempt.

    Returns:
        The attempt that counts: the successful one, or else the last that ran.
    """
    run = _Run(retry, deadline, around, repeatable)
    waiting = False
    try:
        if ended is None:
            if not counted:
                next(retry.first.ticks)
            ended = yield Attempt(1)
            assert ended is not None
        delay = run.after(ended)
        while delay is not None:
            waiting = True
            yield Sleep(delay)
            waiting = False
            if run.too_late():
                break
            ended = yield Attempt(run.number)
            assert ended is not None
            delay = run.after(ended)
    except GeneratorExit:
        run.cut(waiting)
        raise
    return run.last


class _Run:
    """One call's way through its attempts."""

    def __init__(
        self,
        retry: Retry,
        deadline: Deadline | None,
        around: Callable[[], list[Retry]],
        repeatable: Callable[[Ended], bool] | None,
    ) -> None:
        self.retry, self.deadline, self.around, self.repeatable = retry, deadline, around, repeatable
        self.outer: list[Retry] = []
        self.number = 1
        self.delay = self.waited = 0.0
        self.last = Ended()
        self.lines: list[str] = []  # of the attempts before the last

    def after(self, ended: Ended) -> float | None:
        """Seconds to wait before the next attempt, or ``None``: it is over, and :attr:`last` is how."""
        error = ended.error
        if isinstance(error, RejectedError):
            self._refused(ended, error)
            return None
        self.last = ended
        step = self._step(ended)
        if isinstance(step, Reason):
            self._stop(step)
        elif step is not None:
            self._go_on(ended, step)
            return step
        return None

    def _step(self, ended: Ended) -> float | Reason | None:
        """The wait, or the reason to stop; ``None`` where another loop decides."""
        if isinstance(ended.error, DeadlineExceededError):
            return Reason.BUDGET
        if not self.retry.wants(ended):
            return Reason.SUCCESS if ended.error is None else Reason.OTHER
        if self._stands_in_another():
            return None
        if self.repeatable is not None and not self.repeatable(ended):
            return Reason.NOT_IDEMPOTENT
        left = None if self.deadline is None else self.deadline.remaining()
        return self.retry.decide(self.number, ended, left, self.delay)

    def too_late(self) -> bool:
        """Whether so little is left after the wait that the next attempt is not made."""
        if self.deadline is not None:
            left = self.deadline.remaining()
            if left <= 0.0 or left < self.retry.least:
                self._step_back()
                self._stop(Reason.BUDGET)
                return True
        return False

    def _go_on(self, ended: Ended, delay: float) -> None:
        self.retry.tell_wait(self.number, delay, ended.error)
        self.lines.append(f"attempt {self.number}: {_said(ended)}, then {seconds(delay)} of waiting")
        self.number += 1
        self.delay = delay
        self.waited += delay

    def cut(self, waiting: bool) -> None:
        """The driver has given up, in the wait for an attempt or in the middle of one. Only whole waits are told."""
        if waiting:
            self._step_back()
            self.waited -= self.delay
        if waiting or self.number > 1:
            self.retry.tell_end(Reason.CUT, self.number, self.waited)

    def _step_back(self) -> None:
        """The attempt that was waited for is not made: the one before it was the last."""
        self.number -= 1
        self.lines.pop()

    def _refused(self, ended: Ended, refusal: RejectedError) -> None:
        """The attempt was not made. The last one that ran has more to say, if there is one."""
        if self.number == 1:
            self.last = ended
            return
        self._step_back()
        self._stop(Reason.BUDGET if isinstance(refusal, NoBudgetError) else Reason.REFUSED, f": {_shown(refusal, str)}")

    def _stands_in_another(self) -> bool:
        if self.number == 1:
            self.outer = self.around()
        for other in self.outer:
            if other is self.retry or (other.name and other.name == self.retry.name):
                self.retry.warn_of(other)
                return True
        return False

    def _stop(self, reason: Reason, why: str = "") -> None:
        retry, error = self.retry, self.last.error
        if self.number == 1 and (reason in (Reason.SUCCESS, Reason.OTHER) or isinstance(error, DeadlineExceededError)):
            return  # one attempt, and nothing was decided: no loop to tell of
        if error is not None:
            _note(error, self._told(f"{reason}{why}"), self.outer)
        retry.tell_end(reason, self.number, self.waited)

    def _told(self, reason: str) -> str:
        attempts = f"attempt {self.number} of {self.retry.settings.max_attempts}"
        before = [f"{len(self.lines) - TOLD} earlier"] if len(self.lines) > TOLD else []
        history = "; ".join(before + self.lines[-TOLD:])
        return f"{self.retry.name or 'seawall'}: gave up after {attempts} ({reason}){'; ' * bool(history)}{history}"


def has_exhausted(error: BaseException, retry: Retry) -> bool:
    """Whether ``error``, or what it was raised from, comes out of a loop inside the present one that has given up.

    Told once: an error object that is raised again and again is not held to what became of it another time.
    """
    seen: BaseException | None = error
    for _ in range(8):
        if seen is None:
            return False
        for note in _notes_on(seen):
            if isinstance(note, AttemptsNote) and id(retry) in note.given_up_in:
                note.given_up_in -= {id(retry)}
                return True
        seen = seen.__cause__ or seen.__context__
    return False


def _note(error: BaseException, text: str, outer: list[Retry]) -> None:
    """One note, replaced: an error that is raised again and again would collect them without end."""
    notes = [note for note in _notes_on(error) if not isinstance(note, AttemptsNote)]
    note = AttemptsNote(text)
    note.given_up_in = frozenset(map(id, outer))
    try:
        error.__notes__ = [*notes, note]
    except Exception:
        pass  # an error class without room for notes, or one that refuses to be changed


# Errors and results are the user's own: what cannot be shown, or has odd notes, still is what the call ended with.
def _notes_on(error: BaseException) -> list[Any]:
    try:
        return list(getattr(error, "__notes__", ()))
    except Exception:
        return []


def _shown(what: object, how: Callable[[Any], str]) -> str:
    try:
        return how(what)
    except Exception:
        return type(what).__name__


def _said(ended: Ended) -> str:
    if ended.error is None:
        return f"result {_shown(ended.result, repr):.60}"
    name, text = type(ended.error).__name__, _shown(ended.error, str)
    return name if text in ("", name) else f"{name}: {text:.80}"
