"""What happened, told in order and never under a policy's lock."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple, TypeAlias

__all__ = [
    "Event",
    "Listener",
    "ModeChanged",
    "Outbox",
    "RetryEnded",
    "RetryEvent",
    "RetryListener",
    "RetryScheduled",
    "StateChanged",
]

log = logging.getLogger("seawall")


class StateChanged(NamedTuple):
    """A circuit went from ``old`` to ``new``. Times are on the breaker's clock, in seconds."""

    target: str
    old: str
    new: str
    at: float
    retry_at: float
    reason: str


class ModeChanged(NamedTuple):
    """An operator's mode was set, or has expired. ``at`` is on the breaker's clock, in seconds."""

    target: str
    old: str
    new: str
    at: float
    reason: str


class RetryScheduled(NamedTuple):
    """An attempt ended in a way that is retried, and after ``delay`` seconds there will be another."""

    target: str
    attempt: int
    delay: float
    error: BaseException | None
    at: float


class RetryEnded(NamedTuple):
    """A call that was not over with its first attempt is over: after how many, for what reason, and the waits between."""

    target: str
    reason: str
    attempts: int
    waited: float
    at: float


Event: TypeAlias = StateChanged | ModeChanged
Listener: TypeAlias = Callable[[Event], object]
RetryEvent: TypeAlias = RetryScheduled | RetryEnded
RetryListener: TypeAlias = Callable[[RetryEvent], object]


class Outbox:
    """Events are posted under the policy's lock, hence in the order of the state, and delivered after it.

    Whoever comes out of the lock delivers what is there; while somebody is delivering, the others leave theirs to him.
    So the order holds, a listener may call back into the policy, and one that raises is logged and changes nothing.

    The right to deliver is the one element of ``_baton``. ``del`` takes it: no call, so no signal can fall between the
    taking and the ``try`` that puts it back (a lock taken by ``acquire()`` is lost to a ``KeyboardInterrupt`` there).
    """

    __slots__ = ("_baton", "_lock", "listeners", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Event | RetryEvent] = deque()
        self._baton: list[None] = [None]
        self._lock = Lock()
        self.listeners: tuple[Callable[[Any], object], ...] = ()  # replaced, never mutated

    def add(self, listener: Callable[[Any], object]) -> Callable[[], None]:
        """Tell ``listener`` each event from now on. Returns the function that ends it."""

        def remove() -> None:
            with self._lock:
                self.listeners = tuple(other for other in self.listeners if other is not listener)

        with self._lock:
            self.listeners = (*self.listeners, listener)
        return remove

    def post(self, event: Event | RetryEvent) -> None:
        """Queue an event; who posts under the policy's lock calls :meth:`flush` after it."""
        if self.listeners:
            self.waiting.append(event)

    def flush(self) -> None:
        """Deliver what is queued, unless somebody is at it already."""
        while self.waiting:
            try:
                del self._baton[-1]
            except IndexError:
                return
            try:
                while self.waiting:
                    self._deliver(self.waiting.popleft())
            finally:
                self._baton.append(None)

    def _deliver(self, event: Event | RetryEvent) -> None:
        for listener in self.listeners:
            try:
                listener(event)
            except Exception:
                log.exception("listener %r failed on %r", listener, event)

    def after_fork(self) -> None:
        """Start clean in the child: what was under way is the parent's to tell."""
        self.waiting.clear()
        self._baton = [None]
        self._lock = Lock()
