"""The misbehaving target: it does what it is told, counts what it saw, and notices who leaves."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import trustme

from seawall.faults.running import RunningTarget, running_target
from seawall.faults.target import FakeTarget
from tests.aio import run_async


@pytest.fixture
def core(caplog: pytest.LogCaptureFixture) -> Iterator[RunningTarget]:
    """A target whose callbacks all ended well: asyncio logs those that raised."""
    with running_target("CORE") as target:
        yield target
    assert [record.getMessage() for record in caplog.get_records("call") if record.name == "asyncio"] == []


@contextmanager
def connected(target: RunningTarget) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", target.port), timeout=20) as sock:
        yield sock


def ask(target: RunningTarget, method: str, path: str, body: bytes | str | None = None, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=20)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        return answer.status, json.loads(content) if content else None
    finally:
        connection.close()


def tx(to: RunningTarget, /, **fields: Any) -> tuple[int, Any]:
    return ask(to, "POST", "/tx", json.dumps(fields))


def request(path: str, body: bytes = b"", method: str = "POST") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def everything(sock: socket.socket) -> bytes:
    chunks = []
    while chunk := sock.recv(65536):
        chunks.append(chunk)
    return b"".join(chunks)


def test_a_transaction_is_answered_and_a_refusal_of_business_is_an_answer(core: RunningTarget) -> None:
    assert tx(core, target="CORE", id="t1", amount=1000) == (
        200, {"code": "0000", "target": "CORE", "id": "t1", "amount": 1000, "balance": 1000})
    status, answer = tx(core, id="t2", amount=1000.5)
    assert (status, answer["code"], answer["id"], answer["balance"]) == (200, "B201", "t2", 1000)
    assert core.stats()["by_code"] == {"0000": 1, "B201": 1}


@pytest.mark.parametrize("body", ["", "amount=5", "[1]", '{"amount": "5"}', '{"amount": -1}', '{"amount": true}',
                                  '{"amount": NaN}', '{"amount": 1e999}', "[" * 100_000, b"\xff\xfe{"])
def test_what_is_no_transaction_is_answered_400_with_the_reason(core: RunningTarget, body: str | bytes) -> None:
    status, answer = ask(core, "POST", "/tx", body)
    assert (status, answer["code"], answer["target"]) == (400, "E400", "CORE")
    assert answer["detail"]


def test_a_transaction_beyond_a_mebibyte_is_answered_413(core: RunningTarget) -> None:
    assert ask(core, "POST", "/tx", b"{" + b" " * (1 << 20) + b"}")[0] == 413


def test_any_other_path_answers_what_was_received(core: RunningTarget) -> None:
    status, answer = ask(core, "PUT", "/a/b?c=d", b"12345", **{"X-Budget-Ms": "700"})
    assert status == 200
    assert (answer["code"], answer["target"], answer["method"], answer["path"]) == ("0000", "CORE", "PUT", "/a/b?c=d")
    assert (answer["body_bytes"], answer["headers"]["x-budget-ms"]) == (5, "700")
    assert (core.stats()["calls"], core.stats()["other"]) == (0, 1)


@pytest.mark.req("HUB-8")
def test_the_modes_of_the_issue_as_curl_sends_them(core: RunningTarget) -> None:
    """curl -d marks its JSON as a form; the type is ignored."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    status, state = ask(core, "POST", "/_ctl", '{"mode":"fail"}', **form)
    assert (status, state["mode"], state["delay_ms"]) == (200, "fail", 5000)
    assert tx(core, amount=1)[0] == 500
    assert ask(core, "GET", "/any")[0] == 500
    assert ask(core, "POST", "/_ctl", '{"mode":"slow"}')[1]["delay_ms"] == 5000
    assert ask(core, "POST", "/_ctl", '{"mode":"slow","delay_ms":1}')[1]["delay_ms"] == 1
    assert tx(core, amount=1)[0] == 200
    assert ask(core, "POST", "/_ctl", '{"mode":"normal"}')[1]["mode"] == "normal"
    assert tx(core, amount=1)[0] == 200
    status, stats = ask(core, "GET", "/_stats")
    assert (stats["name"], stats["calls"], stats["in_flight"], stats["max_inflight"]) == ("CORE", 3, 0, 1)
    assert stats["by_code"] == {"0000": 2, "E500": 1}


