"""A hub to test: in a thread of this process, with its loop at hand, or as the process that users run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

import uvloop

from seawall.hub.backend import Backend
from seawall.hub.listen import open_listener
from seawall.hub.server import Hub
from seawall.hub.settings import HubSettings, read_settings
from seawall.outcome import CUT, FAILURE

from .raw import (
    PATIENCE,
    Answer,
    Caller,
    RawConnection,
    RawServer,
    Script,
    answering,
    ask,
    black_hole,
    raw_server,
    refusing,
    response,
    talk,
)

__all__ = [
    "LOOPS", "Answer", "Caller", "HubBed", "HubProcess", "RawConnection", "RawServer", "Script", "answering", "ask",
    "black_hole", "hub_bed", "hub_process", "raw_server", "refusing", "response", "talk",
]  # fmt: skip

T = TypeVar("T")

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.SelectorEventLoop,
    "uvloop": uvloop.new_event_loop,
}
"""The event loops a hub may run on, by name: ``@pytest.mark.parametrize("loop", LOOPS)``."""


class _Errors(logging.Handler):
    """Keeps what the hub, or asyncio on its behalf, logs as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(self.format(record))


class HubBed:
    """A hub in a thread of its own; made by :func:`hub_bed`.

    Attributes:
        hub: The hub. It belongs to its own thread: ask it by :meth:`run`.
        port: Where clients come in; of several listeners the first.
        breaker_log: The file of changes of state.
        errors: What was logged as an error; at the end there must be none. A test that provokes one clears the list.
        cut: After the end: how many requests the drain had to cut.
    """

    def __init__(self, settings: HubSettings, loop: str, clock: Callable[[], float]) -> None:
        self.settings, self._clock = settings, clock
        self.breaker_log = Path(settings.breaker_log)
        self.cut: int | None = None
        self._handler = _Errors()
        self.errors = self._handler.said
        self._started: Future[Hub] = Future()
        self._stop = asyncio.Event()
        self._factory = LOOPS[loop]
        self._thread = threading.Thread(target=self._work, name="hub", daemon=True)

    def start(self) -> None:
        """Listen. Raises what the hub cannot start with."""
        for name in ("seawall", "asyncio"):
            logging.getLogger(name).addHandler(self._handler)
        self._thread.start()
        self.hub = self._started.result(PATIENCE)
        self.ports: list[int] = [
            name.getsockname()[1] if isinstance(name.getsockname(), tuple) else 0
            for name in (listener.sock for listener in self.hub.listeners)
        ]
        self.port = self.ports[0]

    def _work(self) -> None:
        with asyncio.Runner(loop_factory=self._factory) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        try:
            hub = Hub(self.settings, asyncio.get_running_loop(), self._clock)
            hub.open_logs()
            hub.listen([open_listener(address) for address in self.settings.listen])
        except BaseException as error:
            self._started.set_exception(error)
            return
        self._started.set_result(hub)
        await self._stop.wait()
        if hub.clients:  # else there is nothing to lose, and test_drain.py looks at the rest
            self.cut = await hub.drain()
        await hub.close()

    def stop(self) -> int:
        """Drain and end; how many requests had to be cut."""
        if self._thread.is_alive():
            self.hub.loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(PATIENCE + self.settings.drain_timeout)
        for name in ("seawall", "asyncio"):
            logging.getLogger(name).removeHandler(self._handler)
        assert not self._thread.is_alive(), "the hub does not end"
        return self.cut or 0

    # -- looking inside
    def run(self, question: Callable[[Hub], T]) -> T:
        """What ``question`` answers about the hub, asked on its own thread."""
        answer: Future[T] = Future()

        def reply() -> None:
            try:
                answer.set_result(question(self.hub))
            except Exception as error:
                answer.set_exception(error)

        self.hub.loop.call_soon_threadsafe(reply)
        return answer.result(PATIENCE)

    def wait_for(self, condition: Callable[[Hub], object], seconds: float = PATIENCE) -> None:
        """Return once ``condition`` holds of the hub; ``TimeoutError`` if it does not within ``seconds``."""
        end = time.monotonic() + seconds
        while not self.run(condition):
            if time.monotonic() > end:
                raise TimeoutError(f"what was waited for has not come: {self.run(_left)}")
            time.sleep(0.002)

    def state(self, name: str = "CORE") -> str:
        """The state of a target's circuit."""
        return self.run(lambda hub: hub.backends[name].breaker.state.value)

    def in_flight(self, name: str = "CORE") -> int:
        """Places taken of a target."""
        return self.run(lambda hub: hub.backends[name].bulkhead.in_flight)

    def codes(self, name: str = "CORE") -> dict[str, int]:
        """How many requests to a target ended with which code."""
        return self.run(lambda hub: dict(hub.backends[name].codes))

    # -- what an outcome does to the breaker
    def lay_out(self, name: str = "CORE") -> None:
        """Two failures and one cut on record, so that :meth:`effect` can tell what the next outcome makes of them."""

        def seed(hub: Hub) -> None:
            breaker = hub.backends[name].breaker
            for outcome in (FAILURE, FAILURE, CUT):
                breaker.settle(breaker.admit(), outcome, "seed")

        self.run(seed)

    def effect(self, name: str = "CORE") -> str:
        """What the one outcome since :meth:`lay_out` was for the breaker."""

        def look(hub: Hub) -> tuple[int, int]:
            breaker = hub.backends[name].breaker
            return breaker.failures, len(breaker._epoch.cuts)

        known = {(0, 0): "success", (3, 0): "failure", (2, 0): "ignored", (2, 1): "nothing", (2, 2): "cut"}
        return known[self.run(look)]

    # -- the check after every test
    def assert_at_rest(self) -> None:
        """Fail unless, within a moment, no place, trial, exchange, connection or task is left in use."""
        end = time.monotonic() + 10.0
        while (left := self.run(_left)) and time.monotonic() < end:
            time.sleep(0.01)
        assert not left, f"left in use: {'; '.join(left)}"


