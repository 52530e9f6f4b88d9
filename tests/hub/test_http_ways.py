"""The ways in and the ways on: listeners, paths, what the target is told, and tunnels."""

from __future__ import annotations

import contextlib
import re
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from seawall.cli.main import main
from tests.hub.bed import (
    LOOPS,
    Caller,
    HubBed,
    RawConnection,
    RawServer,
    answering,
    ask,
    hub_bed,
    raw_server,
    response,
    talk,
)

OK = response(200, b"ok")


def told(server: RawServer, name: str) -> list[str]:
    """What the last request said under ``name``."""
    lines = server.requests[-1].partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
    return [value for key, value in (line.split(": ", 1) for line in lines) if key.lower() == name.lower()]


# -- in

def connect(bed: HubBed) -> Caller:
    """A client at the first listener, whatever its kind."""
    where = bed.hub.listeners[0].sock
    sock = socket.socket(where.family)
    sock.connect(where.getsockname())
    return Caller.on(sock)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(("listen", "peer"), [
    ("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1"), ("unix:{}/hub.sock", "unknown"),
])
def test_clients_come_in_by_any_listener(listen: str, peer: str, loop: str, tmp_path: Path) -> None:
    place = listen.format(tmp_path)
    with raw_server(answering(OK)) as server:
        with hub_bed(f"CORE={server.url}", loop=loop, listen=[place]) as bed, connect(bed) as caller:
            assert re.fullmatch(re.escape(place).replace(":0", r":\d+"), bed.run(lambda hub: hub.listeners[0].name))
            assert [caller.ask("GET", "/CORE/x").body for _ in range(2)] == [b"ok"] * 2
            assert told(server, "X-Forwarded-For") == [peer]
    assert list(tmp_path.iterdir()) == []


def test_a_hub_may_have_several_listeners(tmp_path: Path) -> None:
    places = ["127.0.0.1:0", f"unix:{tmp_path}/a.sock", "127.0.0.1:0", f"unix:{tmp_path}/b.sock"]
    with hub_bed("CORE=http://127.0.0.1:9", loop="uvloop", listen=places) as bed:
        assert [ask(port, "GET", "/NONE").status for port in bed.ports if port] == [404, 404]
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.sock", "b.sock"]