@pytest.mark.parametrize(("body", "says"), [
    ('{"mode":"slwo"}', "did you mean 'slow'?"),
    ('{"mode":"explode"}', "known: normal, fail, slow"),
    ('{"mode":[]}', "known: normal"),
    ('{"delay":5}', "did you mean 'delay_ms'?); known: mode, delay_ms, status, reset"),
    ('{"mode":"fail","mode":"slow"}', "key given twice: mode"),
    ('{"mode":"fail","delay_ms":-1}', "delay_ms is a whole number from 0"),
    ('{"mode":"fail","delay_ms":true}', "delay_ms is a whole number"),
    ('{"mode":"fail","status":100}', "status is a whole number from 200 to 599"),
    ('{"mode":"fail","reset":1}', "reset is true or false"),
    ("mode=fail", "not JSON"),
])
def test_a_wrong_command_changes_nothing_and_says_what_is_known(core: RunningTarget, body: str, says: str) -> None:
    before = core.stats()
    status, answer = ask(core, "POST", "/_ctl", body)
    assert status == 400
    assert says in answer["detail"]
    assert core.stats() == before


def test_an_empty_command_tells_the_state(core: RunningTarget) -> None:
    assert ask(core, "POST", "/_ctl") == (200, core.stats())


@pytest.mark.parametrize(("method", "path", "allowed"), [
    ("GET", "/_ctl", "POST"), ("POST", "/_stats", "GET, HEAD"), ("GET", "/tx", "POST")])
def test_a_door_says_which_method_it_takes(core: RunningTarget, method: str, path: str, allowed: str) -> None:
    with connected(core) as sock:
        sock.sendall(f"{method} {path} HTTP/1.0\r\n\r\n".encode())
        answer = everything(sock)
    assert answer.startswith(b"HTTP/1.1 405 ")
    assert f"\r\nAllow: {allowed}\r\n".encode() in answer


def test_a_delay_is_kept_until_another_is_said_and_null_brings_the_default_back(core: RunningTarget) -> None:
    assert core.ctl(delay_ms=7)["delay_ms"] == 7
    assert core.ctl(mode="slow")["delay_ms"] == 7
    assert core.ctl(mode="drip", delay_ms=None)["delay_ms"] == 50
    assert core.ctl(mode="slow")["delay_ms"] == 5000


@pytest.mark.req("HUB-8")
def test_the_most_at_once_and_the_callers_that_left_are_counted(core: RunningTarget) -> None:
    core.ctl(mode="hang")
    socks = [socket.create_connection(("127.0.0.1", core.port), timeout=20) for _ in range(4)]
    try:
        for sock in socks:
            sock.sendall(request("/tx", b'{"amount":1}'))
        core.wait_for(in_flight=4)
        socks[0].close()
        core.wait_for(in_flight=3, left=1)
        socks[1].shutdown(socket.SHUT_WR)
        assert core.wait_for(in_flight=2, left=2)["max_inflight"] == 4
    finally:
        for sock in socks:
            sock.close()
    stats = core.wait_for(in_flight=0, left=4)
    assert (stats["calls"], stats["max_inflight"], stats["by_code"]) == (4, 4, {})


def test_a_slow_answer_that_nobody_waits_for_is_given_up(core: RunningTarget) -> None:
    core.ctl(mode="slow", delay_ms=50)
    with connected(core) as sock:
        sock.sendall(request("/tx", b'{"amount":1}'))
        core.wait_for(in_flight=1)
    core.wait_for(in_flight=0, left=1)
    assert tx(core, amount=1)[0] == 200  # takes as long as the one given up would have
    assert core.stats()["by_code"] == {"0000": 1}


