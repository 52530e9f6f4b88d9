"""One HTTP/1.1 call on a plain socket, measured: where it ended, and which limit ended it.

Each wait is for what is left of the limit that ends first, so nothing that a target does gets past it::

    connect  name look-up, connection and TLS, all addresses together: `connect` seconds
    read     the request out, and the whole answer in: no silence longer than `read` seconds
    total    all of it, where a total is set: a target that drips one byte at a time breaks no other limit
    budget   as total, from outside: nothing runs on when its caller's time is over

No proxy is used, no redirect followed, no connection kept: what is measured is one call.
"""

from __future__ import annotations

import functools
import socket
import time
from math import inf
from typing import TYPE_CHECKING

from seawall.deadline import Deadline, current_deadline
from seawall.errors import seconds

from .answer import Answer, BadAnswer
from .called import Called, Interrupted, in_words, is_ragged_end
from .lookup import Address, addresses
from .request import Headers, written
from .url import Url

if TYPE_CHECKING:
    import ssl

__all__ = ["Called", "Interrupted", "call", "prepare"]

CONNECT, READ = 0.3, 2.0  # s; the hub's own
PIECE = 16384  # bytes between two looks at the clock: taking apart a body of tiny chunks takes its time


def call(
    url: Url | str,
    *,
    connect: float = CONNECT,
    read: float = READ,
    total: float | None = None,
    deadline: Deadline | None = None,
    min_ms: float = 0.0,
    method: str = "GET",
    headers: Headers = (),
    body: bytes | None = None,
) -> Called:
    """Call ``url`` once.

    Args:
        url: ``http://`` or ``https://``.
        connect: Seconds until the connection stands (0.3, the hub's default).
        read: Seconds without a byte (2, the hub's default).
        total: Seconds for all of it; ``None`` for no such limit.
        deadline: The end of the budget; default: the one in force (``with seawall.budget(...)``), if any.
        min_ms: With less than that left of the budget, in milliseconds, the call is not made.
        method: Of the request.
        headers: Names and values, besides Host, User-Agent and Accept.
        body: Of the request.

    Raises:
        ConfigError: This is no URL, or no request.
        Interrupted: Ctrl-C; what there is so far is on it.
    """
    where = url if isinstance(url, Url) else Url.parse(url)
    request = written(where, method, headers, body)
    prepare(where)
    deadline = current_deadline() if deadline is None else deadline
    left = inf if deadline is None else deadline.remaining()
    if left <= 0.0 or left * 1000 < min_ms:
        why = f"{left * 1000:.0f} ms are left" if left > 0.0 else "nothing is left"
        return Called(url=where.text, phase="no_budget", error=f"not made: {why}", limit="budget", read_limit=left)
    return _Call(where, method, connect, min(read, left), total, left).made(request)


def prepare(*urls: Url) -> None:
    """Do beforehand what takes its time and has nothing to do with a target: read the certificates, for ``https://``."""
    if any(url.scheme == "https" for url in urls):
        tls()


@functools.cache
def tls() -> ssl.SSLContext:
    """The context of all calls: the system's authorities, names checked."""
    import ssl

    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


class _Over(Exception):
    """A limit has ended the call."""

    def __init__(self, limit: str, error: str) -> None:
        super().__init__(error)
        self.limit = limit


