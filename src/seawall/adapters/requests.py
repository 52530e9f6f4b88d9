"""Budget, breaker and bulkhead for requests: ``pip install seawall[requests]``.

::

    session = seawall.adapters.requests.mount(requests.Session(), wall)

or, for one origin::

    session.mount("https://core.internal/", seawall.adapters.requests.Adapter(wall, target="CORE"))

requests has no time limit unless it is given one with each request; here one holds that was not asked for.
"""

from __future__ import annotations

from math import inf
from typing import Any
from urllib.parse import urlsplit

from ..amounts import is_amount
from ..errors import ConfigError, SeawallError
from ..wall import Wall
from .attempt import Attempt
from .exchange import Exchange
from .extras import needing
from .native import Natives
from .protection import Protection
from .twice import sdk_repeats, warn_of_retries

with needing("requests"):
    import requests
    from requests.adapters import DEFAULT_POOLBLOCK, DEFAULT_POOLSIZE, DEFAULT_RETRIES, HTTPAdapter
    from requests.exceptions import ChunkedEncodingError
    from urllib3.exceptions import ReadTimeoutError

    from .urllib3 import Answer, attempts
    from .urllib3_sockets import OWN, TIMEOUTS, UNSENT, Pace, paced_classes

__all__ = ["Adapter", "mount"]

CONNECT = 5.0  # s, where nothing else limits: one lost SYN is sent again after 1 s and after 3 s (RFC 6298, 2.1)
READ = 30.0  # s of silence

natives = Natives(
    __name__,
    refused=requests.exceptions.ConnectionError,
    late=requests.exceptions.ReadTimeout,
    timeouts=TIMEOUTS,
    unsent=UNSENT,
    own=OWN,
    request="request",
    empty=("response",),
)


class Adapter(HTTPAdapter):
    """An adapter for :class:`requests.Session` whose requests go through the targets of ``wall``.

    Args:
        wall: Holds the targets. Default: :data:`seawall.adapters.wall`. Or a protection that was made before.
        pool_connections, pool_maxsize, max_retries, pool_block: As :class:`requests.adapters.HTTPAdapter` takes them.
        connect: Seconds to connect, of a request without ``timeout=`` that neither a budget nor a limit of its target
            ends; ``None``: no limit. Default: 5, as httpx.
        read: Seconds of silence, of such a request; ``None``: no limit. Default: 30.
        options: As :class:`~seawall.adapters.protection.Protection` takes them: ``target``, ``headers``, ``idempotent``,
            ``total``, ``first``, ``gap``.

    Raises:
        TypeError, ConfigError: An option that cannot work.

    Errors that come out of a request are Seawall's and requests': a refusal is a ``requests.ConnectionError``, the end of
    the budget or of ``total`` a ``requests.exceptions.ReadTimeout``. An adapter holds a wall, and so it cannot be pickled.
    """

    def __init__(
        self,
        wall: Wall | Protection | None = None,
        *,
        pool_connections: int = DEFAULT_POOLSIZE,
        pool_maxsize: int = DEFAULT_POOLSIZE,
        max_retries: Any = DEFAULT_RETRIES,
        pool_block: bool = DEFAULT_POOLBLOCK,
        connect: float | None = CONNECT,
        read: float | None = READ,
        **options: Any,
    ) -> None:
        for word, value in (("connect", connect), ("read", read)):
            if value is not None and (not is_amount(value) or value == 0):
                raise ConfigError(f"{word} is in seconds, more than 0 and finite, not {value!r}")
        self.protection = Protection.of(wall, options)
        self._pace = Pace(natives, self.protection.gap, _outside)
        self._limits = None if connect is None and read is None else (connect, read)
        super().__init__(pool_connections, pool_maxsize, max_retries, pool_block)
        warn_of_retries(
            None, f"HTTPAdapter(max_retries={max_retries})", attempts(self.max_retries),
            "Leave max_retries= away, and give the target a retry.",
        )  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("an Adapter holds a wall, and cannot be pickled: make one where it is used")

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """As ever; with connections that wait no longer than there is time."""
        super().init_poolmanager(*args, **options)
        paced_classes(self.poolmanager, self._pace)

    def proxy_manager_for(self, *args: Any, **options: Any) -> Any:
        """As ever; with connections that wait no longer than there is time."""
        manager = super().proxy_manager_for(*args, **options)
        paced_classes(manager, self._pace)
        return manager

    def send(
        self, request: requests.PreparedRequest, stream: bool = False, timeout: Any = None, verify: Any = True,
        cert: Any = None, proxies: Any = None,
    ) -> requests.Response:  # fmt: skip
        """Send ``request`` behind its target's policies, and return the response."""
        inside, given, protection = super().send, request.headers, self.protection

        def send(attempt: Attempt) -> Answer:
            if attempt.end == inf:
                limits: Any = self._limits if timeout is None else timeout
                response = inside(request, stream, limits, verify, cert, proxies)
            else:
                # Who sends a prepared request again, with more time, is not held to what was left this time.
                request.headers = given.copy()
                request.headers.update(protection.told(attempt.remaining(), given))
                try:
                    response = inside(request, stream, timeout, verify, cert, proxies)
                finally:
                    request.headers = given
            return Answer(response.raw, attempt, natives, request.method or "", response, request)

        try:
            place = urlsplit(request.url or "")
            target = protection.find(place.scheme, place.hostname or "", place.port)
        except ValueError:  # requests says what is wrong with it
            return inside(request, stream, timeout, verify, cert, proxies)
        again = False
        if target.retry is not None:
            again = protection.may_repeat(request.method or "", given.get("Idempotency-Key")) and _is_whole(request.body)
            sdk_repeats(target, given.get("X-Stainless-Retry-Count", "0"))
        try:
            response: requests.Response = Exchange(target, protection, natives, again, protection.first).run(send)
        except SeawallError as error:
            raise natives.of(error, request) from None
        return response


