"""One target as the hub sees it: its policies, its connections, its numbers."""

from __future__ import annotations

import asyncio
import errno
import ssl
from math import inf
from typing import TYPE_CHECKING

from ..outcome import DISCARDED
from ..policies.breaker import CircuitBreaker
from ..policies.bulkhead import Bulkhead
from ..target import Target
from .again import REPLAY, retry_of
from .codes import Judge
from .exchange import HOLD
from .histogram import Histogram
from .resolver import Addresses, Resolver
from .settings import TargetSettings
from .upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Callable

    from .exchange import Exchange

__all__ = ["Backend"]

_OURS = (errno.EMFILE, errno.ENFILE)  # out of descriptors: that says nothing about the target
MOST_CODES = 100  # distinct codes counted by name; targets may make up any number of their own


class Backend:
    """Everything the hub has of one target. Nothing in here is shared with another target."""

    def __init__(
        self,
        settings: TargetSettings,
        loop: asyncio.AbstractEventLoop,
        clock: Callable[[], float],
        resolver: Resolver | None = None,
    ) -> None:
        self.settings, self.loop, self.clock = settings, loop, clock
        self.name = settings.name
        self.attempt_limit = settings.connect + settings.read
        self.breaker = CircuitBreaker(
            settings.fail_threshold, settings.reset_timeout, clock, attempt_limit=self.attempt_limit
        )
        self.bulkhead = Bulkhead(
            settings.max_inflight, max_queue=settings.max_queue, max_wait=settings.max_wait, clock=clock
        )
        self.retry = retry_of(settings, clock)
        self.target = Target(settings.name, breaker=self.breaker, bulkhead=self.bulkhead, retry=self.retry)
        self.judge = Judge(settings.failures)
        self.budget = settings.budget_ms / 1000
        self.read = settings.read
        self.least = settings.min_ms / 1000
        self.margin = settings.budget_margin_ms / 1000
        self.times = False  # whether its answers may say where their time went; the hub's settings decide
        self.hold = HOLD if self.retry is None else REPLAY
        # The most that the target is told, also where a trial runs on without a deadline. With retries the time of one
        # attempt: who works on after that works for nobody, and beside the next attempt.
        self.tell = self.budget if self.retry is None else min(self.budget, settings.read)
        self.base = settings.path.encode()
        self.host = _host_header(settings)
        self.resolver = resolver or Resolver(settings.host, settings.port)
        self.resolver.addresses(clock())  # look the name up at start, not at the first request
        self.tls = _tls(settings)
        self.idle: list[Upstream] = []  # a stack: the connection used last is the likeliest to be alive
        self.connections = 0
        self.codes: dict[str, int] = {}
        self.latency = Histogram()

    # -- numbers
    def count(self, code: str, seconds: float) -> None:
        """One exchange ended with ``code`` after ``seconds``."""
        codes = self.codes
        if code in codes:
            codes[code] += 1
        elif len(codes) < MOST_CODES:
            codes[code] = 1
        else:
            codes["_other"] = codes.get("_other", 0) + 1
        self.latency.record(seconds)

    # -- connections
    def take_idle(self) -> Upstream | None:
        """A connection that is open and idle, the one used last."""
        idle = self.idle
        while idle:
            upstream = idle.pop()
            if not upstream.transport.is_closing():
                return upstream
        return None

    def put_back(self, upstream: Upstream, now: float) -> None:
        """Keep a connection whose answer has ended cleanly."""
        keepalive = self.settings.keepalive
        if keepalive:
            upstream.idle_until = now + keepalive
            self.idle.append(upstream)
        else:
            upstream.transport.close()

    def lost(self, upstream: Upstream) -> None:
        """A connection has ended; a second time says nothing new."""
        if not upstream.alive:
            return
        upstream.alive = False
        self.connections -= 1
        if upstream in self.idle:
            self.idle.remove(upstream)

    def sweep(self, now: float) -> None:
        """Close what has been idle for too long; the stack keeps the longest idle at its bottom."""
        while self.idle and self.idle[0].idle_until <= now:
            self.idle.pop(0).transport.close()

    def close(self) -> None:
        """Close the idle connections."""
        for upstream in self.idle[:]:
            upstream.transport.close()
        self.idle.clear()

    def connect(self, exchange: Exchange) -> asyncio.Task[None]:
        """Open a connection for ``exchange``: the one thing that takes a task. Ended by ``cancel`` when time is up."""
        return self.loop.create_task(self._connect(exchange))

    async def _connect(self, exchange: Exchange) -> None:
        try:
            try:
                upstream = await self._open(await self._addresses())
            except (OSError, ssl.SSLError, ssl.CertificateError) as error:
                exchange.not_connected(_why(error), DISCARDED if error.errno in _OURS else None)
            else:
                if upstream.transport.is_closing():
                    exchange.not_connected("it closed the connection at once")
                else:
                    exchange.connected(upstream)
        except Exception:
            exchange.fault()

    async def _addresses(self) -> Addresses:
        known = self.resolver.addresses(self.clock())
        if known is not None:
            return known
        answer: asyncio.Future[Addresses] = self.loop.create_future()
        waiter = self.resolver.when_known(self.loop, _settler(answer))
        try:
            return await answer
        finally:
            if waiter is not None:
                waiter.cancel()

    async def _open(self, addresses: Addresses) -> Upstream:
        """Connect to the first address that answers; the caller bounds the whole."""
        failed: OSError | None = None
        share = max(0.05, self.settings.connect / max(1, len(addresses)))
        for i, (_, address) in enumerate(addresses):
            last = i == len(addresses) - 1
            try:
                async with asyncio.timeout(None if last else share):
                    return await self._reach(str(address[0]), int(address[1]))
            except ssl.SSLError:
                raise
            except (OSError, TimeoutError) as error:
                failed = error if isinstance(error, OSError) else OSError(str(error))
        raise failed or OSError(f"{self.settings.host} has no address")

    async def _reach(self, host: str, port: int) -> Upstream:
        upstream, name = Upstream(self), self._server_name()
        try:
            await self.loop.create_connection(lambda: upstream, host, port, ssl=self.tls, server_hostname=name)
        except BaseException:  # cancelled just as it stood: uvloop then tells the protocol nothing any more
            if upstream.alive:
                upstream.transport.abort()
                self.lost(upstream)
            raise
        return upstream

    def _server_name(self) -> str | None:
        return None if self.tls is None else self.settings.sni or self.settings.host

    def waits_until(self, now: float) -> float:
        """When a call standing in line now gives up."""
        longest = self.settings.max_wait
        return inf if longest is None else now + longest


def _settler(answer: asyncio.Future[Addresses]) -> Callable[[Addresses | OSError], None]:
    def settle(known: Addresses | OSError) -> None:
        if answer.done():
            return
        if isinstance(known, OSError):
            answer.set_exception(known)
        else:
            answer.set_result(known)

    return settle


def _host_header(settings: TargetSettings) -> bytes | None:
    """The ``Host`` for the target; ``None``: what the client sent."""
    if settings.host_header == "client":
        return None
    if settings.host_header != "target":
        return settings.host_header.encode()
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    default = 443 if settings.scheme == "https" else 80
    return (host if settings.port == default else f"{host}:{settings.port}").encode()


def _tls(settings: TargetSettings) -> ssl.SSLContext | None:
    if settings.scheme != "https":
        return None
    try:
        context = ssl.create_default_context(cafile=settings.ca)
    except OSError as error:
        what = f"cannot use {settings.ca} as the authorities of target {settings.name}: {_why(error)}"
        raise OSError(errno.EINVAL, f"{what}; give a PEM file of certificates") from None
    context.set_alpn_protocols(["http/1.1"])
    if not settings.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or error}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
