"""The transaction door: a JSON object names its target, the answer is JSON with a code, and bytes stay what they were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seawall.faults.running import running_target
from tests.hub.bed import (
    LOOPS,
    Caller,
    RawConnection,
    answering,
    ask,
    hub_bed,
    raw_server,
    response,
    talk,
)
from tests.hub.raw import headers_of

TX = b'{"target": "CORE", "amount": 5}'


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("content_type", [
    None, "application/json", "application/x-www-form-urlencoded", "text/plain; charset=utf-7", "nonsense",
])  # fmt: skip
def test_it_is_json_whatever_the_content_type_says(content_type: str | None, loop: str) -> None:
    """``curl -d`` says it is a form. The target is told what it is."""
    with raw_server(answering(response(200, b"{}"))) as server, hub_bed(f"CORE={server.url}", loop=loop) as bed:
        answer = ask(bed.port, "POST", "/tx", TX, {"Content-Type": content_type} if content_type else {})
        assert answer.status == 200
        _, headers = headers_of(server.requests[0].partition(b"\r\n\r\n")[0] + b"\r\n\r\n")
        assert headers["content-type"] == "application/json"
        assert headers["content-length"] == str(len(TX))


@pytest.mark.parametrize("body", [
    b'{"target":"CORE","amount":1.10}', b' {"amount" : 100000000000000000000000001 ,"target"\t:"CORE"}\n',
    '{"target": "CORE", "name": "Łódź 株式会社 \\u0041"}'.encode(), b'{"target": "CORE", "a": 1, "a": 2}',
    b'{"target": "CORE", "order": {"target": 1, "target": 2}}', b'{"t\\u0061rget": "CORE"}',
    b'\xef\xbb\xbf{"target": "CORE"}', b'{"target": "CORE", "rate": 1e400}',
])  # fmt: skip
def test_the_target_gets_the_very_bytes(body: bytes) -> None:
    """No number is rounded, no key sorted, no letter escaped; what stands twice further inside is none of our business."""
    with raw_server(answering(response(200, b"{}"))) as server, hub_bed(f"CORE={server.url}/base") as bed:
        assert ask(bed.port, "POST", "/tx", body).status == 200
        assert server.requests[0].startswith(b"POST /base/tx HTTP/1.1\r\n")
        assert server.requests[0].partition(b"\r\n\r\n")[2] == body


@pytest.mark.parametrize(("body", "why"), [
    (b"", "not JSON"), (b"{", "not JSON"), (b'{"target": "CORE"} x', "not JSON"), (b"\xff\xfe\xfd", "not JSON"),
    (b'{"target": "CORE", "a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "not JSON"),
    (b"[]", "not a JSON object"), (b'"CORE"', "not a JSON object"), (b"{}", "names no target"),
    (b'{"target": 5}', "names no target"), (b'{"target": null}', "names no target"),
    (b'{"target": ["CORE"]}', "names no target"),
    (b'{"target": "CORE", "target": "CLAIM"}', "stands twice"), (b'{"target": "CORE", "target": "CORE"}', "stands twice"),
    (b'{"target": "CORE", "t\\u0061rget": "CLAIM"}', "stands twice"),
])  # fmt: skip
def test_what_cannot_be_read_is_refused_with_the_reason(body: bytes, why: str) -> None:
    """E400, no target is called, and the connection goes on: the body was read whole."""
    with raw_server(answering(response(200, b"{}"))) as server, hub_bed(f"CORE={server.url}", f"CLAIM={server.url}") as bed:
        with Caller(bed.port) as caller:
            answer = caller.ask("POST", "/tx", body)
            assert (answer.status, answer.code) == (400, "E400")
            assert why in answer.json()["detail"]
            assert len(answer.body) < 1000
            assert server.requests == []
            assert caller.ask("POST", "/tx", TX).status == 200


@pytest.mark.parametrize(("name", "shown"), [
    ("NOBODY", "NOBODY"), ("core", "core"), ("x" * 500, "x" * 64), ("\n\x00", "\\n\\x00"),
])
def test_a_target_that_does_not_exist(name: str, shown: str) -> None:
    """E404, with those that do; names are compared as they are written."""
    with running_target() as core, hub_bed(f"CORE={core.url}", f"CLAIM={core.url}") as bed:
        answer = ask(bed.port, "POST", "/tx", json.dumps({"target": name}).encode())
        assert (answer.status, answer.code) == (404, "E404")
        assert answer.json()["detail"] == f"there is no target '{shown}'; there are CORE, CLAIM"


def test_with_a_default_a_transaction_need_not_name_its_target() -> None:
    """With ``--default`` the door is off unless ``--tx-path`` says where it is: all paths belong to the default."""
    with running_target("CORE") as core, running_target("CLAIM") as claim:
        targets = f"CORE={core.url}", f"CLAIM={claim.url}"
        with hub_bed(*targets, default="CORE", tx_path="/transact") as bed:
            assert ask(bed.port, "POST", "/transact", b'{"amount": 5}').json()["target"] == "CORE"
            assert ask(bed.port, "POST", "/transact?x=1", b'{"target": "CLAIM"}').json()["target"] == "CLAIM"
        with hub_bed(*targets, default="CORE") as bed:
            answer = ask(bed.port, "POST", "/tx", b'{"target": "CLAIM"}')
            assert (answer.json()["target"], answer.code) == ("CORE", None)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_health_path_is_answered_also_where_a_default_takes_all_others(loop: str) -> None:
    with running_target() as core, hub_bed(f"CORE={core.url}", default="CORE", health_path="/healthz", loop=loop) as bed:
        core.ctl(mode="fail")
        with Caller(bed.port) as caller:
            answer = caller.ask("GET", "/healthz?verbose")
            assert (answer.status, answer.json()) == (200, {"ready": True})
            assert caller.ask("HEAD", "/healthz").status == 200
            assert caller.ask("GET", "/healthz/more").status == 500


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
def test_it_takes_post_only(method: str) -> None:
    """405 with Allow, and the next request on the connection is read where it begins."""
    with running_target() as core, hub_bed(f"CORE={core.url}") as bed, Caller(bed.port) as caller:
        answer = caller.ask(method, "/tx", TX)
        assert (answer.status, answer.code, answer.headers["allow"]) == (405, "E400", "POST")
        assert caller.ask("POST", "/tx", TX).status == 200
        assert core.stats()["calls"] == 1


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("framing", ["counted", "chunked"])
def test_a_body_of_more_than_a_mebibyte(framing: str, loop: str) -> None:
    """E413. Up to the limit it is taken, and arrives whole."""
    with raw_server(answering(response(200, b"{}"))) as server, hub_bed(f"CORE={server.url}", loop=loop) as bed:
        for extra, status in ((0, 200), (1, 413)):
            body = b'{"target": "CORE", "x": "%b"}' % (b"y" * (1024 * 1024 - 27 + extra))
            assert len(body) == 1024 * 1024 + extra
            with Caller(bed.port) as caller:
                if framing == "chunked":
                    pieces = [body[at : at + 50_000] for at in range(0, len(body), 50_000)]
                    caller.begin("POST", "/tx", None, {"Transfer-Encoding": "chunked"})
                    caller.send(b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n")
                else:
                    caller.begin("POST", "/tx", body)
                answer = caller.answer()
                assert answer.status == status
                assert answer.code == ("E413" if extra else "0000")
                assert (answer.headers.get("connection") == "close") == bool(extra)
        assert [len(request.partition(b"\r\n\r\n")[2]) for request in server.requests] == [1024 * 1024]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(("method", "length", "first"), [
    ("POST", len(TX), b"HTTP/1.1 100 Continue\r\n\r\n"), ("POST", 1 << 30, b"HTTP/1.1 413 "), ("PUT", 5, b"HTTP/1.1 405 "),
])
def test_who_waits_to_be_asked_for_the_body(method: str, length: int, first: bytes, loop: str) -> None:
    """``Expect: 100-continue`` is answered by the hub: go on, or no, before a byte of the body is sent."""
    with running_target() as core, hub_bed(f"CORE={core.url}", loop=loop) as bed, Caller(bed.port) as caller:
        caller.begin(method, "/tx", None, {"Expect": "100-continue", "Content-Length": str(length)})
        while len(caller.rest) < len(first):
            assert caller.more()
        assert caller.rest.startswith(first)
        if b"100" in first:
            caller.send(TX)
            answer = caller.answer()
            assert (answer.interim, answer.status) == ([100], 200)


@pytest.mark.parametrize("loop", LOOPS)
def test_chunks_in_and_chunks_out(loop: str) -> None:
    """In pieces of any size; the target gets a counted body, the client a counted answer."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = head + b'3\r\n{"a\r\n7;x=y\r\n": "b"}\r\n0\r\nTrailer: x\r\n\r\n'
    with raw_server(answering(answer)) as server, hub_bed(f"CORE={server.url}", loop=loop) as bed:
        chunked = b"".join(b"1\r\n%c\r\n" % byte for byte in TX) + b"0\r\n\r\n"
        for gap in (0.0, 0.0005):
            with Caller(bed.port) as caller:
                caller.begin("POST", "/tx", None, {"Transfer-Encoding": "chunked"})
                caller.drip(chunked, gap) if gap else caller.send(chunked)
                got = caller.answer()
                assert (got.json(), got.headers["content-length"]) == ({"code": "0000", "a": "b"}, str(len(got.body)))
        for request in server.requests:
            assert request.partition(b"\r\n\r\n")[2] == TX
            assert b"Transfer-Encoding" not in request
        assert len(server.requests) == 2
        assert server.connections == 1