def test_the_socket_of_a_dead_hub_is_replaced(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(f"{tmp_path}/hub.sock")
    with hub_bed("CORE=http://127.0.0.1:9", loop="uvloop", listen=[f"unix:{tmp_path}/hub.sock"]) as bed:
        with connect(bed) as caller:
            assert caller.ask("GET", "/NONE").status == 404


def start(capsys: pytest.CaptureFixture[str], tmp_path: Path, *words: str) -> tuple[int, str]:
    """The exit code of a hub that cannot start, and what it says."""
    log = f"{tmp_path}/breaker.log"
    code = main(["hub", "--target", "http://127.0.0.1:9", "--breaker-log", log, "--admin", "off", *words])
    return code, capsys.readouterr().err


@pytest.mark.parametrize("kind", ["tcp", "unix", "unix, too busy to answer"])
def test_a_place_that_is_taken_is_said_and_left_alone(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with contextlib.ExitStack() as stack:
        other = stack.enter_context(socket.socket(socket.AF_INET if kind == "tcp" else socket.AF_UNIX))
        path = f"{tmp_path}/hub.sock"
        other.bind(("127.0.0.1", 0) if kind == "tcp" else path)
        other.listen(0 if "busy" in kind else 5)
        if "busy" in kind:
            for _ in range(2):
                waiting = stack.enter_context(socket.socket(socket.AF_UNIX))
                waiting.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    waiting.connect(path)
        place = f"127.0.0.1:{other.getsockname()[1]}" if kind == "tcp" else f"unix:{path}"
        code, said = start(capsys, tmp_path, "--listen", place)
        assert code == 69
        assert said == (f"error: cannot listen on {place} (address already in use)\n"
                        "hint: --listen takes another address; --admin another, or off\n")
        if kind == "unix":
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(20)
                client.connect(path)  # nobody has taken its path away


@pytest.mark.parametrize(("path", "why"), [
    ("no such directory/hub.sock", "no such file or directory"), ("a file", "address already in use"),
    ("a file/hub.sock", "not a directory"),
])
def test_a_path_where_no_socket_can_be_is_said(path: str, why: str, tmp_path: Path,
                                               capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a file").write_text("precious")
    code, said = start(capsys, tmp_path, "--listen", f"unix:{tmp_path}/{path}")
    assert (code, said.splitlines()[0]) == (69, f"error: cannot listen on unix:{tmp_path}/{path} ({why})")
    assert (tmp_path / "a file").read_text() == "precious"


# -- which target, and by which path

@pytest.mark.parametrize(("settings", "path", "sent"), [
    ("", "/CORE/a/b?c=/d", "/a/b?c=/d"), ("", "/CORE", "/"), ("", "/CORE/", "/"), ("", "/CORE?x=1", "/?x=1"),
    ("", "/CORE?next=/a/b", "/?next=/a/b"), ("", "/CORE//x", "//x"), ("", "/CORE/../x", "/../x"),
    ("/api/v1", "/CORE/a?b", "/api/v1/a?b"), ("/api", "/CORE", "/api/"), ("/api", "/CORE?x=/1", "/api/?x=/1"),
    ("", "http://CORE/CORE/x", "/x"),
    ("", "/core/x", None), ("", "/CORE%2Fx", None), ("", "//CORE/x", None), ("", "/", None), ("", "/CORES/x", None),
    ("", "/NONE?x=/CORE/x", None), ("", "/c%6fRE/x", None),
])
def test_a_path_leads_to_its_target_or_nowhere(settings: str, path: str, sent: str | None) -> None:
    with raw_server(answering(OK)) as server, hub_bed(f"CORE={server.url}{settings}", loop="uvloop") as bed:
        answer = ask(bed.port, "GET", path)
        if sent is None:
            assert (answer.status, answer.code) == (404, "E404")
            assert "/NAME/... with one of CORE" in answer.json()["detail"]
        else:
            assert server.requests[0].startswith(f"GET {sent} HTTP/1.1\r\n".encode())


@pytest.mark.parametrize(("path", "core"), [
    ("/any/path?x=1", True), ("/", True), ("/?next=/CLAIM/x", True), ("/tx", True), ("/CORE/x", True), ("/CLAIM/x", False),
])
def test_a_default_takes_what_names_no_target_with_its_path_as_it_is(path: str, core: bool) -> None:
    with raw_server(answering(OK)) as one, raw_server(answering(OK)) as other:
        with hub_bed(f"CORE={one.url}", f"CLAIM={other.url}", loop="uvloop", default="CORE") as bed:
            assert ask(bed.port, "GET", path).status == 200
        sent = (one if core else other).requests[0].split(b" ")[1].decode()
        assert sent == (path if core and path != "/CORE/x" else "/x")


@pytest.mark.parametrize("path", ["/x", "/target/x", "/target", "/tx", "/CORE?y=/z"])
def test_a_target_without_a_name_gets_every_path_as_it_is(path: str) -> None:
    with raw_server(answering(OK)) as server, hub_bed(server.url, loop="uvloop") as bed:
        assert ask(bed.port, "GET", path).status == 200
        assert server.requests[0].startswith(f"GET {path} HTTP/1.1\r\n".encode())


def test_options_for_the_whole_server_go_to_the_default() -> None:
    with raw_server(answering(OK)) as server, hub_bed(f"{server.url}/base", loop="uvloop") as bed:
        assert ask(bed.port, "OPTIONS", "*").status == 200
        assert server.requests[0].startswith(b"OPTIONS * HTTP/1.1\r\n")


@pytest.mark.parametrize("settings", [{}, {"default": "CORE"}])
def test_the_health_path_is_answered_whatever_the_targets_do(settings: dict[str, Any]) -> None:
    with hub_bed("CORE=http://127.0.0.1:9", loop="uvloop", health_path="/healthz", **settings) as bed:
        with Caller(bed.port) as caller:
            assert caller.ask("GET", "/healthz").json() == {"ready": True}
            assert caller.ask("HEAD", "/healthz?x").headers["content-length"] == "16"
            answer = caller.ask("POST", "/healthz", b"not wanted")
            assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert bed.codes() == {}


# -- what the target is told

@pytest.mark.parametrize(("policy", "expected"), [
    ("target", "127.0.0.1:{port}"), ("client", "hub.test"), ("api.example:8080", "api.example:8080"),
])
def test_the_host_is_the_targets_own_the_clients_or_a_given_one(policy: str, expected: str) -> None:
    with raw_server(answering(OK)) as server:
        with hub_bed(f"CORE={server.url},host-header={policy}", loop="uvloop") as bed:
            ask(bed.port, "GET", "/CORE/x")
            assert told(server, "Host") == [expected.format(port=server.port)]
            ask(bed.port, "GET", "http://other.test/CORE/x")
            assert told(server, "Host") == ["other.test" if policy == "client" else expected.format(port=server.port)]


FORGED = {"X-Forwarded-For": "10.0.0.1, 10.0.0.2", "X-Forwarded-Proto": "https", "Via": "1.0 cache"}


@pytest.mark.parametrize(("trust", "sent", "expected"), [
    (False, {}, ["127.0.0.1", "http", "1.1 seawall"]),
    (True, {}, ["127.0.0.1", "http", "1.1 seawall"]),
    (False, FORGED, ["127.0.0.1", "http", "1.0 cache, 1.1 seawall"]),
    (True, FORGED, ["10.0.0.1, 10.0.0.2, 127.0.0.1", "https", "1.0 cache, 1.1 seawall"]),
    (True, {"X-Forwarded-For": ""}, ["127.0.0.1", "http", "1.1 seawall"]),
])
def test_where_a_request_comes_from_is_said_once_and_not_believed_unless_trusted(
    trust: bool, sent: dict[str, str], expected: list[str]
) -> None:
    with raw_server(answering(OK)) as server, hub_bed(f"CORE={server.url}", loop="uvloop", trust_forwarded=trust) as bed:
        with Caller(bed.port) as caller:
            for _ in range(2):
                caller.ask("GET", "/CORE/x", headers=sent)
                names = ("X-Forwarded-For", "X-Forwarded-Proto", "Via")
                assert [told(server, name) for name in names] == [[value] for value in expected]


def test_each_request_has_an_id_its_own_or_a_new_one() -> None:
    with raw_server(answering(OK)) as server, hub_bed(f"CORE={server.url}", loop="uvloop") as bed:
        with Caller(bed.port) as caller:
            seen = []
            for own in (None, None, "abc-1", "abc-2", None, "abc-2", None):
                caller.ask("GET", "/CORE/x", headers={} if own is None else {"X-Request-Id": own})
                seen += told(server, "X-Request-Id")
        assert seen[2:4] == ["abc-1", "abc-2"]
        assert seen[5] == "abc-2"
        assert len(set(seen)) == 6
        assert all(re.fullmatch("[0-9a-f]{12}-[0-9a-f]+", seen[number]) for number in (0, 1, 4, 6))


def test_other_headers_pass_as_they_are_in_their_order() -> None:
    lines = [b"x-b: 1", b"X-A:2", b"X-b:  3 ", b"Cookie: a=1", b"Cookie: b=2", b"X-Bytes: \xff\xfe", b"X-Empty:"]
    with raw_server(answering(OK)) as server, hub_bed(f"CORE={server.url}", loop="uvloop") as bed:
        talk(bed.port, b"GET /CORE/x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" + b"\r\n".join(lines) + b"\r\n\r\n")
        assert server.requests[0].partition(b"\r\n\r\n")[0].split(b"\r\n")[2:9] == lines


# -- tunnels

UPGRADE = {"Connection": "keep-alive, Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "x"}


def echo(connection: RawConnection) -> None:
    connection.read_request()
    switched = b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: y\r\n\r\n"
    connection.send(switched + b"first")
    while connection.rest or connection.more():
        connection.send(connection.rest)
        if b"bye" in connection.rest:
            return
        connection.rest = b""


@pytest.mark.parametrize("loop", LOOPS)
def test_a_tunnel_carries_everything_both_ways_until_the_target_ends_it(loop: str) -> None:
    with raw_server(echo) as server, hub_bed(f"CORE={server.url}", loop=loop) as bed, Caller(bed.port) as caller:
        caller.begin("GET", "/CORE/ws", headers=UPGRADE)
        caller.send(b"ahead")
        answer = caller.answer()
        assert (answer.status, answer.headers["upgrade"], answer.headers["sec-websocket-accept"]) == (101, "websocket", "y")
        assert caller.exactly(10) == b"firstahead"
        assert (told(server, "Upgrade"), told(server, "Connection")) == (["websocket"], ["upgrade"])
        assert bed.in_flight() == 1
        for word in (b"GET / HTTP/1.1\r\n\r\n", bytes(range(256)) * 400, b"bye"):
            caller.send(word)
            assert caller.exactly(len(word)) == word
        assert caller.ended()
        bed.wait_for(lambda hub: hub.backends["CORE"].codes == {"0000": 1})


@pytest.mark.fault("F56")
def test_a_tunnel_outlives_the_budget_and_ends_when_nobody_speaks() -> None:
    target = "budget-ms=200,read=0.1,body-gap=0.1"
    with raw_server(echo) as server, hub_bed(f"CORE={server.url},{target}", loop="uvloop", idle_timeout="0.4") as bed:
        with Caller(bed.port) as caller:
            caller.begin("GET", "/CORE/ws", headers=UPGRADE)
            caller.answer()
            caller.exactly(5)
            for _ in range(5):  # longer than the idle timeout all in all
                time.sleep(0.1)
                caller.send(b".")
                assert caller.exactly(1) == b"."
            assert caller.ended()


def test_a_target_may_decline_to_switch() -> None:
    with raw_server(answering(OK)) as server, hub_bed(f"CORE={server.url}", loop="uvloop") as bed:
        with Caller(bed.port) as caller:
            assert caller.ask("GET", "/CORE/ws", headers=UPGRADE).body == b"ok"
            assert caller.ask("GET", "/CORE/x", headers={"Upgrade": "not named by Connection"}).status == 200
        assert told(server, "Upgrade") == []
