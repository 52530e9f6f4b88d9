"""The machine inside a breaker: what leads from state to state, and who may pass. Every ``_locked`` expects the lock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from math import inf
from threading import RLock
from weakref import ref

from ..counters import birth, reset_in_child
from ..errors import CircuitOpenError, seconds
from ..events import ModeChanged, Outbox, StateChanged
from .states import VOID, BreakerSettings, Epoch, Mode, State, Token, Trial, Word

CLOSED, OPEN, HALF_OPEN = State
ENFORCE, OBSERVE, FORCED_OPEN, FORCED_CLOSED, DISABLED = Mode
LONGEST_LEASE = 3600.0  # s; a trial that has been silent for an hour is not worth more patience
QUIET, UNUSED = Outbox(), count()  # stand in until somebody listens, until the first trouble; never posted to, never raised


def in_a_row(failures: int) -> str:
    """The count, in words."""
    return f"{failures} failure{'' if failures == 1 else 's'} in a row"


def last(word: Word) -> str:
    """The last error, in words."""
    return f", last {word if isinstance(word, str) else word.__name__}" if word else ""


class Circuit:
    """State, mode and trials. ``fast`` is the present epoch while calls pass freely, else ``None``.

    A circuit that has seen no trouble is small: what it needs only then, its lock among it, is made then.
    """

    __slots__ = (
        "_by_hand", "_carried", "_due", "_epoch", "_expiries", "_failed", "_made_lock", "_mode", "_mode_reason",
        "_mode_until", "_neutral", "_opened", "_reason", "_rejected", "_trials", "_wins", "clock", "fast", "name",
        "outbox", "retry_at", "settings", "shut_until", "state", "would_reject",
    )  # fmt: skip

    def __init__(self, settings: BreakerSettings, clock: Callable[[], float], name: str) -> None:
        self.settings, self.clock, self.name = settings, clock, name
        self.outbox = QUIET
        self.would_reject = self._opened = 0
        self._failed = self._rejected = UNUSED
        self._made_lock: RLock | None = None
        self._mode, self._mode_reason, self._mode_until = ENFORCE, "", inf
        self._due = inf  # when time alone changes something, or earlier
        self.state: State = CLOSED
        self.retry_at: float = 0
        self._reason = ""
        self.fast: Epoch | None = None
        self._epoch = Epoch()
        self._carried = 0  # failures in a row of the epochs before this one
        self._trials: Sequence[ref[Trial]] = ()  # weak: see _out_locked
        self._by_hand: Sequence[Trial] = ()  # those taken by allow(), oldest first: nobody else holds them
        self._wins = self._neutral = self._expiries = 0
        self._refresh()

    @property
    def _lock(self) -> RLock:
        return self._made_lock or self._first_trouble()

    def _first_trouble(self) -> RLock:
        with birth():
            lock, failed, rejected = RLock(), count(), count()
            reset_in_child(self)
            if self._made_lock is None:  # from here on no call: nobody comes between
                self._failed, self._rejected, self._made_lock = failed, rejected, lock
        assert self._made_lock is not None
        return self._made_lock

    def _after_fork(self) -> None:
        """In the child nobody holds the lock and no trial is out; what is known of the target still holds."""
        self._made_lock = RLock()
        if self._failed is UNUSED:  # forked in the middle of the first trouble
            self._failed, self._rejected = count(), count()
        if self.state is HALF_OPEN:
            self._epoch = Epoch()  # a trial of the parent is not the child's to settle
        self._trials = self._by_hand = ()
        self.outbox.after_fork()

    # -- asking
    def ask(self, remaining: float | None = None, *, take: bool = True, by_hand: bool = False) -> Token:
        """:meth:`admit` where ``fast`` is ``None``; not counted yet."""
        now = self.clock()  # before the lock: a clock is the user's code
        left = self.shut_until - now
        if left > 0.0:
            raise self.refusal(left)
        with self._made_lock or self._lock:
            if now >= self._due:
                self._let_time_pass_locked(now)
            token = self._admit_locked(now, take, by_hand, remaining)
            refusal = None if token is not None else self._refusal_locked(self._free_at_locked(now) - now)
        if self.outbox.waiting:
            self.outbox.flush()
        if refusal is not None:
            raise refusal
        assert token is not None
        return token

    # -- who may pass
    def _admit_locked(self, now: float, take: bool, by_hand: bool, remaining: float | None) -> Token | None:
        if self._mode is DISABLED:
            return VOID
        if self._mode is FORCED_OPEN:
            return None
        state, epoch = self.state, self._epoch  # the collector may change both at any allocation below
        if state is CLOSED:
            self._refresh()  # an interrupt in the middle of a change may have kept ``fast`` from being set
            return self._epoch
        due = self.retry_at if state is OPEN else self._trial_at_locked()
        if now >= due and (remaining is None or self._worth_a_trial(now, remaining)):
            return self._new_trial_locked(now, by_hand, epoch) if take else VOID
        if self._mode is OBSERVE:
            self.would_reject += take
            return VOID
        return None

    def _new_trial_locked(self, now: float, by_hand: bool, epoch: Epoch) -> Trial:
        if self.state is OPEN and epoch is self._epoch:
            self._become_locked(HALF_OPEN, now, self._reason)
            epoch = self._epoch
        lease = self.settings.lease()
        if self._expiries:
            lease = max(lease, min(LONGEST_LEASE, lease * 2.0 ** min(self._expiries, 60)))
        trial = Trial(Epoch() if epoch is VOID else epoch, now + lease)  # VOID: changed under our hands, so it is void too
        others = [ref(other) for other in self._out_locked()] if self._trials else ()
        self._trials = (*others, ref(trial))
        if trial.ends < self._due:
            self._due = trial.ends
        if by_hand:
            self._by_hand = (*self._by_hand, trial)
        return trial

    def _out_locked(self) -> list[Trial]:
        """The trials not settled yet. A token that nobody holds any more can never be settled, and is not out.

        So an interrupt between the taking of a trial and its settling, wherever it falls, costs nothing.
        """
        # By its epoch too: the collector may have closed a coroutine, and that the circuit, while a trial was being made.
        epoch = self._epoch
        trials = [trial for out in self._trials if (trial := out()) is not None]
        return [trial for trial in trials if trial.epoch is epoch and not trial.settled]

    def _worth_a_trial(self, now: float, remaining: float) -> bool:
        limit = self.settings.attempt_limit
        return limit is None or remaining >= limit or now >= self.retry_at + limit

    def _trial_at_locked(self) -> float:
        """When the machine lets the next call go, the mode aside: on the clock, ``-inf`` where it may at any time."""
        if self.state is CLOSED:
            return -inf
        if self.state is OPEN:
            return self.retry_at
        if not self._trials or len(self._out_locked()) < self.settings.half_open_max_calls:
            return -inf
        return self._lease_end_locked()

    def _free_at_locked(self, now: float) -> float:
        """When the next call may go, the mode included: ``inf`` where only a hand can tell."""
        mode = ENFORCE if now >= self._mode_until else self._mode
        if mode is FORCED_OPEN:
            return max(self._mode_until, self._trial_at_locked())
        return self._trial_at_locked() if mode is ENFORCE else -inf

    def refusal(self, left: float) -> CircuitOpenError:
        """What is raised while ``shut_until`` lies ``left`` seconds ahead, which can be seen without the lock."""
        next(self._rejected)
        return CircuitOpenError(self.name, f"is open: {self._reason}", "OPEN", left)

    def _refusal_locked(self, left: float) -> CircuitOpenError:
        next(self._rejected)
        if self._mode is FORCED_OPEN:
            why = f": {self._mode_reason}" if self._mode_reason else ""
            reason, state = f"is forced open by hand{why}", OPEN
        elif left <= 0.0 and (limit := self.settings.attempt_limit) is not None:
            reason, state = f"keeps its trial for a call with {seconds(limit)} left ({self._reason})", self.state
        elif self.state is HALF_OPEN:
            reason, state = f"is half-open, its trial is still out ({self._reason})", HALF_OPEN
        else:
            reason, state = f"is open: {self._reason}", OPEN
        return CircuitOpenError(self.name, reason, state.value, None if left == inf else max(0.0, left))

    # -- what changes
    def _let_time_pass_locked(self, now: float) -> None:
        """What time alone has brought, each dated at its end: an expired mode, a trial that never came back."""
        while now >= (at := min(self._mode_until, self._lease_end_locked())):
            if at == self._mode_until:
                self._set_mode_locked(ENFORCE, "expired", at, inf)
            else:
                self._expiries += 1
                self._trial_failed_locked(at, "a trial gave no answer within its lease")
        self._due = at

    def _lease_end_locked(self) -> float:
        return min((trial.ends for trial in self._out_locked()), default=inf)

    def _trial_failed_locked(self, at: float, reason: str) -> None:
        self._carried += 1
        self._become_locked(OPEN, at, f"{reason}, {in_a_row(self._carried)}")

    def _set_mode_locked(self, new: Mode, reason: str, at: float, until: float) -> None:
        self.fast, self.shut_until = None, -inf
        old, self._mode = self._mode, new
        self._mode_reason, self._mode_until = ("", inf) if new is ENFORCE else (reason, until)
        self._due = -inf  # to be found out by the next to ask
        if old is not new:
            self.outbox.post(ModeChanged(self.name, old, new, at, reason))
        if new is DISABLED or old is DISABLED:  # what was under way is void
            self._epoch.noted = True
            self._epoch, self._trials, self._by_hand = Epoch(), (), ()
        if new is FORCED_CLOSED and self.state is not CLOSED:
            self._become_locked(CLOSED, at, "forced closed by hand")
        self._refresh()

    def _become_locked(self, new: State, at: float, reason: str) -> None:
        # The only call: a signal cannot fall between the stores that follow.
        old, epoch = self.state, VOID if new is OPEN else Epoch()
        self.fast, self.shut_until = None, -inf  # first of all: no short cuts while the rest is changing
        self._epoch.noted = True  # who comes back with it is judged in full, by the rules of then
        self._epoch, self._trials, self._by_hand = epoch, (), ()
        self._wins = self._neutral = 0
        self._due = self._mode_until
        self.state, self._reason = new, reason
        if new is OPEN:
            self._opened += 1
            self.retry_at = at + self.settings.reset_timeout
            if self._mode is ENFORCE:
                self.shut_until = self.retry_at
        elif new is CLOSED:
            self.retry_at = 0
            epoch.failed = []  # who has had trouble once has the list at hand
            self._carried = self._expiries = 0
            self._refresh()
        if old is not new and self.outbox.listeners:
            self.outbox.post(StateChanged(self.name, old, new, at, self.retry_at, reason))

    def _refresh(self) -> None:
        """What the hot paths look at without the lock: ``fast``, and until when everybody is refused."""
        mode = self._mode
        self.shut_until = self.retry_at if self.state is OPEN and mode is ENFORCE else -inf
        passes = self.state is CLOSED and self._mode_until == inf and mode in (ENFORCE, OBSERVE, FORCED_CLOSED)
        self.fast = self._epoch if passes else None