@pytest.mark.parametrize(("answer", "code", "said"), [
    (b'{"code": "0000", "b": 1.10}', "0000", b'{"code": "0000", "b": 1.10}'),
    (b' {"b":1,"code":"B201"}\n', "B201", b' {"b":1,"code":"B201"}\n'),
    (b'{"balance": 100000000000000000000000001}', "0000", b'{"code": "0000", "balance": 100000000000000000000000001}'),
    (b"{}", "0000", b'{"code": "0000"}'), (b"\n { } ", "0000", b'{"code": "0000"} '),
    (b"[1, 2]", "0000", b'{"code": "0000", "target": "CORE", "answer": [1, 2]}\n'),
    (b"", "0000", b'{"code": "0000", "target": "CORE", "answer": ""}\n'),
    (b"<ok/>", "0000", b'{"code": "0000", "target": "CORE", "answer": "<ok/>"}\n'),
    (b'{"code": 7}', "7", b'{"code": 7}'), (b'{"code": "a\\r\\nb"}', "_unreadable", b'{"code": "a\\r\\nb"}'),
    (b'{"code": ""}', "_unreadable", b'{"code": ""}'), ('{"code": "Ł"}'.encode(), "_unreadable", '{"code": "Ł"}'.encode()),
    (b'{"code": "' + b"x" * 100 + b'"}', "x" * 32, b'{"code": "' + b"x" * 100 + b'"}'),
])  # fmt: skip
def test_an_answer_with_and_without_a_code(answer: bytes, code: str, said: bytes) -> None:
    """A code of the target's own stands, its bytes untouched; without one it is 0000, put in front; no JSON is wrapped."""
    with raw_server(answering(response(200, answer))) as server, hub_bed(f"CORE={server.url}") as bed:
        got = ask(bed.port, "POST", "/tx", TX)
        assert (got.status, got.code, got.body) == (200, code, said)
        assert got.headers["content-type"] == "application/json"
        assert bed.codes() == {code: 1}


