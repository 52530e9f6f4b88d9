"""Budget, breaker and bulkhead for urllib3: ``pip install seawall[urllib3]``.

::

    http = seawall.adapters.urllib3.protect(urllib3.PoolManager(), wall)

Each request of a pool is a call, and so is each redirect that a manager follows. A pool that is used without a manager
follows redirects itself, inside one call.
"""

from __future__ import annotations

import io
from math import inf
from typing import Any, TypeVar

from ..errors import SeawallError
from ..target import Target
from ..wall import Wall
from .attempt import Attempt, running
from .exchange import KEEP, Exchange
from .extras import needing
from .native import Natives
from .protection import Protection
from .twice import warn_of_retries

with needing("urllib3"):
    from urllib3 import HTTPConnectionPool, HTTPHeaderDict, HTTPResponse, PoolManager
    from urllib3.exceptions import HTTPError, ReadTimeoutError
    from urllib3.exceptions import TimeoutError as LimitError
    from urllib3.util import Retry, parse_url

    from .urllib3_sockets import OWN, TIMEOUTS, UNSENT, Pace, PacedPool, paced, paced_classes

__all__ = ["Answer", "attempts", "protect"]

M = TypeVar("M", PoolManager, HTTPConnectionPool)

PART = 8192  # bytes of a failed answer that are read at once: what came before it broke off is not lost

natives = Natives(
    __name__, refused=HTTPError, late=LimitError, timeouts=TIMEOUTS, unsent=UNSENT, own=OWN
)


# -- answers
class _Timed(HTTPResponse):
    """A response that says by our error that the time of its attempt is over."""

    _attempt: Attempt
    _natives: Natives
    _request: Any

    def read(self, *args: Any, **options: Any) -> bytes:
        """As ever."""
        try:
            return super().read(*args, **options)
        except ReadTimeoutError as error:
            raise self._told(error) from error

    def read1(self, *args: Any, **options: Any) -> bytes:
        """As ever."""
        try:
            return super().read1(*args, **options)
        except ReadTimeoutError as error:
            raise self._told(error) from error

    def read_chunked(self, *args: Any, **options: Any) -> Any:
        """As ever."""
        try:
            yield from super().read_chunked(*args, **options)
        except ReadTimeoutError as error:
            raise self._told(error) from error

    def _told(self, error: ReadTimeoutError) -> BaseException:
        told = self._attempt.verdict(error, self._natives)
        return self._natives.of(told, self._request) if isinstance(told, SeawallError) else error


class Answer:
    """A response; see :class:`seawall.adapters.exchange.Answer`.

    Args:
        raw: As urllib3 made it.
        attempt: To which it is the answer.
        natives: The client's errors.
        method: Of the request.
        response: What the client makes of ``raw``; ``None``: it is that itself.
        request: The client's, for its errors.
    """

    __slots__ = ("_attempt", "_method", "_natives", "_request", "raw", "response", "status")

    def __init__(
        self, raw: Any, attempt: Attempt, natives: Natives, method: str, response: Any = None, request: Any = None
    ) -> None:
        self.raw, self.response, self.status = raw, raw if response is None else response, raw.status
        self._attempt, self._natives, self._method, self._request = attempt, natives, method, request
        if attempt.end != inf:
            self._time()

    def header(self, name: str) -> str | None:
        """The value of a header, or ``None``."""
        value: str | None = self.raw.headers.get(name)
        return value

    def _time(self) -> None:
        if type(self.raw) is HTTPResponse and not self.raw.closed:
            self.raw.__class__ = _Timed
            vars(self.raw).update(_attempt=self._attempt, _natives=self._natives, _request=self._request)

    def keep(self) -> bool:
        """Read the body, if it is short: whether it is at hand as a whole now.

        The response stays the same object, since others have it already. Its insides are those of a new one, which reads
        from memory; the old insides read on where the body is too long.
        """
        raw = self.raw
        if not isinstance(raw, HTTPResponse):
            return False  # not of http.client: HTTP/2
        if raw.closed:
            return len(raw.data or b"") <= KEEP  # it was preloaded
        if raw.length_remaining is not None and raw.length_remaining > KEEP:
            return False
        rest = HTTPResponse.__new__(HTTPResponse)
        rest.__dict__.update(raw.__dict__)
        kept = _Kept(rest)
        raw.__class__ = HTTPResponse
        raw.__dict__.clear()
        HTTPResponse.__init__(
            raw, kept, rest.headers, rest.status, rest.version, rest.version_string, rest.reason, False,
            rest.decode_content, rest._original_response, rest._pool, None, rest.msg, rest.retries,
            rest.enforce_content_length, self._method, rest.url,
        )  # fmt: skip
        if self._attempt.end != inf:
            self._time()
        return kept.whole


