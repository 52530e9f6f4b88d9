"""TLS is part of reaching a target: what goes wrong there ends in connect, and no handshake gets past a limit."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme

from seawall.faults.loopback import silent
from seawall.measure.call import call, tls
from tests.hub.raw import RawConnection, RawServer, answering, raw_server, response

LONG = 60.0  # s


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA(key_type=trustme.KeyType.ECDSA)


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The system trusts this authority, as SSL_CERT_FILE has it."""
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    tls.cache_clear()
    yield
    tls.cache_clear()


@contextmanager
def secure(
    authority: trustme.CA, script: Callable[[RawConnection], object], name: str = "127.0.0.1"
) -> Iterator[RawServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name, key_type=trustme.KeyType.ECDSA).configure_cert(context)

    def over_tls(connection: RawConnection) -> None:
        connection.sock = context.wrap_socket(connection.sock, server_side=True, suppress_ragged_eofs=False)
        script(connection)

    with raw_server(over_tls) as server:
        yield server


@pytest.mark.usefixtures("trusted")
def test_a_target_behind_tls_is_called_as_any_other(authority: trustme.CA) -> None:
    with secure(authority, answering(response(503, b"busy"))) as target:
        called = call(f"https://127.0.0.1:{target.port}/", connect=LONG)
    assert (called.phase, called.status, called.body) == ("done", 503, b"busy")


@pytest.mark.usefixtures("trusted")
def test_a_certificate_for_another_name_ends_in_connect(authority: trustme.CA) -> None:
    with secure(authority, answering(response(200)), "other.example") as target:
        called = call(f"https://127.0.0.1:{target.port}/", connect=LONG)
    assert called.phase == "connect"
    assert called.error is not None
    assert called.error.startswith("TLS: the certificate is not accepted: IP address mismatch")


def test_an_authority_nobody_knows_ends_in_connect(authority: trustme.CA) -> None:
    with secure(authority, answering(response(200))) as target:
        called = call(f"https://127.0.0.1:{target.port}/", connect=LONG)
    assert called.phase == "connect"
    assert called.error is not None
    assert called.error.startswith("TLS: the certificate is not accepted: ")


def test_a_target_that_speaks_no_tls_ends_in_connect() -> None:
    def script(connection: RawConnection) -> None:
        connection.more()
        connection.send(response(400))

    with raw_server(script) as target:
        called = call(f"https://127.0.0.1:{target.port}/", connect=LONG)
    assert called.phase == "connect"
    assert called.error is not None
    assert called.error.startswith("TLS: ")


def test_a_handshake_that_hangs_ends_at_the_limit_to_connect() -> None:
    tls()
    with silent() as port:
        called = call(f"https://127.0.0.1:{port}/", connect=0.2)
    assert (called.phase, called.limit, called.error) == ("connect", "connect", "no TLS handshake within 0.2 s")
    assert called.elapsed >= 0.2


@pytest.mark.fault("F36")
def test_a_handshake_that_drips_ends_at_the_limit_to_connect() -> None:
    def script(connection: RawConnection) -> None:
        connection.more()
        connection.drip(b"\x16\x03\x03\x10\x00" + b"\x02" * 4000, 0.02)

    tls()
    with raw_server(script) as target:
        called = call(f"https://127.0.0.1:{target.port}/", connect=0.2)
    assert (called.phase, called.limit) == ("connect", "connect")
    assert 0.2 <= called.elapsed < 20


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("counted", [True, False])
def test_a_body_that_tls_does_not_end_is_not_whole(authority: trustme.CA, counted: bool) -> None:
    """Without a length only the end of the connection says that all is in, so it has to be a proper one."""
    def script(connection: RawConnection) -> None:
        connection.read_request()
        connection.send(b"HTTP/1.1 200 OK\r\n" + (b"Content-Length: 9\r\n" if counted else b"") + b"\r\nabc")

    with secure(authority, script) as target:
        called = call(f"https://127.0.0.1:{target.port}/", connect=LONG)
    assert (called.phase, called.status, called.body) == ("read", 200, b"abc")


@pytest.mark.usefixtures("trusted")
def test_a_body_that_tls_ends_is_whole(authority: trustme.CA) -> None:
    def script(connection: RawConnection) -> None:
        connection.read_request()
        connection.send(b"HTTP/1.1 200 OK\r\n\r\nabc")
        assert isinstance(connection.sock, ssl.SSLSocket)
        connection.sock.unwrap()

    with secure(authority, script) as target:
        called = call(f"https://127.0.0.1:{target.port}/", connect=LONG)
    assert (called.phase, called.body) == ("done", b"abc")
