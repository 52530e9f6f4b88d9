"""urllib3's connections, waiting no longer than the attempt they work for; for urllib3 and for requests.

A read limit counts from byte to byte: who sends one byte a second is never silent. Here the socket is given what is left
in all before each connect, send and read. Reading is in the hands of :mod:`http.client`, which takes a file from the
socket for each answer, reads head and body from it, and closes it where the body ends, or where nobody wants more of it.
A file of our own in its place knows the attempt for which it reads: it cuts each read, sees what went wrong, and where it
is closed the attempt is over. That holds for a body that is read long after the request, in another thread as well.

urllib3 wraps its errors in each other, a refused connection in a ``MaxRetryError`` and a time limit in a
``ProtocolError``; :func:`wrapped` looks inside.
"""

from __future__ import annotations

import io
import weakref
from collections.abc import Callable, Iterator
from http.client import HTTPResponse as Wire
from http.client import IncompleteRead
from math import inf
from typing import Any, NamedTuple

from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import (
    ConnectTimeoutError,
    EmptyPoolError,
    MaxRetryError,
    ProtocolError,
    ReadTimeoutError,
)
from urllib3.exceptions import TimeoutError as LimitError
from urllib3.util import Timeout

from .attempt import Attempt, running
from .native import Natives

__all__ = ["OWN", "TIMEOUTS", "UNSENT", "Pace", "Paced", "PacedPool", "paced", "paced_classes", "wrapped"]

_NO_POOL: Any = None  # urllib3 says it that way itself, where an answer has left its pool
SHORTEST = 0.001  # s: 0 would mean not to wait at all, which is another thing


class Pace(NamedTuple):
    """What the connections of one client go by.

    Attributes:
        natives: The client's errors.
        gap: Seconds between two parts of a body; ``None``: as the client says.
        outside: What the client makes of an error of urllib3's in a body: that is what rules get to see.
    """

    natives: Natives
    gap: float | None
    outside: Callable[[Exception], Exception]


# -- errors that stand in each other
def insides(error: object) -> Iterator[BaseException]:
    """``error``, and the errors it was made of."""
    if isinstance(error, BaseException):
        yield error
        inner = (error.reason,) if isinstance(error, MaxRetryError) else error.args
        for part in inner:
            yield from insides(part)


class _Wrapped(type):
    kinds: tuple[type[BaseException], ...]

    def __instancecheck__(cls, error: object) -> bool:
        return any(isinstance(inner, cls.kinds) for inner in insides(error))


def wrapped(*kinds: type[BaseException]) -> tuple[type[BaseException], ...]:
    """For :func:`isinstance`: errors of ``kinds``, and errors that hold one."""
    made: Any = _Wrapped("Wrapped", (BaseException,), {"kinds": kinds})
    return (made,)


TIMEOUTS = wrapped(LimitError, TimeoutError, EmptyPoolError)
UNSENT = wrapped(ConnectTimeoutError)  # NewConnectionError and NameResolutionError are ones
OWN = wrapped(EmptyPoolError)


# -- the way out: connect and send
def _limited() -> Attempt | None:
    attempt = running.get()
    return None if attempt is None or attempt.end == inf else attempt  # a gap comes with a total


def _allowed(attempt: Attempt, own: float | None) -> float | None:
    left = attempt.cut(own)
    if left is not None and left <= 0.0:
        raise TimeoutError("the time of the attempt is over")
    return left


class _Options(list[Any]):
    """Socket options: looked through before each address of a host that has several, and by then it may be late."""

    def __init__(self, options: Any, attempt: Attempt) -> None:
        super().__init__(options or ())
        self._attempt = attempt

    def __iter__(self) -> Iterator[Any]:
        _allowed(self._attempt, None)
        return super().__iter__()


class Paced(HTTPConnection):
    """A connection: stands before the client's own class of one, see :func:`paced`."""

    pace: Pace

    def _new_conn(self) -> Any:
        attempt = _limited()
        if attempt is None:
            return super()._new_conn()
        own, options = self.timeout, self.socket_options
        try:
            self.timeout, self.socket_options = _allowed(attempt, self._own()), _Options(options, attempt)
            sock = super()._new_conn()
        except TimeoutError as error:
            raise ConnectTimeoutError(self, "There was no time left to connect.") from error
        finally:
            self.timeout, self.socket_options = own, options
        sock.settimeout(max(SHORTEST, attempt.cut(self._own()) or 0.0))  # for the handshake of TLS
        return sock

    def _own(self) -> float | None:
        return Timeout.resolve_default_timeout(self.timeout)

    def _tunnel(self) -> None:
        super()._tunnel()
        attempt = _limited()
        if attempt is not None:
            self.sock.settimeout(max(SHORTEST, attempt.cut(self._own()) or 0.0))

    def send(self, data: Any) -> None:
        """Send it, for as long as there is time."""
        attempt = _limited()
        if attempt is not None:
            if self.sock is None:
                self.connect()
            self.sock.settimeout(_allowed(attempt, self._own()))  # one limit for all of it, with TLS as well
        super().send(data)

    def _wire(self, sock: Any, debuglevel: int = 0, method: str | None = None, url: str | None = None) -> Wire:
        """What http.client reads the answer with."""
        attempt = running.get()
        if attempt is None:
            return Wire(sock, debuglevel, method, url)
        own = None if attempt.end == inf else self._own()
        return _PacedWire(_Raw(sock, attempt, self.pace, own), debuglevel, method, url)

    response_class: Any = _wire


