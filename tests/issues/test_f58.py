"""F58: a page in a browser on the operator's machine, by DNS rebinding, reads the admin port. Here it gets 421."""

from __future__ import annotations

from pathlib import Path

import pytest

from seawall.hub.address import Address
from seawall.hub.admin_host import HostCheck
from seawall.hub.listen import open_listener
from tests.adminport import admin_port, asker
from tests.aio import run_async

LOOPBACK = ["localhost", "LocalHost:8090", "127.0.0.1", "127.0.0.1:8090", "[::1]", "[::1]:8090", "[0:0:0:0:0:0:0:1]"]
FOREIGN = [
    "attacker.example", "attacker.example:8090", "localhost.attacker.example", "127.0.0.1.attacker.example",
    "127.0.0.1@attacker.example", "localhost@attacker.example:8090", "attacker.example:localhost", "localhost:80:90",
    "::1", "[::1", "[localhost]", "[127.0.0.1]", "0x7f.1", "127.1", "2130706433", "localhost ", "localhost:x", "0",
]  # fmt: skip


@pytest.mark.fault("F58")
@pytest.mark.parametrize("path", ["/livez", "/readyz", "/api/v1/snapshot", "/metrics", "/nothing"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_a_foreign_name_is_answered_421_before_anything_is_read(tmp_path: Path, method: str, path: str) -> None:
    """Neither is a body waited for, nor does the answer tell whether there is such a page."""

    async def test() -> None:
        async with admin_port(tmp_path) as (_, door), asker(door) as one:
            one.send(f"{method} {path} HTTP/1.1\r\nHost: attacker.example\r\nContent-Length: 9\r\n\r\n".encode())
            answer = await one.answer(method="GET")
            assert answer.status == 421
            assert b"seawall." not in answer.body
            assert "attacker" not in answer.body.decode()
            assert await one.ended()

    run_async(test())


@pytest.mark.fault("F58")
@pytest.mark.parametrize(("head", "status"), [
    ("GET /livez HTTP/1.1\r\n\r\n", 400),
    ("GET /livez HTTP/1.0\r\n\r\n", 400),
    ("GET /livez HTTP/1.1\r\nHost:\r\n\r\n", 400),
    ("GET /livez HTTP/1.1\r\nHost: localhost\r\nHost: attacker.example\r\n\r\n", 400),
    ("GET http://attacker.example/livez HTTP/1.1\r\nHost: localhost\r\n\r\n", 421),
    ("GET http://localhost/livez HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
    ("GET /livez HTTP/1.0\r\nHost: localhost\r\n\r\n", 200),
])  # fmt: skip
def test_no_host_or_two_or_another_one_in_the_first_line(tmp_path: Path, head: str, status: int) -> None:
    async def test() -> None:
        async with admin_port(tmp_path) as (_, door), asker(door) as one:
            one.send(head.encode())
            assert (await one.answer()).status == status

    run_async(test())


@pytest.mark.fault("F58")
def test_the_names_of_this_machine_are_answered(tmp_path: Path) -> None:
    """Through a forwarded port (ssh -L, a container's) the port in the name is another one."""

    async def test() -> None:
        async with admin_port(tmp_path) as (_, door), asker(door) as one:
            for host in [*LOOPBACK, door.name]:
                assert (await one.ask("/livez", host=host)).status == 200, host

    run_async(test())


@pytest.mark.fault("F58")
@pytest.mark.parametrize(("bound", "more", "others"), [
    ("127.0.0.1", [], ["127.0.0.2", "10.0.0.5", "[::]", "0.0.0.0"]),
    ("127.0.0.5", ["127.0.0.5", "127.0.0.5:81"], ["127.0.0.2"]),
    ("10.0.0.5", ["10.0.0.5:8090"], ["10.0.0.6"]),
    ("0.0.0.0", ["10.0.0.5", "192.0.2.7:8090", "[2001:db8::1]"], []),
    ("::", ["10.0.0.5", "[2001:DB8::1]:8090"], []),
    ("2001:db8::1", ["[2001:0DB8:0::1]"], ["[2001:db8::2]", "10.0.0.5"]),
])  # fmt: skip
def test_only_loopback_names_and_the_bound_address_are_ours(bound: str, more: list[str], others: list[str]) -> None:
    """Bound to a wildcard, any IP address may be ours: it cannot be rebound, which takes a name."""
    check = HostCheck((bound, 8090))
    assert [host for host in [*LOOPBACK, *more] if not check(host.encode())] == []
    assert [host for host in [*FOREIGN, *others] if check(host.encode())] == []


@pytest.mark.fault("F58")
def test_a_name_the_operator_has_bound_to_is_his_own() -> None:
    check = HostCheck(("10.0.0.5", 8090), "Hub.internal")
    assert check(b"hub.internal:8090")
    assert check(b"10.0.0.5")
    assert not check(b"hub.internal.attacker.example")


def test_on_a_unix_socket_any_name_goes(tmp_path: Path) -> None:
    """No page can reach it, and clients write what they like there."""
    with open_listener(Address(kind="unix", path=str(tmp_path / "admin.sock"))) as sock:
        assert HostCheck(sock.getsockname())(b"whatever")