def test_reset_sets_the_counters_to_zero_and_what_runs_is_not_counted_again(core: RunningTarget) -> None:
    core.ctl(mode="hang")
    with connected(core) as sock:
        sock.sendall(request("/tx", b'{"amount":1}'))
        core.wait_for(in_flight=1)
        state = core.ctl(mode="normal", reset=True)
        assert (state["calls"], state["in_flight"], state["max_inflight"]) == (0, 1, 1)
        tx(core, amount=1)
        assert core.stats()["max_inflight"] == 2
    stats = core.wait_for(in_flight=0)
    assert (stats["calls"], stats["left"], stats["by_code"]) == (1, 0, {"0000": 1})


def test_what_was_begun_before_a_reset_of_the_counters_is_in_none_of_them(core: RunningTarget) -> None:
    core.ctl(mode="slow", delay_ms=100)
    with connected(core) as sock:
        sock.sendall(request("/tx", b'{"amount":1}'))
        core.wait_for(in_flight=1)
        core.ctl(reset=True)
        assert sock.recv(65536).startswith(b"HTTP/1.1 200 ")
    stats = core.stats()
    assert (stats["calls"], stats["in_flight"], stats["by_code"]) == (0, 0, {})


def test_a_command_is_obeyed_by_later_requests_while_a_call_hangs(core: RunningTarget) -> None:
    core.ctl(mode="hang")
    with connected(core) as sock:
        sock.sendall(request("/tx", b'{"amount":1}'))
        core.wait_for(in_flight=1)
        core.ctl(mode="normal")
        assert tx(core, amount=1)[0] == 200
        assert core.stats()["in_flight"] == 1


def test_reset_mode_ends_the_connection_with_a_tcp_reset(core: RunningTarget) -> None:
    core.ctl(mode="reset")
    with connected(core) as sock:
        sock.sendall(request("/tx", b'{"amount":1}'))
        with pytest.raises(ConnectionResetError):
            sock.recv(1)
    assert core.stats()["by_code"] == {"reset": 1}


def test_cut_mode_sends_the_head_and_half_a_body(core: RunningTarget) -> None:
    core.ctl(mode="cut")
    with pytest.raises(http.client.IncompleteRead) as broken:
        tx(core, amount=1)
    assert broken.value.partial
    assert core.stats()["by_code"] == {"cut": 1}


def test_garbage_mode_answers_no_http(core: RunningTarget) -> None:
    core.ctl(mode="garbage")
    with pytest.raises(http.client.BadStatusLine):
        tx(core, amount=1)


@pytest.mark.parametrize("mode", ["drip", "drip_head"])
def test_a_dripping_answer_comes_whole_in_the_end_and_the_connection_goes_on(core: RunningTarget, mode: str) -> None:
    core.ctl(mode=mode, delay_ms=0)
    connection = http.client.HTTPConnection("127.0.0.1", core.port, timeout=20)
    try:
        for _ in range(2):
            connection.request("POST", "/tx", b'{"amount":1}')
            assert json.loads(connection.getresponse().read())["code"] == "0000"
    finally:
        connection.close()
    assert core.stats()["by_code"] == {"0000": 2}


def test_drip_sends_the_head_at_once_and_drip_head_one_byte(core: RunningTarget) -> None:
    for mode, ends in (("drip", b"\r\n\r\n{"), ("drip_head", b"H")):
        core.ctl(mode=mode, delay_ms=3_600_000)
        with connected(core) as sock:
            sock.sendall(request("/tx", b'{"amount":1}'))
            got = b""
            while not got.endswith(ends):
                got += sock.recv(65536)
            assert core.stats()["in_flight"] == 1
        core.wait_for(in_flight=0)


@pytest.mark.parametrize(("status", "location"), [(204, None), (302, "/elsewhere"), (429, None), (503, None)])
def test_status_mode_answers_any_status(core: RunningTarget, status: int, location: str | None) -> None:
    core.ctl(mode="status", status=status)
    connection = http.client.HTTPConnection("127.0.0.1", core.port, timeout=20)
    try:
        connection.request("GET", "/x")
        answer = connection.getresponse()
        answer.read()
        assert (answer.status, answer.getheader("Location")) == (status, location)
    finally:
        connection.close()


