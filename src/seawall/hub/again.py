"""Another attempt where one has failed: the library's plan of retries, carried out from the hub's callbacks.

Theory of operation
-------------------
Nothing here runs before an attempt has failed. Then :func:`after` asks the plan: another attempt after a wait, or none, for
a reason that is counted. For the wait everything goes back (token settled, place free, connection kept or dropped), and the
exchange stands on its client's wheel as ever, in phase ``BACKOFF``. Then all policies are asked anew, as for a call of its
own. A refusal there is not repeated: the client gets the answer of the last attempt that ran.

A failed answer of the target is therefore read before it is judged (:class:`Kept`): it can still be passed on, and its
connection is used again. One that is longer than ``KEEP``, or slower than an attempt may be, is passed on as it comes and
not repeated.

What may be sent again: what never left; else, on the transparent door, methods that are idempotent by RFC 9110 and
requests with ``Idempotency-Key``, and transactions of a target that says so; each with a body of at most ``REPLAY`` bytes.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from .. import plan
from ..deadline import Deadline
from ..drivers.callbacks import Steps
from ..errors import DeadlineExceededError, NoBudgetError, RejectedError, SeawallError
from ..headers import retry_after
from ..outcome import CODES, DISCARDED, Outcome
from ..plan import Attempt, Ended, Sleep, retrying
from ..policies.retry import Retry
from ..policies.slots import USED
from .ghost import Ghost
from .phases import BACKOFF

if TYPE_CHECKING:
    from collections.abc import Callable

    from .exchange import Exchange
    from .head import ResponseHead
    from .target_settings import TargetSettings

__all__ = [
    "IDEMPOTENT", "KEEP", "REPLAY", "Course", "Failed", "Kept", "after", "failed_answer", "failed_attempt", "finished",
    "in_words", "is_failure", "keeps", "not_kept", "refused", "replay", "retry_of", "wake",
]  # fmt: skip

REPLAY = 65536  # bytes of a request's body that are kept to be sent again
KEEP = 65536  # bytes of a failed answer's body that are kept to be passed on after all
IDEMPOTENT = frozenset(method.encode() for method in plan.IDEMPOTENT)  # as they stand in a request
REPLAYED = frozenset({b"GET", b"HEAD", b"OPTIONS"})  # also where nothing is retried
_NOT_MADE = frozenset({"E904", "E905", "E906"})  # the refusals that a further attempt may meet


def retry_of(settings: TargetSettings, clock: Callable[[], float]) -> Retry | None:
    """The retry of a target, ``None`` where each request is one attempt."""
    if settings.retry == 1:
        return None
    return Retry(
        settings.retry, base_delay=settings.retry_base_ms / 1000, max_delay=settings.retry_max_delay_ms / 1000,
        min_ms=settings.min_ms, on=Failed, clock=clock,
    )  # fmt: skip


class Failed(Exception):
    """How an attempt failed: for the plan, and for the client if it was the last.

    Attributes:
        code, detail, more: What :meth:`Exchange.fail` takes.
        repeatable: Whether the request may be sent again after this.
        retry_after: Seconds for which the target asks to be left alone; ``None``: it does not ask.
    """

    def __init__(
        self, code: str, detail: str, repeatable: bool, more: dict[str, Any], retry_after: float | None = None
    ) -> None:
        super().__init__(f"{code}: {detail}")
        self.code, self.detail, self.repeatable, self.more = code, detail, repeatable, more
        self.retry_after = retry_after


class Kept:
    """A failed answer in wait for the decision: its head, how long its body is to be, and what has come of it."""

    __slots__ = ("body", "head", "length")

    def __init__(self, head: ResponseHead, body: bytes | memoryview, length: int | None) -> None:
        self.head, self.length = head, length
        self.body = bytearray(body)


class Course:
    """A request's way through its attempts, from the first failure on."""

    __slots__ = ("answer", "first", "last", "maybe_executed", "slept_at", "steps")

    def __init__(self, exchange: Exchange, retry: Retry, failed: Failed) -> None:
        deadline = Deadline(exchange.deadline, exchange.backend.clock)
        self.steps = Steps(retrying(retry, deadline, Ended(error=failed), repeatable=_is_repeatable))
        self.last, self.first = failed, retry.first
        self.answer: Any = None  # the target's own to the last attempt, where it gave one
        self.maybe_executed = failed.code != "E901"
        self.slept_at = inf

    def tell(self, failed: Failed) -> None:
        """A further attempt has failed."""
        self.last = failed
        self.maybe_executed = self.maybe_executed or failed.code != "E901"
        self.steps.attempted(Ended(error=failed))


