"""Is it worth calling? Opens after ``failure_threshold`` failures in a row, tries again with one trial.

Theory of operation. ``_epoch`` stands for "since the last change of state". While ``CLOSED`` it is the token of every
call, so a report that comes with another epoch is stale and moves nothing: a slow call admitted before the trip neither
closes nor re-opens a circuit. ``fast`` is that epoch while calls pass freely, else ``None``: all the hot path looks at.

A half-open trial is a token of its own, with a lease: with several trials out, or after a lease has ended and its place
was given to another, the late one must be told from the live one. It is out while its caller holds it: one that was lost
on the way, to an interrupt between any two steps, is nobody's to settle and keeps no place.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from math import inf

from ..counters import reading
from ..errors import CircuitOpenError, ConfigError
from ..events import Listener, Outbox
from ..outcome import FAILURE, SUCCESS, Outcome, Rule, Rules, to_rules
from .blocks import Blocks
from .circuit import CLOSED, DISABLED, ENFORCE, OBSERVE, QUIET
from .states import BreakerSettings, BreakerSnapshot, Mode, Token, to_mode, to_settings

__all__ = ["CircuitBreaker"]


class CircuitBreaker(Blocks):
    """Stops calls to what keeps failing, and finds out with single trials when it is well again.

    Use it as a decorator (``@breaker``), by ``call``/``acall``, as a block (``with``, ``async with``), by token
    (``admit``, then ``settle`` or ``discard``), or without tokens (``allow``, ``record_success``, ``record_failure``).

    Args:
        failure_threshold: Failures in a row that open the circuit, 1 or more (5). Any success starts the count anew.
        reset_timeout: Seconds from the opening to the first trial, 0 or more (10.0). Fixed at the moment it opens.
        clock: Seconds that never go back. The only way time is read: a fake clock drives every transition.
        half_open_max_calls: Trials out at once (1).
        success_threshold: Successful trials in a row that close the circuit (1).
        trial_lease: Seconds after which a silent trial has failed. Default: ``attempt_limit`` + 1, or else the larger
            of 60 and ``reset_timeout``. Doubles with each expiry in a row, up to an hour.
        attempt_limit: Seconds one call can last at most, where its caller knows it; bounds the patience with calls that
            are cut short (``reset_timeout`` where it is not known).
        counts_as_failure: Types of errors, predicates on the error, and ``on_result(predicate)``; see
            :class:`~seawall.outcome.Rules`. Default: any ``Exception``.
        ignores: Types and predicates on errors that count for nothing.
        name: In errors, events and snapshots. One breaker has one name, whatever it is put around.

    Cost while closed: one attribute load and one counter tick. Source: Nygard, Release It!, 2nd ed., ch. 5.
    """

    __slots__ = ("__weakref__",)

    def __init__(
        self,
        failure_threshold: int = 5,
        reset_timeout: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
        *,
        half_open_max_calls: int = 1,
        success_threshold: int = 1,
        trial_lease: float | None = None,
        attempt_limit: float | None = None,
        counts_as_failure: Rule | Iterable[Rule] = Exception,
        ignores: Rule | Iterable[Rule] = (),
        name: str = "",
    ) -> None:
        if callable(failure_threshold):
            raise TypeError(
                "a breaker takes numbers, not the function: write  breaker = CircuitBreaker()  and then  @breaker"
            )
        if not callable(clock):
            raise TypeError(f"clock is called to read the time in seconds, like time.monotonic; {clock!r} cannot be called")
        settings = to_settings(
            failure_threshold, reset_timeout, half_open_max_calls, success_threshold, trial_lease, attempt_limit
        )
        super().__init__(settings, to_rules(counts_as_failure, ignores), clock, name)

    # -- what the guard asks for
    @property
    def breaker(self) -> CircuitBreaker:
        """Itself: what the guard goes through."""
        return self

    @property
    def bulkhead(self) -> None:
        """A breaker by itself has no bulkhead."""
        return None

    # -- numbers: reading changes nothing
    @property
    def failures(self) -> int:
        """Failures in a row, failed trials included; 0 after closing."""
        with self._lock:
            return self._carried + len(self._epoch.failed)

    @property
    def started(self) -> int:
        """Calls that were let through to the target."""
        return reading(self.started_ticks)

    @property
    def rejected(self) -> int:
        """Calls refused."""
        return reading(self._rejected)

    @property
    def mode(self) -> Mode:
        """The mode in force; one that has expired is over."""
        return ENFORCE if self.clock() >= self._mode_until else self._mode

    @property
    def retry_after(self) -> float:
        """Seconds until the next call may go: 0 when it may now, ``inf`` when it was forced open without an end."""
        now = self.clock()
        with self._lock:
            return max(0.0, self._free_at_locked(now) - now)

    def snapshot(self) -> BreakerSnapshot:
        """All numbers at once; changes nothing, not even what time alone would."""
        now = self.clock()
        with self._lock:
            expired = now >= self._mode_until
            mode = ENFORCE if expired else self._mode
            due = self.state is not CLOSED and mode in (ENFORCE, OBSERVE) and now >= self._trial_at_locked()
            return BreakerSnapshot(
                self.name, self.state, mode, "" if expired else self._mode_reason, self.failures, self.started,
                reading(self._failed), self.rejected, self.would_reject, self._opened, self.retry_at,
                max(0.0, self._free_at_locked(now) - now), due, len(self._out_locked()), self._reason,
            )  # fmt: skip

    # -- by token
    def check(self, remaining: float | None = None) -> None:
        """Raise what :meth:`admit` would raise now, and take nothing."""
        if self.fast is None:
            self.ask(remaining, take=False)

    def admit(self, remaining: float | None = None) -> Token:
        """Let one call through, or refuse it at once.

        Args:
            remaining: Seconds the caller has left. A trial goes only to a call that can last the attempt limit; after
                one more attempt limit without such a call, to any.

        Returns:
            The token to give back to :meth:`settle` or :meth:`discard`, exactly once.

        Raises:
            CircuitOpenError: ``retry_after`` is the seconds until the next trial.
        """
        token = self.fast or self.ask(remaining)
        next(self.started_ticks)
        return token

    # -- without tokens: a report belongs to the oldest trial taken by allow(), else to the present epoch, else to nobody
    def allow(self) -> bool:
        """Whether a call may go now; in half-open taking the trial. Report by :meth:`record_success` or ``_failure``."""
        if self.fast is None:
            try:
                self.ask(by_hand=True)
            except CircuitOpenError:
                return False
        next(self.started_ticks)
        return True

    def record_success(self) -> None:
        """A call allowed by :meth:`allow` went well."""
        epoch = self.fast
        if epoch is None:
            self._report(SUCCESS, "")
        elif epoch.noted:
            self._forget(epoch)

    def record_failure(self, word: str = "") -> None:
        """A call allowed by :meth:`allow` failed; ``word`` (an error's name or code) is for the message."""
        self._report(FAILURE, word)

    def _report(self, outcome: Outcome, word: str) -> None:
        epoch = self.fast
        if epoch is None:
            now = self.clock()
            with self._lock:
                self._let_time_pass_locked(now)
                if self.state is CLOSED and self._mode is not DISABLED:
                    epoch = self._epoch
                elif self._by_hand:  # found and settled in one: two reports at once are never for the same trial
                    trial, *self._by_hand = self._by_hand
                    self._settle_trial_locked(trial, now, outcome, word)
            self.outbox.flush()
        if epoch is not None:
            self.settle(epoch, outcome, word)

    # -- by hand
    def set_mode(self, mode: Mode | str, reason: str = "", *, expires_in: float | None = None) -> None:
        """Put the breaker into ``mode``, for ``expires_in`` seconds or until set again.

        Args:
            mode: One of :class:`Mode`, or its name.
            reason: For whoever asks at three in the morning; in errors, events and snapshots.
            expires_in: Seconds after which it is ``ENFORCE`` again, more than 0; ``None``: never.

        Raises:
            ConfigError: There is no such mode, or no such time.
        """
        new, now = to_mode(mode), self.clock()
        if expires_in is not None and not expires_in > 0:
            raise ConfigError(f"expires_in is in seconds, more than 0, or None for no end, not {expires_in!r}")
        with self._lock:
            self._let_time_pass_locked(now)
            self._set_mode_locked(new, reason, now, inf if expires_in is None else now + expires_in)
        if self.outbox.waiting:
            self.outbox.flush()

    def reset(self, reason: str = "reset by hand") -> None:
        """Close the circuit and forget what was counted; the mode stays."""
        now = self.clock()
        with self._lock:
            self._let_time_pass_locked(now)
            self._become_locked(CLOSED, now, reason)
        if self.outbox.waiting:
            self.outbox.flush()

    def configure(self, settings: BreakerSettings, rules: Rules | None = None) -> None:
        """Change the numbers in place: state and counters stay, an open time already fixed is not moved."""
        settings.checked()
        now = self.clock()
        with self._lock:
            self._let_time_pass_locked(now)  # what has ended by now has ended under the old numbers
            self.settings, self.failure_threshold = settings, settings.failure_threshold
            self.rules = rules or self.rules
            self._epoch.noted = True  # the next success asks whether results are judged now
        if self.outbox.waiting:
            self.outbox.flush()

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell ``listener`` each change of state or mode, in order, outside any lock. Returns what ends it."""
        with self._lock:
            if self.outbox is QUIET:
                self.outbox = Outbox()
        return self.outbox.add(listener)