def mount(session: requests.Session, wall: Wall | Protection | None = None, **options: Any) -> requests.Session:
    """Let all requests of ``session`` go through the targets of ``wall``. Returns ``session``.

    Args:
        session: Its adapters are replaced by ones with the same pools and the same ``max_retries``.
        wall: Holds the targets. Default: :data:`seawall.adapters.wall`. Or a protection that was made before.
        options: As :class:`Adapter` takes them.

    Raises:
        TypeError: An adapter of the session is of a class that cannot be replaced.
    """
    limits = {name: options.pop(name) for name in ("connect", "read") if name in options}
    protection = Protection.of(wall, options)
    adapters = getattr(session, "adapters", None)
    if adapters is None:
        raise TypeError(f"mount() takes a requests.Session, not {session!r}")
    for prefix, old in list(adapters.items()):
        if isinstance(old, Adapter) or not isinstance(old, HTTPAdapter):
            continue
        if type(old) is not HTTPAdapter:
            kind = type(old).__name__
            raise TypeError(f"{prefix} has a {kind}: derive it from seawall.adapters.requests.Adapter instead")
        has = vars(old)
        made = Adapter(
            protection, pool_connections=has["_pool_connections"], pool_maxsize=has["_pool_maxsize"],
            pool_block=has["_pool_block"], max_retries=old.max_retries, **limits,
        )  # fmt: skip
        session.mount(prefix, made)
        old.close()
    return session


def _is_whole(body: object) -> bool:
    """Whether it is at hand, and can be sent a second time."""
    return body is None or isinstance(body, (bytes, str))


def _outside(error: Exception) -> Exception:
    """What ``iter_content`` makes of it."""
    late = isinstance(error, ReadTimeoutError)
    return requests.exceptions.ConnectionError(error) if late else ChunkedEncodingError(error)