def test_pipelined_requests_are_answered_in_order_though_the_first_is_slow(core: RunningTarget) -> None:
    core.ctl(mode="slow", delay_ms=20)
    last = b"GET /3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with connected(core) as sock:
        sock.sendall(request("/1", b"abc") + request("/tx", b'{"id":2}') + last)
        answer = everything(sock)
    assert [answer.find(part) >= 0 for part in (b'"path": "/1"', b'"id": 2', b'"path": "/3"')] == [True] * 3
    assert answer.index(b'"path": "/1"') < answer.index(b'"id": 2') < answer.index(b'"path": "/3"')
    assert core.stats()["max_inflight"] == 1


def test_much_sent_ahead_is_read_when_its_turn_comes(core: RunningTarget) -> None:
    """More than is read ahead, and more than the socket buffers hold: reading pauses and goes on."""
    core.ctl(mode="slow", delay_ms=20)
    with connected(core) as sock:
        sock.sendall(request("/1"))
        core.wait_for(in_flight=1)
        body = b"x" * (8 << 20)
        sender = threading.Thread(target=sock.sendall, args=(request("/2", body),))
        sender.start()
        got = b""
        while b'"body_bytes": %d' % len(body) not in got:
            got += sock.recv(65536)
        sender.join(20)


def test_a_chunked_body_and_expect_continue_are_understood(core: RunningTarget) -> None:
    with connected(core) as sock:
        sock.sendall(b"POST /tx HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                     b"Expect: 100-continue\r\nConnection: close\r\n\r\n")
        assert sock.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(b'5\r\n{"amo\r\n7\r\nunt":7}\r\n0\r\n\r\n')
        assert b'"amount": 7' in everything(sock)


def test_bad_input_is_answered_400_though_more_of_it_follows(core: RunningTarget) -> None:
    """The answer must not be lost to a reset over bytes nobody read."""
    with connected(core) as sock:
        sock.sendall(b"NONSENSE\r\n\r\n" + b"x" * 200_000)
        answer = everything(sock)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"\r\nConnection: close\r\n" in answer


def test_head_is_answered_without_a_body(core: RunningTarget) -> None:
    with connected(core) as sock:
        sock.sendall(b"HEAD /_stats HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = everything(sock)
    assert answer.endswith(b"\r\n\r\n")
    assert b"Content-Length: 0" not in answer


def test_it_speaks_tls_when_given_a_context() -> None:
    authority = trustme.CA()
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(server)
    authority.configure_trust(client)
    with running_target(tls=server) as target:
        assert target.url == f"https://127.0.0.1:{target.port}"
        connection = http.client.HTTPSConnection("127.0.0.1", target.port, timeout=20, context=client)
        connection.request("POST", "/tx", b'{"amount":1}')
        assert json.loads(connection.getresponse().read())["code"] == "0000"
        target.ctl(mode="reset")
        connection.request("POST", "/tx", b'{"amount":1}')
        with pytest.raises((ConnectionError, http.client.RemoteDisconnected)):
            connection.getresponse()
        connection.close()


def test_inside_a_loop_it_starts_and_stops_and_frees_its_port() -> None:
    async def scenario() -> None:
        target = FakeTarget("CLAIM", port=0)
        await target.start()
        target.control({"mode": "hang"})
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
        writer.write(request("/tx", b'{"amount":1}'))
        while target.stats()["in_flight"] < 1:
            await asyncio.sleep(0.001)
        await target.stop()
        await target.stop()
        try:
            assert await reader.read() == b""
        except ConnectionResetError:
            pass
        writer.close()
        assert target.stats()["in_flight"] == 0
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", target.port)

    run_async(scenario())


def test_a_target_that_cannot_listen_says_so(core: RunningTarget) -> None:
    with pytest.raises(OSError, match="in use"), running_target(port=core.port):
        pass


def test_waiting_for_what_never_comes_ends_and_shows_the_statistics(core: RunningTarget) -> None:
    with pytest.raises(TimeoutError, match="'calls': 0"):
        core.wait_for(calls=1, timeout=0.01)
