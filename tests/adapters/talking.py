"""Servers that say what a test tells them to, one connection after the other; and what those tests share."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import urllib3

from seawall import CircuitBreaker, Retry, Wall
from seawall.adapters.urllib3 import protect

HEAD = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"


def manager(wall: Wall, **settings: Any) -> Any:
    return protect(urllib3.PoolManager(**settings), wall, target="CORE")


def again(failures: int = 9, **more: Any) -> Wall:
    """A wall whose target is asked three times, unless so many failures open its circuit before."""
    wall = Wall()
    wall.target("CORE", retry=Retry(3, base_delay=0.001, retry_budget=None), breaker=CircuitBreaker(failures), **more)
    return wall


def counts(wall: Wall) -> tuple[int, int, int]:
    """Calls running and completed, and the breaker's failures in a row."""
    now = wall["CORE"].snapshot()
    assert now.bulkhead is not None
    assert now.breaker is not None
    return now.bulkhead.in_flight, now.bulkhead.completed, now.breaker.failures


@contextlib.contextmanager
def listening(talk: Callable[[socket.socket], object], backlog: int = 5) -> Iterator[int]:
    """A server by its port: talks to one connection after the other, in a thread."""
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError):
                sock, _ = listener.accept()
                with sock:
                    sock.settimeout(10)
                    talk(sock)

    with socket.create_server(("127.0.0.1", 0), backlog=backlog) as listener:
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        yield port
        stop.set()
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        thread.join(15)


def saying(*parts: bytes) -> Callable[[socket.socket], None]:
    """Takes a request, says that, and closes."""

    def talk(sock: socket.socket) -> None:
        if sock.recv(65536):
            for part in parts:
                sock.sendall(part)

    return talk


def mute(sock: socket.socket) -> None:
    """Reads what comes, and says nothing."""
    while sock.recv(65536):
        pass