def _is_repeatable(ended: Ended) -> bool:
    return isinstance(ended.error, Failed) and ended.error.repeatable


# -- an attempt has failed
def after(exchange: Exchange, failed: Failed, outcome: Outcome = DISCARDED, answer: Any = None) -> bool:
    """Whether there will be another attempt. If so, all has been given back, and the wait has begun.

    Args:
        exchange: Whose attempt has failed.
        failed: How.
        outcome: What it is for the breaker, where that has not been told yet.
        answer: What the target answered, whole; ``None``: its connection is of no more use.
    """
    retry = exchange.backend.retry
    if retry is None or exchange.started or type(exchange.client) is Ghost:
        return False
    course = _tell(exchange, retry, failed)
    effect = course.steps.next
    if not isinstance(effect, Sleep):
        return False
    course.answer = answer
    now = exchange.backend.clock()
    _give_back(exchange, outcome, failed.code, now, keep=answer is not None)
    exchange.spent += now - min(exchange.connect_at, exchange.sent_at)
    exchange.connect_at = exchange.sent_at = inf
    exchange.attempts += 1
    exchange.timed, exchange.replayed, exchange.status, exchange.kept = True, False, 0, None
    course.slept_at = now
    exchange.phase, exchange.until = BACKOFF, now + effect.seconds
    exchange.arm()
    return True


def _give_back(exchange: Exchange, outcome: Outcome, code: str, now: float, *, keep: bool) -> None:
    """Between two attempts nothing is held; ``keep``: the answer has ended, and its connection may be used again."""
    exchange.settle(outcome, code)
    upstream = exchange.upstream
    if keep and upstream is not None:
        exchange.upstream = None
        upstream.release(now)
    else:
        exchange.drop_upstream()
    free, exchange.held = exchange.held, None
    if free is not None:
        free.append(USED)
        if exchange.backend.bulkhead.alert:
            exchange.backend.bulkhead.pump()


def failed_attempt(exchange: Exchange, code: str, detail: str, outcome: Outcome, more: dict[str, Any]) -> bool:
    """An attempt ended without a whole answer: whether there will be another."""
    return after(exchange, Failed(code, detail, may_be_sent_again(exchange, code), more), outcome)


def replay(exchange: Exchange) -> bool:
    """A kept connection was closed by the idle target just as the request went out: once more, at once, on a new one."""
    request = exchange.request
    if exchange.replayed or exchange.size or request.length or request.chunked or request.method not in REPLAYED:
        return False
    exchange.replayed = True
    exchange.drop_upstream()
    exchange.connect(exchange.backend.clock())
    return True


def _tell(exchange: Exchange, retry: Retry, failed: Failed) -> Course:
    course = exchange.course
    if course is None:
        course = exchange.course = Course(exchange, retry, failed)
    else:
        course.tell(failed)
    return course


def may_be_sent_again(exchange: Exchange, code: str) -> bool:
    """Whether the request does no harm a second time, and is still at hand."""
    if code == "E901":  # nothing has left, whatever has come of the body by now
        return True
    return not exchange.gone and exchange.idempotent()


# -- an answer is a failure
def is_failure(head: ResponseHead) -> bool:
    """Whether such an answer is repeated: 5xx, and 429 that says when. Not where a hub further on has answered."""
    return head.code is None and (head.status >= 500 or (head.status == 429 and _asked(head) is not None))


