"""What happened to a request decides, on both doors alike, its code, its status, and what the breaker makes of it."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pytest

from tests.hub.bed import (
    LOOPS,
    Answer,
    Caller,
    HubBed,
    RawConnection,
    answering,
    ask,
    black_hole,
    hub_bed,
    raw_server,
    refusing,
    response,
)

DOORS = ["tx", "path"]
FAST = "connect=0.2,read=0.2"


def send(bed: HubBed, door: str, name: str = "CORE", headers: dict[str, str] | None = None) -> Answer:
    """One request to a target by one of the doors."""
    if door == "tx":
        return ask(bed.port, "POST", "/tx", json.dumps({"target": name, "amount": 5}).encode(), headers)
    return ask(bed.port, "GET", f"/{name}/some/path", headers=headers)


@contextlib.contextmanager
def target(answer: bytes) -> Iterator[str]:
    with raw_server(answering(answer)) as server:
        yield server.url


@contextlib.contextmanager
def scripted(script: Callable[[RawConnection], object]) -> Iterator[str]:
    def whole(connection: RawConnection) -> None:
        connection.read_request()
        script(connection)

    with raw_server(whole) as server:
        yield server.url


@contextlib.contextmanager
def at(port: AbstractContextManager[int], scheme: str = "http") -> Iterator[str]:
    with port as number:
        yield f"{scheme}://127.0.0.1:{number}"


@contextlib.contextmanager
def no_tls() -> Iterator[str]:
    """A target that is called by https:// and answers in the clear."""
    with raw_server(lambda connection: connection.send(response(400))) as server:
        yield server.url.replace("http:", "https:")


@dataclass(frozen=True)
class Row:
    """A row of the table: what the target does; then code, statuses on the two doors, and the breaker's view of it.

    Attributes:
        any_tx: What the breaker makes of it under ``--failures any`` on the transaction door.
        any_path: The same on the other door, which looks at no body.
    """

    name: str
    make: Callable[[], AbstractContextManager[str]]
    code: str
    tx: int
    path: int
    effect: str
    any_tx: str
    any_path: str


def row(
    name: str, make: Callable[[], AbstractContextManager[str]], code: str, tx: int, path: int, effect: str,
    any_tx: str = "", any_path: str = "",
) -> Row:  # fmt: skip
    any_tx = any_tx or effect
    return Row(name, make, code, tx, path, effect, any_tx, any_path or any_tx)


def answer_row(status: int, code: str, tx: int, effect: str, any_tx: str = "", **more: str) -> Row:
    body = more.pop("body", "").encode()
    name = f"{status} {body.decode()}{' of a further hub' * ('X_Seawall_Code' in more)}"
    any_path = "success" if code.startswith("B2") else ""
    return row(name, lambda: target(response(status, body, **more)), code, tx, status, effect, any_tx, any_path)


ANSWERS = [
    answer_row(200, "0000", 200, "success", body='{"balance": 5}'),
    answer_row(201, "0000", 200, "success", body='{"code": "0000"}'),
    answer_row(204, "0000", 200, "success"),
    answer_row(200, "B201", 200, "success", "failure", body='{"code": "B201"}'),
    answer_row(302, "0000", 502, "success", Location="/elsewhere"),
    answer_row(404, "B404", 200, "success", "failure"),
    answer_row(408, "B408", 200, "ignored", "failure"),
    answer_row(429, "B429", 200, "ignored", "failure"),
    answer_row(500, "E500", 502, "failure"),
    answer_row(503, "E500", 502, "failure"),
    answer_row(503, "E904", 503, "success", X_Seawall_Code="E904", body='{"code": "E904"}'),
    answer_row(504, "E906", 504, "success", X_Seawall_Code="E906", body='{"code": "E906"}'),
    answer_row(200, "B409", 200, "success", X_Seawall_Code="B409", body='{"code": "B409"}'),
]
OWN = [
    row("connection refused", lambda: at(refusing()), "E901", 502, 502, "failure"),
    row("connect limit", lambda: at(black_hole()), "E901", 502, 502, "failure"),
    row("no TLS", no_tls, "E901", 502, 502, "failure"),
    row("silence", lambda: scripted(RawConnection.hang), "E902", 504, 504, "failure"),
    row("slow head", lambda: scripted(lambda c: c.drip(response(200, a="b" * 80), 0.05)), "E902", 504, 504, "failure"),
    row("closed", lambda: scripted(lambda c: None), "E903", 502, 502, "failure"),
    row("reset", lambda: scripted(RawConnection.reset), "E903", 502, 502, "failure"),
    row("half a head", lambda: scripted(lambda c: c.send(b"HTTP/1.1 200 OK\r\nContent-")), "E903", 502, 502, "failure"),
    row("not HTTP", lambda: scripted(lambda c: c.send(b"SSH-2.0-OpenSSH_9.2\r\n")), "E903", 502, 502, "failure"),
    row("no status", lambda: scripted(lambda c: c.send(b"HTTP/1.1 banana\r\n\r\n")), "E903", 502, 502, "failure"),
    row("framed twice", lambda: target(response(200, b"{}", Transfer_Encoding="chunked")), "E903", 502, 502, "failure"),
]


