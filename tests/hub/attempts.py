"""A target that takes one attempt after another as a test says, and a look at what the hub made of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from seawall.hub.server import Hub
from tests.hub.bed import HubBed, RawConnection, Script

__all__ = ["TX", "Step", "breaks", "hangs", "in_turn", "jitter", "retries_of", "stopped"]

TX = b'{"target": "CORE", "amount": 5}'
Step = bytes | Callable[[RawConnection], object]
"""What an attempt is answered with; a function that does not return ``True`` ends the connection."""


def in_turn(*steps: Step) -> Script:
    """Each request, on whatever connection, meets the next of ``steps``; the last again and again."""
    lock, taken = threading.Lock(), [0]

    def script(connection: RawConnection) -> None:
        while connection.read_request():
            with lock:
                step = steps[min(taken[0], len(steps) - 1)]
                taken[0] += 1
            if not callable(step):
                connection.send(step)
            elif step(connection) is not True:
                return

    return script


def hangs(connection: RawConnection) -> None:
    """No answer, until the hub has had enough."""
    connection.hang()


def breaks(connection: RawConnection) -> None:
    """The connection ends in the middle of a head."""
    connection.send(b"HTTP/1.1 200 OK\r\nX-A")


def jitter(bed: HubBed, share: float, name: str = "CORE") -> None:
    """Each wait is this share of its ceiling."""

    def fix(hub: Hub) -> None:
        retry = hub.backends[name].retry
        assert retry is not None
        retry._random = lambda: share

    bed.run(fix)


def retries_of(bed: HubBed, name: str = "CORE") -> int:
    """Further attempts decided upon."""
    return bed.run(lambda hub: hub.backends[name].retry.retries)  # type: ignore[union-attr]


def stopped(bed: HubBed, name: str = "CORE") -> dict[str, int]:
    """Why calls were not repeated any more."""
    return bed.run(lambda hub: hub.backends[name].retry.snapshot().stopped)  # type: ignore[union-attr]


def bodies(requests: Sequence[bytes]) -> list[bytes]:
    """The body of each request."""
    return [request.partition(b"\r\n\r\n")[2] for request in requests]


def headers(request: bytes) -> dict[str, str]:
    """Header lines of a request, names in lower case."""
    lines: Any = (line.partition(b":") for line in request.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:])
    return {name.decode().lower(): value.strip().decode() for name, _, value in lines}