@pytest.mark.parametrize(("status", "code", "outer", "kind"), [
    (301, "0000", 502, "problem+"), (304, "0000", 502, "problem+"), (400, "B400", 200, ""), (422, "B422", 200, ""),
    (429, "B429", 200, ""), (500, "E500", 502, "problem+"), (599, "E500", 502, "problem+"),
])  # fmt: skip
def test_an_answer_that_is_no_success(status: int, code: str, outer: int, kind: str) -> None:
    """What the target said is told along, with the status it said it with; a redirection is not followed."""
    answer = b"" if status == 304 else b'{"code": "B777", "why": "because"}'
    with raw_server(answering(response(status, answer, Location="/tx", Retry_After="17"))) as server:
        with hub_bed(f"CORE={server.url}") as bed, Caller(bed.port) as caller:
            got = caller.ask("POST", "/tx", TX)
            assert (got.status, got.code, got.headers["retry-after"]) == (outer, code, "17")
            assert got.headers["content-type"] == f"application/{kind}json"
            told = got.json()
            assert (told["code"], told["target"], told["target_status"]) == (code, "CORE", status)
            assert told["answer"] == (json.loads(answer) if answer else "")
            assert "location" not in got.headers
            assert len(server.requests) == 1
            assert caller.ask("POST", "/tx", TX).code == code


