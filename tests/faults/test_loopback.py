"""Three places on loopback where nobody answers, and each behaves as its name says."""

from __future__ import annotations

import socket
import time

import pytest

from seawall.faults.loopback import black_hole, refusing, silent

pytestmark = pytest.mark.req("BUDGET-2")


def test_a_connection_is_refused_and_nobody_else_gets_the_port() -> None:
    with refusing() as port:
        for _ in range(3):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), 10)
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))


def test_a_black_hole_says_neither_yes_nor_no_however_often_it_is_asked() -> None:
    with black_hole() as port:
        for _ in range(3):
            began = time.monotonic()
            with pytest.raises(TimeoutError):
                socket.create_connection(("127.0.0.1", port), 0.1)
            assert time.monotonic() - began >= 0.1


def test_a_silent_place_takes_the_connection_and_the_request_and_sends_nothing() -> None:
    with silent() as port:
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port), 10) as sock:
                sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
                sock.settimeout(0.05)
                with pytest.raises(TimeoutError):
                    sock.recv(1)


@pytest.mark.parametrize("place", [refusing, black_hole, silent])
def test_a_place_is_gone_when_its_block_ends(place: type) -> None:
    with place() as port:
        pass
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 10)