class _Kept(io.BufferedIOBase):
    """The body of a failed answer: what was read of it, and then the rest or the error that came instead."""

    def __init__(self, rest: HTTPResponse) -> None:
        self._rest, self.whole = rest, False
        self._error: HTTPError | None = None
        head = bytearray()
        try:
            while len(head) <= KEEP:
                part = rest.read(PART, decode_content=False)
                if not part:
                    self.whole = True
                    break
                head += part
        except HTTPError as error:
            self._error = error
        self._head = memoryview(bytes(head))

    def read(self, amt: int | None = None) -> bytes:
        """So many bytes, or what is left; closes itself at the end, as http.client does."""
        if amt is not None and amt >= 0:
            part, self._head = bytes(self._head[:amt]), self._head[amt:]
            if len(part) < amt and (self._error is None or not part):
                part += self._more(amt - len(part))
        else:
            part, self._head = bytes(self._head) + self._more(None), self._head[:0]
        if not self._head and (self.whole or amt is None or (amt and not part)):
            self.close()
        return part

    def read1(self, amt: int = -1) -> bytes:
        """Some bytes."""
        return self.read(amt if amt >= 0 else PART)

    def _more(self, amt: int | None) -> bytes:
        if self._error is not None:
            raise self._error
        return b"" if self.whole else self._rest.read(amt, decode_content=False)

    def close(self) -> None:
        """Nobody wants more of it."""
        try:
            self._rest.close()
        finally:
            super().close()


# -- requests
class _Gate(HTTPConnectionPool):
    """A pool: each of its requests goes through its target."""

    protection: Protection

    def urlopen(  # type: ignore[override]  # urllib3's own pools differ from their base class in the same way
        self, method: str, url: str, body: Any = None, headers: Any = None, retries: Any = None, *args: Any, **options: Any
    ) -> Any:
        """Send a request behind its target's policies, and return the response."""
        if running.get() is not None:  # urllib3's own retry, or redirect
            return super().urlopen(method, url, body, headers, retries, *args, **options)
        inside, protection = super().urlopen, self.protection
        retries = self._retries(retries)

        def send(attempt: Attempt) -> Answer:
            told = headers
            if attempt.end != inf:
                given: Any = HTTPHeaderDict(self.headers if headers is None else headers)
                told = given
                for name, value in protection.told(attempt.remaining(), given).items():
                    told[name] = value
            return Answer(inside(method, url, body, told, retries, *args, **options), attempt, natives, method)

        target = self._target(url)
        again = target.retry is not None and protection.may_repeat(method, _key(headers)) and _is_whole(body)
        try:
            return Exchange(target, protection, natives, again, protection.first).run(send)
        except SeawallError as error:
            raise natives.of(error) from None

    def _target(self, url: str) -> Target:
        scheme, host, port = self.scheme, self.host, self.port
        if not url.startswith("/"):  # by way of a proxy
            parsed = parse_url(url)
            scheme, host, port = parsed.scheme or scheme, parsed.host or host, parsed.port
        return self.protection.find(scheme, host.strip("[]"), port)

    def _retries(self, given: Any) -> Any:
        """Once, where urllib3 would repeat it three times by default; and what the user asked for is his."""
        if given is None and self.retries is Retry.DEFAULT:
            return ONCE
        most = attempts(self.retries if given is None else given)
        if most > 1:
            warn_of_retries(
                None, f"urllib3's retries={self.retries if given is None else given!r}", most,
                "Leave retries= away, and give the target a retry.",
            )  # fmt: skip
        return given


class _Once(Retry):
    """One attempt, and as many redirects as by urllib3's default."""

    def sleep_for_retry(self, response: Any) -> bool:
        """Not at all: it would be outside of all time limits."""
        return False


ONCE = _Once(Retry.DEFAULT.total, connect=0, read=0, status=0, other=0, respect_retry_after_header=False)


def attempts(retries: Any) -> int:
    """The most attempts of one request that urllib3 makes by ``retries``."""
    if not isinstance(retries, Retry):
        return 1 + int(retries or 0)
    if isinstance(retries, _Once):
        return 1
    total, counts = retries.total, (retries.connect, retries.read, retries.status, retries.other)
    most = max((total or 0) if count is None else int(count) for count in counts)
    return 1 + max(0, most if total is None else min(int(total), most))


def protect(manager: M, wall: Wall | Protection | None = None, **options: Any) -> M:
    """Let all requests of ``manager`` go through the targets of ``wall``. Returns ``manager``.

    Args:
        manager: A :class:`urllib3.PoolManager`, :class:`urllib3.ProxyManager`, or a single pool. Connections that are
            open already are not used again.
        wall: Holds the targets. Default: :data:`seawall.adapters.wall`. Or a protection that was made before.
        options: As :class:`~seawall.adapters.protection.Protection` takes them: ``target``, ``headers``, ``idempotent``,
            ``total``, ``first``, ``gap``.

    Raises:
        TypeError, ConfigError: An option that cannot work.

    Errors that come out of a request are Seawall's and urllib3's: a refusal is a ``urllib3.exceptions.HTTPError``, the
    end of the budget or of ``total`` a ``urllib3.exceptions.TimeoutError``.
    """
    protection = Protection.of(wall, options)
    pace = Pace(natives, protection.gap, lambda error: error)
    members: dict[str, Any] = {"protection": protection}
    if isinstance(manager, PoolManager):
        paced_classes(manager, pace, _Gate, **members)
        manager.clear()
    elif not isinstance(manager, HTTPConnectionPool):
        raise TypeError(f"protect() takes a PoolManager, a ProxyManager or a pool, not {manager!r}")
    elif not isinstance(manager, PacedPool):
        made = paced(type(manager), pace, _Gate, **members)
        manager.__class__ = made
    return manager


def _key(headers: Any) -> object:
    """The request's Idempotency-Key, or ``None``."""
    if headers is None:
        return None
    for name in headers:
        if name.lower() in ("idempotency-key", b"idempotency-key"):
            return name
    return None


def _is_whole(body: object) -> bool:
    """Whether it is at hand, and can be sent a second time."""
    return body is None or isinstance(body, (bytes, str))
