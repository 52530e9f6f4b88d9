"""A name is looked up aside: whoever waits for it waits no longer than its own limit."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from seawall.measure.lookup import addresses

FOUND = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 80))]


class NameServer:
    """Stands for the system's resolver: it hangs until it is freed, then says what it is told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.freed = threading.Event()
        self.answer: list[Any] | Exception = FOUND * 2

    def __call__(self, host: str, port: int, type: int = 0, flags: int = 0) -> list[Any]:
        if flags & socket.AI_NUMERICHOST:
            raise socket.gaierror(socket.EAI_NONAME, "not numeric")
        self.asked.append(host)
        assert self.freed.wait(20)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def name_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServer]:
    server = NameServer()
    monkeypatch.setattr(socket, "getaddrinfo", server)
    yield server
    server.freed.set()
    for thread in threading.enumerate():
        if thread.name.startswith("seawall-look-up"):
            thread.join(20)


def test_an_address_is_asked_of_nobody() -> None:
    assert addresses("127.0.0.1", 80, 0.0) == [(socket.AF_INET, ("127.0.0.1", 80))]
    assert addresses("::1", 80, 0.0) == [(socket.AF_INET6, ("::1", 80, 0, 0))]


def test_a_name_has_its_addresses_each_once(name_server: NameServer) -> None:
    name_server.freed.set()
    assert addresses("core.test", 80, 20) == [(socket.AF_INET, ("127.0.0.1", 80))]


def test_a_resolver_that_hangs_is_not_waited_for(name_server: NameServer) -> None:
    began = time.monotonic()
    with pytest.raises(TimeoutError) as late:
        addresses("core.test", 80, 0.05)
    assert late.value.errno is None
    assert 0.05 <= time.monotonic() - began < 10


def test_who_asks_meanwhile_waits_for_the_same_look_up(name_server: NameServer) -> None:
    for _ in range(5):
        with pytest.raises(TimeoutError):
            addresses("core.test", 80, 0.001)
    assert name_server.asked == ["core.test"]
    name_server.freed.set()
    assert addresses("core.test", 80, 20)


@pytest.mark.parametrize(("answer", "why"), [
    (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "not known"),
    (UnicodeError("label too long"), "no name of a host"),
    ([], "has no address"),
])
def test_a_failure_of_the_look_up_is_an_error_of_the_system(
    name_server: NameServer, answer: list[Any] | Exception, why: str
) -> None:
    name_server.answer = answer
    name_server.freed.set()
    with pytest.raises(OSError, match=why):
        addresses("core.test", 80, 20)
    with pytest.raises(OSError, match=why):  # asked again: a failure is not kept
        addresses("core.test", 80, 20)
    assert name_server.asked == ["core.test"] * 2
