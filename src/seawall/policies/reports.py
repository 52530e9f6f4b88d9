"""What becomes of the reports: how a call ended moves the machine, or does not.

``epoch.failed`` holds a word for each failure since the last success: its length is the count, its last word is for the
message. A failure appends, then looks at the length of *the same* list; a success puts none in its place. The k-th to
append sees at least k, so whoever reaches the threshold knows it, and a success in between counts as having come just
after: exact without a lock (only who starts a list takes it, so that two do not start two). ``epoch.noted`` spares a
success the looking: a failure appends, *then* raises it; a success lowers it, *then* forgets. A failure between the two
raises it again, and is forgotten now or by the next success: it counts as having come before this one, or after.
Relied on: ``list.append`` and the store of one slot are atomic, with the GIL and (by the list's own lock) without.

A call *cut* by its caller is no answer. ``epoch.cuts`` holds when the cut calls began, until any answer arrives; once
there are ``failure_threshold`` of them and the oldest began an attempt limit ago, nobody is at home, and they count.
"""

from __future__ import annotations

from collections.abc import Callable

from ..deadline import ambient, used
from ..errors import TimeoutExceededError, seconds
from ..outcome import CUT, DISCARDED, FAILURE, IGNORED, SUCCESS, Outcome, Rules, never_ran
from .circuit import CLOSED, FORCED_CLOSED, OPEN, Circuit, in_a_row, last
from .states import NONE, VOID, BreakerSettings, Epoch, Token, Trial, Word

__all__ = ["Reports"]

NEUTRAL_TRIALS = 3  # trials in a row without an answer that count as "still dead"


