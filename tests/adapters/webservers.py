"""Real web servers around the apps in ``examples/adapters``, and a client that asks them one thing."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
APPS = ROOT / "examples" / "adapters"
BOUND = 30.0  # s for anything at all
TICKS = b" ".join(b"%d" % number for number in range(20)) + b" "  # what /ticks sends, before its last word


class Got(NamedTuple):
    """An answer as far as it came; ``whole`` where it had its proper end."""

    status: int
    headers: dict[str, str]
    body: bytes
    whole: bool
    seconds: float

    def problem(self) -> dict[str, Any]:
        assert self.headers["content-type"] == "application/problem+json"
        members: dict[str, Any] = json.loads(self.body)
        return members


class Server:
    """A server that runs."""

    def __init__(self, port: int, log: Path) -> None:
        self.port, self.log = port, log

    def ask(self, path: str, method: str = "GET", **headers: str) -> Got:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=BOUND)
        began = time.monotonic()
        with contextlib.closing(connection):
            connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            with connection.getresponse() as response:
                body, whole = b"", True
                try:
                    while part := response.read1(65536):
                        body += part
                except (http.client.HTTPException, OSError):
                    whole = False
                given = {name.lower(): value for name, value in response.getheaders()}
                return Got(response.status, given, body, whole, time.monotonic() - began)

    def left(self, path: str, **headers: str) -> float:
        """The seconds of which an endpoint says that they are left."""
        got = self.ask(path, **headers)
        assert (got.status, got.whole) == (200, True)
        return float(got.body.split()[0])


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _answers(port: int) -> bool:
    """Whether it serves: a worker has to have taken the request, not only the kernel the connection."""
    try:
        Server(port, Path()).ask("/left")
    except (OSError, http.client.HTTPException):
        return False
    return True


@contextlib.contextmanager
def running(module: str, *arguments: str, port_as: tuple[str, ...]) -> Iterator[Server]:
    """``python -m module arguments`` for as long as the block lasts; ``port_as`` says the port, by ``{port}``."""
    port = _free_port()
    command = [sys.executable, "-m", module, *arguments, *(word.format(port=port) for word in port_as)]
    places = os.pathsep.join([str(ROOT / "src"), str(APPS)])
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        own = {"PYTHONPATH": places, "PYTHONDONTWRITEBYTECODE": "1", "HOME": folder}  # gunicorn puts a socket there
        with log.open("wb") as file:
            process = subprocess.Popen(
                command, cwd=APPS, env=os.environ | own, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        try:
            _until_up(process, port, log)
            yield Server(port, log)
        finally:
            _end(process)


def _until_up(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + BOUND
    while not _answers(port):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
            raise AssertionError(f"the server ended with {process.returncode}:\n{log.read_text()}")
        if time.monotonic() > end:
            raise AssertionError(f"the server does not answer:\n{log.read_text()}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its own session: the workers it made, and nothing else
        process.wait(10)


def a_long_stream_outlives_the_default_and_not_its_callers_budget(server: Server) -> None:
    """Of either kind of server, around apps whose default is a second."""
    long = server.ask("/ticks")
    assert (long.status, long.body, long.whole) == (200, TICKS + b"no budget\n", True)
    assert long.seconds > 1.0
    cut = server.ask("/ticks", X_Budget_Ms="700")
    assert (cut.status, cut.whole) == (200, False)
    assert TICKS.startswith(cut.body)
    assert cut.seconds < BOUND
