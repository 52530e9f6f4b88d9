"""Names to addresses, each target for itself: one name server that hangs delays nobody else.

Theory of operation
-------------------
``getaddrinfo`` cannot be interrupted. Event loops run it in a pool of threads that all share, and a few lookups that
hang fill the pool: then every connect of every target waits. Here each name has a :class:`Resolver` of its own, which
starts a daemon thread when it has something to ask and never has more than one lookup under way. A hanging name server
holds one thread of one target and nothing else, and not the end of the program either.

What is known is answered at once, old or not; an answer older than ``refresh`` seconds starts a lookup in the
background and goes on serving meanwhile, and also after that lookup has failed: addresses rarely move, and a name
server that is down must not take a target down that is up. A failure is kept for one second, so that calls in a row do
not ask in a row. (``getaddrinfo`` does not tell how long an answer is valid, hence the fixed ``refresh``.)

Ages count from the *start* of the lookup, in the caller's clock. So no clock is read here, and an answer is never
taken for fresher than it is.

An IP literal is answered from the start and never sees a thread.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterable
from typing import Any

Address = tuple[int, tuple[Any, ...]]
"""Family and socket address, as ``socket.socket(family)`` and ``connect`` take them."""

Addresses = tuple[Address, ...]
Lookup = Callable[..., Iterable[tuple[Any, ...]]]

FAILURE_KEPT = 1.0
"""Seconds for which a failed lookup is not repeated."""


class Waiter:
    """Somebody who waits for the first answer; see :meth:`Resolver.when_known`."""

    __slots__ = ("_callback", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[Addresses | OSError], object]) -> None:
        self._loop = loop
        self._callback: Callable[[Addresses | OSError], object] | None = callback

    def cancel(self) -> None:
        """Call back no more, and hold the callback no longer. On the loop's thread; safe at any time."""
        self._callback = None

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits here any more."""
        return self._callback is None

    def _deliver(self, answer: Addresses | OSError) -> None:
        try:
            self._loop.call_soon_threadsafe(self._call, answer)
        except RuntimeError:  # the loop is closed, and who waited on it is gone
            self._callback = None

    def _call(self, answer: Addresses | OSError) -> None:
        callback, self._callback = self._callback, None
        if callback is not None:
            callback(answer)


class Resolver:
    """The addresses of one host and port. Any thread may ask.

    Args:
        host: A name or an IP literal (IPv6 without brackets).
        port: Port number, put into the addresses.
        lookup: Called as ``lookup(host, port, type=SOCK_STREAM)`` in a thread; tests give their own.
        refresh: Seconds after which an answer is looked up again. 30: a target that moves is followed within half a
            minute, and a name server sees two questions a minute for each target in use.
    """

    def __init__(self, host: str, port: int, *, lookup: Lookup = socket.getaddrinfo, refresh: float = 30.0) -> None:
        self.host = host
        self.port = port
        self._lookup = lookup
        self._refresh = refresh
        self._lock = threading.Lock()
        self._waiters: list[Waiter] = []
        self._asked_at: float | None = None
        self._under_way = False
        self._error: OSError | None = None
        self._known = _literal(host, port)
        self._fixed = self._known is not None

    @property
    def error(self) -> OSError | None:
        """Why the last lookup failed; None if it did not, or none has ended yet."""
        return self._error

    def addresses(self, now: float) -> Addresses | None:
        """What is known, in the order in which to try it; never waits.

        Args:
            now: The loop's time (or any one monotonic clock) in seconds.

        Returns:
            The addresses, maybe older than ``refresh``, while a new lookup has been started; None if no lookup has
            succeeded yet: then :meth:`when_known` tells.
        """
        if self._fixed:
            return self._known
        with self._lock:
            known = self._known
            start = self._should_ask_locked(now)
        if start:
            self._ask()
        return known

    def when_known(
        self, loop: asyncio.AbstractEventLoop, callback: Callable[[Addresses | OSError], object]
    ) -> Waiter:
        """Call ``callback`` once on ``loop``, never from within this call, with the addresses or the error.

        Known addresses, or a failure less than a second old, are the answer at once; otherwise that of the lookup
        under way, which may take as long as the system's resolver likes: the caller sets the limit, and cancels.

        Returns:
            The waiter; :meth:`Waiter.cancel` ends the wait.
        """
        waiter = Waiter(loop, callback)
        answer: Addresses | OSError | None = self.addresses(loop.time())
        if answer is None:
            with self._lock:
                answer = self._known or (None if self._under_way else self._error)
                if answer is None:
                    self._waiters = [other for other in self._waiters if not other.cancelled]
                    self._waiters.append(waiter)
        if answer is not None:
            waiter._deliver(answer)
        return waiter

    def _should_ask_locked(self, now: float) -> bool:
        """Decide whether a lookup is to be started, and claim it."""
        if self._under_way:
            return False
        kept = self._refresh if self._error is None else min(FAILURE_KEPT, self._refresh)
        if self._asked_at is not None and now - self._asked_at < kept:
            return False
        self._asked_at = now
        self._under_way = True
        return True

    def _ask(self) -> None:
        thread = threading.Thread(target=self._run, name=f"seawall-resolve {self.host}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # no more threads: as if the lookup had failed
            self._settle(OSError(f"cannot look up {self.host}: {error}"))

    def _run(self) -> None:
        try:
            found = self._lookup(self.host, self.port, type=socket.SOCK_STREAM)
            answer: Addresses | OSError = _addresses(found) or OSError(f"{self.host} has no address")
        except OSError as error:
            answer = error.with_traceback(None)  # it is kept, and would keep this frame
        except Exception as error:  # such as UnicodeError for a label of 64 letters; a waiter must hear of anything
            answer = OSError(f"cannot look up {self.host}: {error}")
        self._settle(answer)

    def _settle(self, answer: Addresses | OSError) -> None:
        with self._lock:
            self._under_way = False
            if isinstance(answer, OSError):
                self._error = answer
            else:
                self._known, self._error = answer, None
            waiters, self._waiters = self._waiters, []
        for waiter in waiters:  # they wait only while nothing is known, so this is their answer
            waiter._deliver(answer)


def _addresses(found: Iterable[tuple[Any, ...]]) -> Addresses:
    """Family and address of each answer, without repetitions, in order."""
    return tuple(dict.fromkeys((entry[0], entry[4]) for entry in found))


def _literal(host: str, port: int) -> Addresses | None:
    """The address of an IP literal (scope included), without asking anybody; None for a name."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, ValueError):  # ValueError: what cannot be a host name at all; the lookup will say so
        return None
    return _addresses(found)
