"""Targets behind TLS: verified by name and by authority unless told otherwise, and else the same as any target."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trustme

from seawall.cli.main import main
from tests.hub.bed import LOOPS, Caller, RawConnection, RawServer, answering, ask, hub_bed, raw_server, response

OK = response(200, b"ok")


@dataclass
class Secure:
    """A target that speaks TLS, and what it was asked for."""

    server: RawServer
    ca: Path
    names: list[str | None] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.server.port}"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA(key_type=trustme.KeyType.ECDSA)


@contextmanager
def secure(
    authority: trustme.CA, directory: Path, script: Callable[[RawConnection], object], *names: str
) -> Iterator[Secure]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names, key_type=trustme.KeyType.ECDSA).configure_cert(context)
    context.set_alpn_protocols(["h2", "http/1.1"])
    asked: list[str | None] = []
    context.sni_callback = lambda sock, name, own: asked.append(name)

    def over_tls(connection: RawConnection) -> None:
        connection.sock = context.wrap_socket(connection.sock, server_side=True, suppress_ragged_eofs=False)
        assert connection.sock.selected_alpn_protocol() == "http/1.1"
        script(connection)

    ca = directory / "ca.pem"
    authority.cert_pem.write_to_path(ca)
    with raw_server(over_tls) as server:
        yield Secure(server, ca, asked)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_target_behind_tls_is_relayed_to_as_any_other(loop: str, authority: trustme.CA, tmp_path: Path) -> None:
    """Many requests on one connection, and bodies of megabytes both ways."""
    def script(connection: RawConnection) -> None:
        while request := connection.read_request():
            connection.send(response(200, request.partition(b"\r\n\r\n")[2] or b"ok"))

    body = bytes(range(256)) * 8000
    with secure(authority, tmp_path, script, "127.0.0.1") as target:
        with hub_bed(f"CORE={target.url},ca={target.ca},connect=5,read=10", loop=loop) as bed, Caller(bed.port) as caller:
            assert [caller.ask("GET", "/CORE/x").body for _ in range(20)] == [b"ok"] * 20
            assert caller.ask("PUT", "/CORE/x", body).body == body
        assert target.server.connections == 1
        assert target.names == [None]  # an address is no name to be asked for


@pytest.mark.parametrize("loop", LOOPS)
def test_the_name_asked_for_and_verified_can_be_another_than_the_host(
    loop: str, authority: trustme.CA, tmp_path: Path
) -> None:
    with secure(authority, tmp_path, answering(OK), "core.test") as target:
        with hub_bed(f"CORE={target.url},ca={target.ca},sni=core.test,connect=5", loop=loop) as bed:
            assert ask(bed.port, "GET", "/CORE/x").status == 200
        assert target.names == ["core.test"]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(("names", "more", "why"), [
    (["127.0.0.1"], ",sni=other.test", "Hostname mismatch, certificate is not valid for 'other.test'."),
    (["other.test"], "", "IP address mismatch, certificate is not valid for '127.0.0.1'."),
    (["127.0.0.1"], ",ca=-", "unable to get local issuer certificate"),
])
def test_a_certificate_that_is_not_the_targets_is_said_and_not_accepted(
    names: list[str], more: str, why: str, loop: str, authority: trustme.CA, tmp_path: Path
) -> None:
    with secure(authority, tmp_path, answering(OK), *names) as target:
        ca = "" if "ca=-" in more else f",ca={target.ca}"
        with hub_bed(f"CORE={target.url},connect=5{ca}{more.removesuffix(',ca=-')}", loop=loop) as bed:
            answer = ask(bed.port, "GET", "/CORE/x")
            assert (answer.status, answer.code) == (502, "E901")
            assert answer.json()["detail"] == f"could not connect to CORE: its certificate is not accepted: {why}"
        assert target.server.requests == []


def test_the_certificate_is_not_verified_where_that_was_asked_for(authority: trustme.CA, tmp_path: Path) -> None:
    with secure(authority, tmp_path, answering(OK), "other.test") as target:
        with hub_bed(f"CORE={target.url},verify=no,connect=5", loop="uvloop") as bed:
            assert ask(bed.port, "GET", "/CORE/x").status == 200


def test_a_target_that_speaks_no_tls_is_said_to() -> None:
    def script(connection: RawConnection) -> None:
        connection.more()
        connection.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    with raw_server(script) as server, hub_bed(f"CORE=https://127.0.0.1:{server.port},connect=5", loop="uvloop") as bed:
        answer = ask(bed.port, "GET", "/CORE/x")
        assert answer.code == "E901"
        assert answer.json()["detail"] == "could not connect to CORE: TLS failed: WRONG_VERSION_NUMBER"


@pytest.mark.parametrize("loop", LOOPS)
def test_a_handshake_counts_as_connecting(loop: str) -> None:
    with raw_server(lambda connection: connection.hang()) as server:
        with hub_bed(f"CORE=https://127.0.0.1:{server.port},connect=0.2", loop=loop) as bed:
            answer = ask(bed.port, "GET", "/CORE/x")
            assert (answer.status, answer.code) == (502, "E901")
            assert answer.json()["detail"] == "could not connect to CORE within 0.2 s"


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("ended", [True, False], ids=["session ended", "connection ended"])
def test_an_answer_without_length_is_whole_when_its_tls_session_is_ended(
    ended: bool, loop: str, authority: trustme.CA, tmp_path: Path
) -> None:
    """Where only the connection ends, somebody on the way may have cut the answer short (RFC 9112 9.8)."""
    def script(connection: RawConnection) -> None:
        connection.read_request()
        connection.send(b"HTTP/1.1 200 OK\r\n\r\nall of it")
        if ended:
            assert isinstance(connection.sock, ssl.SSLSocket)
            connection.sock.unwrap()

    with secure(authority, tmp_path, script, "127.0.0.1") as target:
        with hub_bed(f"CORE={target.url},ca={target.ca},connect=5", loop=loop) as bed, Caller(bed.port) as caller:
            caller.begin("GET", "/CORE/x")
            if ended:
                assert caller.answer().body == b"all of it"
            else:
                with pytest.raises((EOFError, ConnectionError)):
                    caller.answer()


@pytest.mark.parametrize("loop", LOOPS)
def test_a_tunnel_through_tls_ends_when_the_client_ends_it(loop: str, authority: trustme.CA, tmp_path: Path) -> None:
    ended = threading.Event()

    def script(connection: RawConnection) -> None:
        connection.read_request()
        connection.send(b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
        assert connection.exactly(4) == b"ping"
        connection.send(b"pong")
        connection.hang()
        ended.set()

    with secure(authority, tmp_path, script, "127.0.0.1") as target:
        with hub_bed(f"CORE={target.url},ca={target.ca},connect=5", loop=loop) as bed, Caller(bed.port) as caller:
            caller.begin("GET", "/CORE/x", headers={"Connection": "upgrade", "Upgrade": "x"})
            assert caller.answer().status == 101
            caller.send(b"ping")
            assert caller.exactly(4) == b"pong"
            caller.close()
            assert ended.wait(20)


@pytest.mark.parametrize("content", ["no certificate at all", ""])
def test_a_file_of_authorities_that_holds_none_is_said_at_start(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_text(content)
    words = ["--breaker-log", f"{tmp_path}/breaker.log", "--admin", "off"]
    assert main(["hub", "--target", f"CORE=https://127.0.0.1:1,ca={ca}", *words]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith(f"error: cannot use {ca} as the authorities of target CORE: ")
    assert said[1] == "hint: give a PEM file of certificates"