@pytest.mark.parametrize(("status", "code", "outer"), [(500, "E500", 502), (422, "B422", 200)])
def test_the_access_log_has_the_status_that_the_client_got(status: int, code: str, outer: int, tmp_path: Path) -> None:
    """Not the one the target answered with: where the door gives another, that is what the line is about."""
    log = tmp_path / "access.log"
    with raw_server(answering(response(status, b"{}"))) as server:
        with hub_bed(f"CORE={server.url}", access_log=str(log)) as bed:
            assert ask(bed.port, "POST", "/tx", TX).status == outer
    (line,) = map(json.loads, log.read_text().splitlines())
    assert {key: line[key] for key in ("door", "target", "code", "status")} == {
        "door": "tx", "target": "CORE", "code": code, "status": outer,
    }  # fmt: skip


@pytest.mark.parametrize("loop", LOOPS)
def test_only_what_can_be_read_is_asked_for(loop: str) -> None:
    """A compressed answer could not be looked into; to say nothing of coding would be to accept any."""
    with raw_server(answering(response(200, b"{}"))) as server, hub_bed(f"CORE={server.url}", loop=loop) as bed:
        sent = {"Accept-Encoding": "gzip, br", "Accept": "text/html", "TE": "trailers", "X-Mine": "1"}
        ask(bed.port, "POST", "/tx", TX, sent)
        _, headers = headers_of(server.requests[0].partition(b"\r\n\r\n")[0] + b"\r\n\r\n")
        assert headers["accept-encoding"] == "identity"
        assert (headers["accept"], headers["x-mine"]) == ("text/html", "1")
        assert "te" not in headers
        assert "expect" not in headers


@pytest.mark.parametrize("loop", LOOPS)
def test_an_answer_without_an_end_is_cut_off(loop: str) -> None:
    """It is read whole, so it has a limit, 8 MiB; the attempt's time is limited anyway."""

    def script(connection: RawConnection) -> None:
        connection.read_request()
        connection.send(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(200):
            connection.send(b"x" * 65536)

    with raw_server(script) as server, hub_bed(f"CORE={server.url},read=20", loop=loop, budget_ms="60000") as bed:
        answer = ask(bed.port, "POST", "/tx", TX)
        assert (answer.status, answer.code) == (502, "E903")
        assert "longer than 8388608 bytes" in answer.json()["detail"]


@pytest.mark.parametrize("loop", LOOPS)
def test_an_answer_that_drips_ends_with_the_attempt(loop: str) -> None:
    """A byte now and then does not stretch it: the limit covers the whole answer."""
    with running_target() as core, hub_bed(f"CORE={core.url},connect=0.1,read=0.3", loop=loop) as bed:
        core.ctl(mode="drip", delay_ms=50)
        answer = ask(bed.port, "POST", "/tx", TX)
        assert (answer.status, answer.code) == (504, "E902")
        core.wait_for(in_flight=0)


@pytest.mark.parametrize("loop", LOOPS)
def test_one_after_another_and_ahead_on_one_connection(loop: str) -> None:
    """Sent ahead, they are answered in order, refusals between them included."""
    bodies = [b'{"target": "CORE", "id": %d, "amount": %d}' % (number, number * 400) for number in range(5)]
    bodies.insert(2, b"nonsense")
    requests = b"".join(b"POST /tx HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%b" % (len(b), b) for b in bodies)
    with running_target() as core, hub_bed(f"CORE={core.url}", loop=loop) as bed:
        came = talk(bed.port, requests, until=lambda came: came.count(b"X-Seawall-Code") == 6 and came.endswith(b"}\n"))
        codes = [piece[:4] for piece in came.split(b"X-Seawall-Code: ")[1:]]
        assert codes == [b"0000", b"0000", b"E400", b"0000", b"B201", b"B201"]
