"""Runs a server that misbehaves: until a signal ends it, or in a thread beside a test."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from .partner import Partner
from .server import Server
from .target import FakeTarget

__all__ = ["RunningServer", "RunningTarget", "run", "running_partner", "running_target"]

T = TypeVar("T")


def run(server: Server, say: Callable[[str], object]) -> int:
    """Serve until a signal ends it, in the main thread.

    Args:
        server: What to serve.
        say: Called once with the line that says where it listens.

    Returns:
        The exit code: 0 after SIGTERM, 130 after SIGINT.

    Raises:
        OSError: It cannot listen there.
    """
    return asyncio.run(_until_signal(server, say))


async def _until_signal(server: Server, say: Callable[[str], object]) -> int:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()

    def end(code: int) -> None:
        if not ended.done():
            ended.set_result(code)

    loop.add_signal_handler(signal.SIGTERM, end, 0)
    loop.add_signal_handler(signal.SIGINT, end, 130)
    await server.start()
    try:
        say(server.greeting)
        return await ended
    finally:
        await server.stop()


class RunningServer:
    """A server that runs in a thread of its own; made by :func:`running_partner`."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self.name = server.name
        self.port = server.port
        self.url = server.url

    def stats(self) -> dict[str, Any]:
        """What ``GET /_stats`` answers."""
        return self._ask(self._server.stats)

    def wait_for(self, timeout: float = 10.0, **expected: Any) -> dict[str, Any]:
        """Wait until the statistics are as expected: ``wait_for(in_flight=2)``.

        Raises:
            TimeoutError: They were not within ``timeout`` seconds; the message shows them.
        """
        end = time.monotonic() + timeout
        while True:
            stats = self.stats()
            if all(stats[key] == value for key, value in expected.items()):
                return stats
            if time.monotonic() > end:
                raise TimeoutError(f"{self.name}: expected {expected} within {timeout} s, but it is {stats}")
            time.sleep(0.005)

    def _ask(self, question: Callable[[], T]) -> T:
        answer: Future[T] = Future()

        def reply() -> None:
            try:
                answer.set_result(question())
            except Exception as error:
                answer.set_exception(error)

        self._loop.call_soon_threadsafe(reply)
        return answer.result(30)


class RunningTarget(RunningServer):
    """A fake target that runs in a thread of its own; made by :func:`running_target`."""

    def __init__(self, target: FakeTarget, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(target, loop)
        self._target = target

    def ctl(self, **wish: Any) -> dict[str, Any]:
        """Do what ``POST /_ctl`` does, and return once it holds: ``ctl(mode="slow", delay_ms=300)``.

        Raises:
            ValueError: An unknown key or value.
        """
        return self._ask(lambda: self._target.control(wish))


@contextlib.contextmanager
def running_target(
    name: str = "CORE",
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    balance: int = 1000,
    tls: ssl.SSLContext | None = None,
) -> Iterator[RunningTarget]:
    """A fake target in a thread of its own for as long as the block lasts.

    Args:
        name: What its answers say in ``target``.
        host: The address it listens on.
        port: The TCP port; 0, the default here, lets the system choose one.
        balance: What a transaction may spend at most.
        tls: A server context: then it speaks HTTPS.

    Raises:
        OSError: It cannot listen there.
    """
    target = FakeTarget(name, host=host, port=port, balance=balance, tls=tls)
    with _beside(target) as loop:
        yield RunningTarget(target, loop)


@contextlib.contextmanager
def running_partner(*, host: str = "127.0.0.1", port: int = 0, seed: int = 1) -> Iterator[RunningServer]:
    """A partner in a thread of its own for as long as the block lasts.

    Args:
        host: The address it listens on.
        port: The TCP port; 0, the default here, lets the system choose one.
        seed: Of the chance in ``/flaky?rate=``.

    Raises:
        OSError: It cannot listen there.
    """
    partner = Partner(host=host, port=port, seed=seed)
    with _beside(partner) as loop:
        yield RunningServer(partner, loop)


@contextlib.contextmanager
def _beside(server: Server) -> Iterator[asyncio.AbstractEventLoop]:
    """Run it in a thread of its own; gives the loop in which it runs, once it listens."""
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        try:
            await server.start()
        except OSError as error:
            started.set_exception(error)
            return
        stop = asyncio.Event()
        started.set_result((asyncio.get_running_loop(), stop))
        await stop.wait()
        await server.stop()

    def work() -> None:
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=work, name=f"fake {server.name}", daemon=True)
    thread.start()
    try:
        loop, stop = started.result(30)
        try:
            yield loop
        finally:
            loop.call_soon_threadsafe(stop.set)
    finally:
        thread.join(30)