def _asked(head: ResponseHead) -> float | None:
    """Seconds for which the answer asks to be left alone."""
    if head.retry_after is None or head.status not in (429, 503):
        return None
    date = next((line[5:] for line in head.lines if line[:5].lower() == b"date:"), None)
    return retry_after(head.retry_after, date)


def failed_answer(exchange: Exchange, head: ResponseHead, code: str, whole: bool = True) -> Failed:
    """The failure that an answer is. One that is not at hand as a whole is not repeated."""
    repeatable = whole and may_be_sent_again(exchange, code)
    return Failed(code, f"{exchange.backend.name} answered {head.status}", repeatable, {}, _asked(head))


def keeps(exchange: Exchange, head: ResponseHead) -> bool:
    """Whether an answer is read before it is passed on. Where nothing could come of that, the plan is told at once."""
    retry = exchange.backend.retry
    if retry is None or type(exchange.client) is Ghost or not is_failure(head):
        return False
    failed = failed_answer(exchange, head, exchange.code, exchange.bodiless or (head.length or 0) <= KEEP)
    if failed.repeatable and exchange.attempts + 1 < retry.settings.max_attempts:
        return True
    _tell(exchange, retry, failed)
    return False


def not_kept(exchange: Exchange, head: ResponseHead) -> None:
    """The answer turned out too long, or too slow: it is passed on, and that is the end of it."""
    if exchange.backend.retry is not None:
        _tell(exchange, exchange.backend.retry, failed_answer(exchange, head, exchange.code, whole=False))


# -- the next attempt
def _is_running(exchange: Exchange) -> bool:
    """Whether an attempt has begun since the last one ended."""
    return min(exchange.connect_at, exchange.sent_at) != inf


def wake(exchange: Exchange, now: float) -> None:
    """The wait is over: on to the next attempt, or, where the loop was held up for too long, to the end."""
    course = exchange.course
    assert course is not None
    exchange.waited += now - course.slept_at
    course.steps.slept()
    if course.steps.next is None:
        _answer_last(exchange, course, "no time was left for another attempt")
    else:
        course.first.again()
        exchange.start(now)


def refused(exchange: Exchange, code: str, why: str, retry_after: float | None) -> bool:
    """The hub is about to answer ``code``. Where a further attempt was refused, the answer to the last one goes instead."""
    course = exchange.course
    if course is None or code not in _NOT_MADE or _is_running(exchange) or not isinstance(course.steps.next, Attempt):
        return False
    course.first.not_made()
    kind = NoBudgetError if code == "E906" else RejectedError
    course.steps.attempted(Ended(error=kind(exchange.backend.name, why, "", retry_after)))
    _answer_last(exchange, course, why, retry_after)
    return True


def _answer_last(exchange: Exchange, course: Course, why: str, retry_after: float | None = None) -> None:
    if course.answer is not None:
        exchange.answer_after_all(course.answer)
    else:
        last = course.last
        exchange.fail(last.code, f"{last.detail}; then {why}", DISCARDED, retry_after, **last.more)


# -- the end
def in_words(exchange: Exchange, course: Course, detail: str, more: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """What the hub's own answer says: of which attempt it tells, and that one of them may have done its work."""
    if course.maybe_executed:
        more = {**more, "maybe_executed": True}
    if exchange.attempts and exchange.backend.retry is not None:
        number = exchange.attempts + _is_running(exchange)
        detail = f"attempt {number} of {exchange.backend.retry.settings.max_attempts}: {detail}"
    return detail, more


def finished(exchange: Exchange, course: Course, code: str) -> None:
    """The exchange has ended with ``code``; the plan is told what it does not know yet."""
    steps = course.steps
    if isinstance(steps.next, Attempt) and not _is_running(exchange):
        course.first.not_made()  # its client has left the line
    if not isinstance(steps.next, Attempt) or code == "C499":
        steps.close()
    elif code == "E906":
        steps.attempted(Ended(error=DeadlineExceededError("the budget is spent")))
    elif code in CODES:
        steps.attempted(Ended(error=SeawallError(code)))
    else:
        steps.attempted(Ended(result=code))