def check(row: Row, door: str, loop: str, rule: str | None, expected: str) -> Answer:
    with row.make() as url, hub_bed(f"CORE={url},{FAST}", loop=loop, failures=rule) as bed:
        bed.lay_out()
        answer = send(bed, door)
        bed.assert_at_rest()
        assert bed.effect() == expected
        counted = {"B201": "0000"}.get(row.code, row.code) if door == "path" else row.code
        assert bed.codes() == {counted: 1}
        return answer


@pytest.mark.req("HUB-7")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("row", ANSWERS, ids=lambda row: row.name)
def test_an_answer_of_the_target(row: Row, door: str, loop: str) -> None:
    """On the transaction door it is put into the code; on the other it passes through as it is."""
    answer = check(row, door, loop, None, row.effect)
    if door == "tx":
        assert (answer.status, answer.code) == (row.tx, row.code)
        assert answer.json()["code"] == row.code
    else:
        assert answer.status == row.path
        assert answer.code == (row.code if "further hub" in row.name else None)


@pytest.mark.req("HUB-7")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("row", OWN, ids=lambda row: row.name)
def test_no_answer_of_the_target(row: Row, door: str, loop: str) -> None:
    """The hub says which way it failed, and whether the target may have acted on it."""
    answer = check(row, door, loop, None, row.effect)
    assert (answer.status, answer.code) == (row.tx if door == "tx" else row.path, row.code)
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert (body["code"], body["status"], body["target"]) == (row.code, answer.status, "CORE")
    assert "CORE" in body["detail"]
    assert body["title"]
    assert body.get("maybe_executed", False) == (row.code != "E901")


@pytest.mark.req("HUB-7")
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("row", ANSWERS + OWN, ids=lambda row: row.name)
def test_the_strict_rule_counts_everything_but_0000(row: Row, door: str) -> None:
    """``--failures any``. An answer of a further hub still proves that hub alive."""
    check(row, door, "uvloop", "any", row.any_tx if door == "tx" else row.any_path)


@pytest.mark.req("HUB-7")
@pytest.mark.parametrize(("status", "answer", "effect"), [(500, "E500", "success"), (0, "E901", "failure")])
def test_the_codes_that_count_are_a_setting(status: int, answer: str, effect: str) -> None:
    """``--failures E901``: with it a server error proves the target alive."""
    with target(response(500)) if status else at(refusing()) as url:
        with hub_bed(f"CORE={url},{FAST},failures=E901") as bed:
            bed.lay_out()
            assert send(bed, "tx").code == answer
            assert bed.effect() == effect


@pytest.mark.req("HUB-7")
def test_silence_that_does_not_count_is_no_proof_of_life_either() -> None:
    """With E902 left out of the rule, a call without an answer changes nothing."""
    with scripted(RawConnection.hang) as url, hub_bed(f"CORE={url},{FAST},failures=E500") as bed:
        bed.lay_out()
        assert send(bed, "tx").code == "E902"
        assert bed.effect() == "nothing"


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("how", ["closed", "reset", "silent"])
def test_an_answer_that_breaks_in_its_body(how: str, loop: str) -> None:
    """Its head was a success; the break is a failure of its own, and the client's connection ends without a proper end."""

    def script(connection: RawConnection) -> None:
        connection.read_request()
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        {"closed": lambda: None, "reset": connection.reset, "silent": connection.hang}[how]()

    with raw_server(script) as server, hub_bed(f"CORE={server.url},{FAST},body-gap=0.2", loop=loop) as bed:
        bed.lay_out()
        with Caller(bed.port) as caller, pytest.raises((EOFError, ConnectionError)):
            caller.ask("GET", "/CORE/x")
        bed.assert_at_rest()
        assert bed.run(lambda hub: hub.backends["CORE"].breaker.failures) == 1
        assert bed.codes() == {"E902" if how == "silent" else "E903": 1}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(("how", "code", "status"), [("closed", "E903", 502), ("silent", "E902", 504)])