def _left(hub: Hub) -> list[str]:
    left = [f"{len(hub.ghosts)} trials without their client"] if hub.ghosts else []
    left += [f"an exchange of {client.peer!r}" for client in hub.clients if client.exchange is not None]
    for backend in hub.backends.values():
        left += _left_of(backend)
    # One task serves, one more is a connect or the taking of a client.
    if hub.arriving or len(asyncio.all_tasks(hub.loop)) > 1:
        left.append(f"tasks: {asyncio.all_tasks(hub.loop)}")
    return left


def _left_of(backend: Backend) -> list[str]:
    bulkhead, snapshot = backend.bulkhead, backend.breaker.snapshot()
    counts = {
        "places": bulkhead.in_flight, "waiters": bulkhead.waiting, "trials": snapshot.trials,
        "connections at work": backend.connections - len(backend.idle),
        "idle connections with an exchange": sum(upstream.exchange is not None for upstream in backend.idle),
        "alerts": len(bulkhead.alert),
    }  # fmt: skip
    return [f"{backend.name}: {count} {what}" for what, count in counts.items() if count]


@contextlib.contextmanager
def hub_bed(
    *targets: str,
    loop: str = "asyncio",
    clock: Callable[[], float] = time.monotonic,
    listen: Sequence[str] = ("127.0.0.1:0",),
    **flags: str | bool | None,
) -> Iterator[HubBed]:
    """A hub for as long as the block lasts. At its end nothing may be in use any more, and no error logged.

    Args:
        targets: As behind ``--target``: ``CORE=http://127.0.0.1:9201,read=0.2``.
        loop: One of :data:`LOOPS`.
        clock: The hub's clock. One set by hand must be ahead of the real one, by which limits end.
        listen: As behind ``--listen``.
        flags: Further flags, as :func:`~seawall.hub.settings.read_settings` takes them.
    """
    with tempfile.TemporaryDirectory() as directory:
        given = {"breaker_log": f"{directory}/breaker.log", "admin": "off", "drain_timeout": "5"} | flags
        bed = HubBed(read_settings(targets=targets, listen=listen, **given), loop, clock)
        bed.start()
        try:
            yield bed
            bed.assert_at_rest()
        finally:
            bed.stop()
        assert not bed.errors, bed.errors
        hub = bed.hub
        assert not hub.clients
        assert not [backend.name for backend in hub.backends.values() if backend.connections]
        assert len(hub.wheel) == 0


class HubProcess:
    """``python -m seawall hub`` as a process of its own; made by :func:`hub_process`.

    Attributes:
        port: Where clients come in.
        lines: What it has said on standard output so far.
    """

    def __init__(self, words: Sequence[str], loop: str, directory: Path) -> None:
        environment = os.environ | {"SEAWALL_LOOP": loop, "PYTHONUNBUFFERED": "1"}
        self.errors_file = directory / "stderr"
        with self.errors_file.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "seawall", "hub", *words],
                stdout=subprocess.PIPE, stderr=errors, cwd=directory, env=environment, text=True,
            )  # fmt: skip
        self.lines: list[str] = []
        self._listening: Future[int] = Future()
        self._reader = threading.Thread(target=self._read, name="hub output", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if line.startswith("hub listening on "):
                self._listening.set_result(int(line.split(";")[0].strip().split(",")[0].rpartition(":")[2]))
        if not self._listening.done():
            self._listening.set_exception(RuntimeError(f"it did not start: {self.said()}"))

    def started(self) -> HubProcess:
        """Wait until it listens; ``RuntimeError`` if it ends instead."""
        self.port = self._listening.result(60)
        return self

    def said(self) -> str:
        """What it has said on standard error."""
        return self.errors_file.read_text()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        return self.process.wait(60)

    def end(self) -> None:
        """Make sure that it is gone."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(60)
        self._reader.join(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextlib.contextmanager
def hub_process(directory: Path, *words: str, loop: str = "uvloop") -> Iterator[HubProcess]:
    """The hub as users run it, working in ``directory`` (so its log is ``directory/breaker.log``), on a free port.

    Args:
        directory: Its working directory.
        words: Further words of its command line, the targets among them.
        loop: ``asyncio``, or ``uvloop`` where it is installed.
    """
    process = HubProcess(["--listen", "127.0.0.1:0", "--admin", "off", *words], loop, directory)
    try:
        yield process.started()
    finally:
        process.end()