# -- the way in: head and body
class _PacedWire(Wire):
    _raw: _Raw

    def __init__(self, raw: Any, debuglevel: int, method: str | None, url: str | None) -> None:
        self._raw = raw
        super().__init__(raw, debuglevel, method, url)  # all it asks of a socket is makefile()

    def begin(self) -> None:
        """Read the head. That of a proxy's answer to CONNECT is read without: with it nothing begins or ends."""
        super().begin()
        self._raw.begin(self)


class _Raw(io.RawIOBase):
    """Bytes from the socket, for http.client's buffer."""

    def __init__(self, sock: Any, attempt: Attempt, pace: Pace, own: float | None) -> None:
        self._inner = sock.makefile("rb", 0)  # counts among the socket's files: it stays open for as long as this one
        self._sock, self._attempt, self._pace, self._own = sock, attempt, pace, own
        self._limited = attempt.end != inf
        self._wire: weakref.ref[Wire] | None = None  # once its head is there
        self._error: Exception | None = None
        self._dry = self._at_end = False

    def makefile(self, mode: str) -> io.BufferedReader:
        """What http.client reads from."""
        return io.BufferedReader(self)

    def begin(self, wire: Wire) -> None:
        """The head is there; and the beginning of the body, if it came with it."""
        self._wire = weakref.ref(wire)
        self._attempt.head_began()
        if self._limited:
            self._dry = True
            file: Any = wire.fp
            if file.peek(1):
                self._attempt.body_began(self._pace.gap)
            self._dry = False

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Wait for some bytes, for as long as there is time."""
        if self._dry:
            return None
        try:
            if self._limited:
                self._sock.settimeout(_allowed(self._attempt, self._own))
            count: int | None = self._inner.readinto(buffer)
        except Exception as error:
            self._error = error
            raise
        if not count:
            self._at_end = count == 0
        elif self._limited and self._wire is not None:
            self._attempt.body_began(self._pace.gap)
        return count

    def close(self) -> None:
        """The body has come, or has broken off, or nobody wants more of it."""
        if self.closed:
            return
        try:
            self._inner.close()
        finally:
            super().close()
            if self._wire is not None:
                self._end(self._wire())

    def _end(self, wire: Wire | None) -> None:
        error, attempt, natives = self._error, self._attempt, self._pace.natives
        if error is None and self._at_end and wire is not None and (wire.chunked or wire.length):
            error = IncompleteRead(b"", wire.length)
        if error is None:
            attempt.finish()
            return
        if isinstance(error, TimeoutError):
            told: Exception = ReadTimeoutError(_NO_POOL, "", "Read timed out.")
        else:
            told = ProtocolError(f"Connection broken: {error!r}", error)
        attempt.body_broke(attempt.verdict(self._pace.outside(told), natives), natives)


# -- where the connections come from
class PacedPool(HTTPConnectionPool):
    """A pool: stands before the client's own class of one, see :func:`paced`."""

    def _get_conn(self, timeout: float | None = None) -> Any:
        attempt = _limited()
        return super()._get_conn(timeout if attempt is None else max(0.0, attempt.cut(timeout) or 0.0))


def paced(kind: type[HTTPConnectionPool], pace: Pace, *before: type, **members: Any) -> type[HTTPConnectionPool]:
    """A class of pools whose connections are paced.

    Args:
        kind: What they are otherwise.
        pace: What they go by.
        before: Classes that stand before ``kind``.
        members: What else the class holds.
    """
    connection: Any = kind.ConnectionCls
    if isinstance(connection, type) and issubclass(connection, HTTPConnection):
        connection = type(connection.__name__, (Paced, connection), {"pace": pace})
    return type(kind.__name__, (*before, PacedPool, kind), {"ConnectionCls": connection, **members})


def paced_classes(manager: Any, pace: Pace, *before: type, **members: Any) -> None:
    """Let ``manager`` make its pools by :func:`paced`."""
    classes = manager.pool_classes_by_scheme
    if not any(issubclass(kind, PacedPool) for kind in classes.values()):
        manager.pool_classes_by_scheme = {
            scheme: paced(kind, pace, *before, **members) for scheme, kind in classes.items()
        }