def test_a_transaction_whose_answer_breaks_in_its_body(how: str, code: str, status: int, loop: str) -> None:
    """It is read whole before anything is passed on, so the client gets a whole answer, and the breaker one failure."""

    def script(connection: RawConnection) -> None:
        while connection.read_request() and len(connection.server.requests) < 2:
            connection.send(response(200, b"{}"))
        connection.send(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"code"')
        if how == "silent":
            connection.hang()

    with raw_server(script) as server, hub_bed(f"CORE={server.url},{FAST}", loop=loop) as bed:
        assert send(bed, "tx").status == 200
        bed.lay_out()
        answer = send(bed, "tx")  # on the same connection, and yet no case for mercy: the answer had begun
        assert (answer.code, answer.status, answer.json()["maybe_executed"]) == (code, status, True)
        assert bed.effect() == "failure"
        assert server.connections == 1


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("door", DOORS)
def test_a_client_that_leaves_is_a_cut(door: str, loop: str) -> None:
    """C499 in the counters, and the target's connection ends too: nobody reads the answer."""
    arrived, left = threading.Event(), threading.Event()

    def script(connection: RawConnection) -> None:
        connection.read_request()
        arrived.set()
        connection.hang()
        left.set()

    with raw_server(script) as server, hub_bed(f"CORE={server.url},read=30", loop=loop, budget_ms="60000") as bed:
        bed.lay_out()
        with Caller(bed.port) as caller:
            caller.begin("POST", "/tx" if door == "tx" else "/CORE/x", b'{"target": "CORE"}')
            assert arrived.wait(20)
            assert bed.in_flight() == 1
        bed.assert_at_rest()
        assert left.wait(20)
        assert bed.effect() == "cut"
        assert bed.codes() == {"C499": 1}


@pytest.mark.parametrize("loop", LOOPS)
def test_a_client_that_only_closed_its_side_still_gets_its_answer(loop: str) -> None:
    """As scripts do that end their request by closing; it has a moment, since one that left looks the same."""
    import socket

    with target(response(200, b"here")) as url, hub_bed(f"CORE={url}", loop=loop) as bed:
        with Caller(bed.port) as caller:
            caller.begin("GET", "/CORE/x")
            caller.sock.shutdown(socket.SHUT_WR)
            assert caller.answer().body == b"here"
            assert caller.ended()


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("door", DOORS)
def test_a_fault_of_our_own(door: str, loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """E999, logged with its traceback; it says nothing about the target, and the next request is served."""
    from seawall.hub import relayed, tx

    def broken(*_: object) -> list[bytes]:
        raise ZeroDivisionError("a mistake")

    with target(response(200, b"{}")) as url, hub_bed(f"CORE={url}", loop=loop) as bed:
        bed.lay_out()
        with monkeypatch.context() as patch:
            patch.setattr(relayed, "forwarded_head", broken)
            patch.setattr(tx, "forwarded_head", broken)
            answer = send(bed, door)
        assert (answer.status, answer.code) == (500, "E999")
        assert "mistake" not in answer.json()["detail"].replace("made a mistake", "")
        bed.assert_at_rest()
        assert bed.effect() == "nothing"
        assert "ZeroDivisionError: a mistake" in bed.errors.pop()
        assert bed.errors == []
        assert send(bed, door).status == 200


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("place", ["head", "limit"])
def test_a_fault_of_our_own_while_an_answer_comes_or_time_runs_out(
    place: str, loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from seawall.hub import limits, upstream

    def broken(*_: object) -> None:
        raise ZeroDivisionError("a mistake")

    script = answering(response(200)) if place == "head" else RawConnection.hang
    with raw_server(script) as server, hub_bed(f"CORE={server.url},{FAST}", loop=loop) as bed:
        bed.lay_out()
        with monkeypatch.context() as patch:
            patch.setattr(upstream.Upstream, "_final", broken)
            patch.setattr(limits, "too_long", broken)
            assert send(bed, "path").code == "E999"
        bed.assert_at_rest()
        assert bed.effect() == "nothing"
        assert "ZeroDivisionError" in bed.errors.pop()