class Reports(Circuit):
    """A circuit, and the rules by which it takes reports."""

    __slots__ = ("failure_threshold", "rules")

    def __init__(self, settings: BreakerSettings, rules: Rules, clock: Callable[[], float], name: str) -> None:
        super().__init__(settings, clock, name)
        self.failure_threshold, self.rules = settings.failure_threshold, rules

    def settle(self, token: Token, outcome: Outcome, word: str = "", *, began: float | None = None) -> None:
        """The call admitted with ``token`` has ended.

        Args:
            token: From :meth:`admit`. A stale one moves nothing.
            outcome: How it ended.
            word: For the message of the circuit this opens: an error's name or code.
            began: When a cut call began, on the breaker's clock. Where it is not known, the moment of the cut stands in,
                so that an opening comes later, never sooner.

        Raises:
            RuntimeError: The trial had been settled before.
        """
        if type(token) is Trial:
            self._settle_trial(token, outcome, word)
        elif token is VOID:
            return
        elif outcome is SUCCESS:
            if token.noted:
                self._forget(token)
        elif outcome is FAILURE:
            self.fail(token, word)
        elif outcome is CUT:
            self._cut(token, began)
        elif outcome is IGNORED:
            token.cuts = NONE

    def discard(self, token: Token) -> None:
        """The call admitted with ``token`` never ran, or was abandoned by this program: counts for nothing."""
        self.settle(token, DISCARDED)

    # -- the same by the rules: what the guard asks for
    def returned(self, token: Token, result: object) -> None:
        """The call admitted with ``token`` returned ``result``: :meth:`settle` by the rules."""
        if self.rules.result_tests and self.rules.of_result(result) is FAILURE:
            self.fail(token, "result")
        elif type(token) is Trial:
            self._settle_trial(token, SUCCESS, "")
        else:
            self.settle(token, SUCCESS)

    def raised(self, token: Token, error: BaseException, fn: object) -> None:
        """The call of ``fn`` admitted with ``token`` raised ``error``: :meth:`settle` by the rules, in one step.

        Wrong arguments to ``fn`` count for nothing: it never ran. A client's own time-out after its caller's budget has
        ended is a cut: what was left of the budget was its limit.
        """
        outcome = self.rules.of_error(error)
        if type(error) is TypeError and never_ran(error, fn):
            outcome = DISCARDED
        elif used and outcome is FAILURE and _ran_out_of_budget(error):
            outcome = CUT
        self.settle(token, outcome, type(error).__name__)

    def fail(self, token: Token, word: Word) -> None:
        """The call admitted with ``token`` failed: :meth:`settle` without the choice."""
        failed = token.failed
        if failed is NONE:
            self._fail_first(token, word)
            return
        next(self._failed)
        failed.append(word)
        token.cuts, token.noted = NONE, True  # type: ignore[union-attr]  # an epoch: no trial has a list
        if len(failed) >= self.failure_threshold:
            self._trip(token, failed, word)  # type: ignore[arg-type]

    # -- inside
    def _forget(self, epoch: Epoch) -> None:
        epoch.noted = False
        if self.rules.result_tests or epoch is not self._epoch:  # only now: configure() sets rules, then raises it
            epoch.noted = True
        epoch.cuts = NONE
        if epoch.failed:
            epoch.failed = []

    def _fail_first(self, token: Token, word: Word) -> None:
        if type(token) is Trial:
            self._settle_trial(token, FAILURE, word)
        elif token is not VOID:
            with self._lock:
                if token.failed is NONE:
                    token.failed = []
            self.fail(token, word)

    def _trip(self, epoch: Epoch, failed: list[Word], word: Word, reason: str = "") -> None:
        now = self.clock()
        with self._made_lock or self._lock:
            if now >= self._due:
                self._let_time_pass_locked(now)
            if self._mode is FORCED_CLOSED:
                del failed[: -self.failure_threshold]  # recorded, but not without bound
            elif epoch is self._epoch and self.state is CLOSED:  # else it is stale, or another caller was first
                self._carried = len(failed)
                self._become_locked(OPEN, now, reason or f"{in_a_row(len(failed))}{last(word)}")
        if self.outbox.waiting:
            self.outbox.flush()

    def _cut(self, epoch: Epoch, began: float | None) -> None:
        now = self.clock()
        began = now if began is None else min(began, now)
        with self._lock:
            cuts = epoch.cuts
            if not cuts:
                epoch.cuts = cuts = [began]
            elif len(cuts) < self.failure_threshold:
                cuts.append(began)
            oldest = cuts[0] = min(cuts[0], began)
            epoch.noted = True
            enough = len(cuts) >= self.failure_threshold and now - oldest >= self.settings.patience()
        if enough:
            reason = f"no answer for {seconds(now - oldest)}, {len(cuts)} calls in a row cut by their callers"
            self._trip(epoch, [*epoch.failed, *["cut"] * len(cuts)], "cut", reason)

    def _settle_trial(self, trial: Trial, outcome: Outcome, word: Word) -> None:
        now = self.clock()
        with self._made_lock or self._lock:
            if trial.settled:
                raise RuntimeError(f"{self.name or 'breaker'}: this trial has been settled before")
            if now >= self._due:
                self._let_time_pass_locked(now)
            self._settle_trial_locked(trial, now, outcome, word)
        if self.outbox.waiting:
            self.outbox.flush()

    def _settle_trial_locked(self, trial: Trial, now: float, outcome: Outcome, word: Word) -> None:
        live = trial.epoch is self._epoch  # else its lease had ended, or the state was changed meanwhile
        trial.settled = True
        if outcome is FAILURE:
            next(self._failed)
        if not live:
            return
        self._expiries = 0
        if outcome is FAILURE:
            self._trial_failed_locked(now, f"a trial failed{last(word)}")
        elif outcome is SUCCESS:
            self._neutral = 0
            self._wins += 1
            if self._wins >= self.settings.success_threshold:
                self._become_locked(CLOSED, now, "the trial went well")
        else:
            self._neutral += 1
            if self._neutral >= NEUTRAL_TRIALS:
                self._become_locked(OPEN, now, f"{NEUTRAL_TRIALS} trials in a row ended without an answer")


def _ran_out_of_budget(error: BaseException) -> bool:
    if not isinstance(error, TimeoutError) or isinstance(error, TimeoutExceededError):
        return False
    deadline = ambient()
    return deadline is not None and deadline.expired