class _Call:
    """A call on its way. ``phase`` and ``doing`` say how far it has come."""

    def __init__(self, url: Url, method: str, connect: float, read: float, total: float | None, left: float) -> None:
        self.url, self.connect, self.read = url, connect, read
        self.total, self.left = inf if total is None else total, left
        self.answer = Answer(method)
        self.phase, self.doing = "connect", "name look-up"
        self.began = self.moved = time.monotonic()
        self.ends = self.began + min(self.total, left)
        self.sock: socket.socket | None = None

    def made(self, request: bytes) -> Called:
        """Do it. Whatever happens is an outcome; Ctrl-C alone comes out, as :class:`Interrupted`."""
        try:
            self._exchange(request)
        except _Over as over:
            return self._ended(self._phase_of(over), str(over), over.limit)
        except (OSError, BadAnswer) as error:
            return self._ended(self.phase, in_words(error, self.url))
        except KeyboardInterrupt:
            raise Interrupted(self._ended(self.phase, f"interrupted, waiting for the {self.doing}")) from None
        finally:
            if self.sock is not None:
                self.sock.close()
        return self._ended("done", None)

    def _ended(self, phase: str, error: str | None, limit: str = "") -> Called:
        answer = self.answer
        return Called(
            url=self.url.text, phase=phase, status=answer.status, elapsed=time.monotonic() - self.began, error=error,
            limit=limit, read_limit=self.read, headers=answer.headers, body=bytes(answer.body),
            body_bytes=answer.body_bytes,
        )  # fmt: skip

    def _phase_of(self, over: _Over) -> str:
        """A budget cuts the limits of its calls: a target that is silent to the end has exceeded its read limit."""
        if over.limit == "budget":
            return "total" if self.answer.begun else self.phase
        return over.limit

    # -- limits
    def _wait(self, ends: float) -> None:
        """Let the next step on the socket take what is left until ``ends``, or until the end of it all."""
        assert self.sock is not None
        self.sock.settimeout(self._time_until(ends))

    def _time_until(self, ends: float) -> float:
        left = min(ends, self.ends) - time.monotonic()
        if left <= 0.0:
            raise self._over(ends)
        return left

    def _over(self, ends: float) -> _Over:
        """The limit that has ended it: of two at the same moment the narrower one."""
        if ends <= self.ends:
            if self.phase == "connect":
                return _Over("connect", f"no {self.doing} within {seconds(self.connect)}")
            return _Over("read", f"no byte for {seconds(self.read)}")
        if self.total <= self.left:
            return _Over("total", f"no {self.doing} within the total of {seconds(self.total)}")
        return _Over("budget", f"no {self.doing} within the {self.left * 1000:.0f} ms that were left of the budget")

    # -- connect
    def _exchange(self, request: bytes) -> None:
        ends = self.began + self.connect
        self._reach(self._looked_up(ends), ends)
        if self.url.scheme == "https":
            self._shake_hands(ends)
        self.phase, self.doing, self.moved = "read", "whole answer", time.monotonic()
        self._send(request)
        self._receive()

    def _looked_up(self, ends: float) -> list[Address]:
        try:
            return addresses(self.url.host, self.url.port, self._time_until(ends))
        except TimeoutError as late:
            raise self._timed_out(late, ends) from None

    def _reach(self, found: list[Address], ends: float) -> None:
        """Connect to the first address that takes it. One that is silent gets its share of the time, no more."""
        self.doing = "connection"
        for place, (family, address) in enumerate(found, start=1):
            share = time.monotonic() + self._time_until(ends) / (len(found) - place + 1)
            self.sock = socket.socket(family, socket.SOCK_STREAM)
            try:
                self._wait(ends if place == len(found) else share)
                self.sock.connect(address)
                self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return
            except OSError as error:
                if place == len(found):
                    raise self._timed_out(error, ends) from None
                self.sock.close()

    def _shake_hands(self, ends: float) -> None:
        assert self.sock is not None
        self.doing = "TLS handshake"
        try:
            secured = tls().wrap_socket(
                self.sock, server_hostname=self.url.host.partition("%")[0], do_handshake_on_connect=False,
                suppress_ragged_eofs=False,
            )  # fmt: skip
            self.sock = secured
            self._wait(ends)
            secured.do_handshake()
        except OSError as error:  # first: a certificate that is not accepted is a ValueError as well
            raise self._timed_out(error, ends) from None
        except ValueError as error:  # a host that cannot stand in a certificate
            raise OSError(str(error)) from None

    def _timed_out(self, error: OSError, ends: float) -> OSError | _Over:
        """The limit that ended a step, where one did; what the system reports as ``ETIMEDOUT`` is its own affair."""
        return self._over(ends) if isinstance(error, TimeoutError) and error.errno is None else error

    # -- read
    def _send(self, request: bytes) -> None:
        """A target may answer and hang up before it has read everything: its answer counts, so look for it."""
        assert self.sock is not None
        rest = memoryview(request)
        while rest:
            ends = self.moved + self.read
            self._wait(ends)
            try:
                rest = rest[self.sock.send(rest[:PIECE]) :]
            except TimeoutError as late:
                raise self._timed_out(late, ends) from None
            except OSError:
                return
            self.moved = time.monotonic()

    def _receive(self) -> None:
        assert self.sock is not None
        while not self.answer.done:
            ends = self.moved + self.read
            self._wait(ends)
            try:
                piece = self.sock.recv(PIECE)
            except OSError as error:
                self._broken(error, ends)
                return
            self.moved = time.monotonic()
            if not piece:
                self.answer.end()
                return
            self.answer.feed(piece)

    def _broken(self, error: OSError, ends: float) -> None:
        if not is_ragged_end(error) or self.answer.ends_with_the_connection:
            raise self._timed_out(error, ends)
        self.answer.end()  # says in the middle of what
