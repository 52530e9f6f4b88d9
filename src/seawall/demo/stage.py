"""The processes of the demo: two targets and a hub in front of them, started and, whatever happens, ended."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

__all__ = ["Stage", "StageError"]

PATIENCE = 15.0  # s for a process to answer; a cold start on a busy machine takes two


class StageError(Exception):
    """A process of the demo did not come up; the message says which, and what it said."""


class Stage:
    """CORE, CLAIM and the hub on free ports of the loopback address.

    Args:
        folder: For the breaker log and what the processes say.
        flags: For the hub, besides its targets.
    """

    def __init__(self, folder: Path, flags: list[str]) -> None:
        self.folder, self.flags = folder, flags
        self.ports = _free_ports("CORE", "CLAIM", "hub", "admin")
        self.breaker_log = folder / "breaker.log"
        self._running: list[tuple[str, subprocess.Popen[bytes]]] = []

    def __enter__(self) -> Self:
        try:
            for name in ("CORE", "CLAIM"):
                self._start(name, ["target", "--name", name, "--port", str(self.ports[name])])
            targets = [f"--target={name}=http://127.0.0.1:{self.ports[name]}" for name in ("CORE", "CLAIM")]
            listen = [f"--listen=127.0.0.1:{self.ports['hub']}", f"--admin=127.0.0.1:{self.ports['admin']}"]
            self._start("hub", ["hub", *listen, *targets, f"--breaker-log={self.breaker_log}", *self.flags])
            for name, path in (("CORE", "/_stats"), ("CLAIM", "/_stats"), ("admin", "/readyz")):
                self._wait_for(name, path)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._end()

    def control(self, target: str, **settings: object) -> None:
        """Tell a target how to behave."""
        self._ask(target, "POST", "/_ctl", json.dumps(settings).encode())

    def states(self) -> dict[str, str]:
        """The state of each circuit, as the hub's admin port tells it."""
        targets = self._ask("admin", "GET", "/api/v1/snapshot")["targets"]
        return {name: str(row["state"]) for name, row in targets.items()}

    def _start(self, name: str, args: list[str]) -> None:
        with open(self.folder / f"{name}.out", "wb") as out:
            # A session of its own: a Ctrl-C at the terminal reaches the demo alone, which ends the others in its order.
            process = subprocess.Popen(
                [sys.executable, "-m", "seawall", *args], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )  # fmt: skip
        self._running.append((name, process))

    def _wait_for(self, name: str, path: str) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            for other, process in self._running:
                if process.poll() is not None:
                    said = (self.folder / f"{other}.out").read_text(errors="replace").strip()
                    raise StageError(f"{other} ended at once (exit {process.returncode}): {said[-500:] or 'no word'}")
            try:
                self._ask(name, "GET", path)
                return
            except OSError:
                time.sleep(0.05)
        raise StageError(f"{name} did not answer within {PATIENCE:g} s")

    def _ask(self, name: str, method: str, path: str, body: bytes | None = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[name], timeout=5)
        try:
            connection.request(method, path, body)
            return json.loads(connection.getresponse().read() or b"null")
        except (http.client.HTTPException, ValueError) as error:
            raise OSError(f"{name} gave no answer to {path}: {error}") from error
        finally:
            connection.close()

    def _end(self) -> None:
        """Hub first, so that it drains; then the targets. A second Ctrl-C does not stop the ending."""
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            while self._running:
                _, process = self._running.pop()
                if process.poll() is None:
                    process.terminate()
                try:
                    process.wait(3)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        finally:
            signal.signal(signal.SIGINT, before)


def _free_ports(*names: str) -> dict[str, int]:
    """A free port for each name; all held at once, so that none is given twice."""
    held = {name: socket.create_server(("127.0.0.1", 0)) for name in names}
    ports = {name: sock.getsockname()[1] for name, sock in held.items()}
    for sock in held.values():
        sock.close()
    return ports
