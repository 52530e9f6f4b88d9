"""A call that is not made is refused at once, says why and when to come back, and counts for nothing."""

from __future__ import annotations

import math
import threading
import time

import pytest

from seawall.faults.running import running_target
from seawall.hub.answers import problem
from seawall.outcome import CODES
from seawall.policies.states import Mode
from tests.clock import ManualClock
from tests.hub.bed import (
    LOOPS,
    Answer,
    Caller,
    HubBed,
    RawConnection,
    ask,
    hub_bed,
    raw_server,
    refusing,
    response,
    talk,
)

TX = b'{"target": "CORE", "amount": 5}'


def ask_both(bed: HubBed) -> list[Answer]:
    """The same question at both doors."""
    return [ask(bed.port, "POST", "/tx", TX), ask(bed.port, "GET", "/CORE/x")]


@pytest.mark.req("HUB-3")
@pytest.mark.parametrize("loop", LOOPS)
def test_the_fifth_failure_opens_and_the_target_is_left_alone(loop: str) -> None:
    """By default after 5 failures in a row, for 10 s. Both doors share the circuit."""
    with running_target() as core, hub_bed(f"CORE={core.url}", loop=loop) as bed:
        core.ctl(mode="fail")
        for number in range(5):
            assert bed.state() == "CLOSED"
            answer = ask(bed.port, "POST", "/tx", TX) if number % 2 else ask(bed.port, "GET", "/CORE/x")
            assert answer.status == (502 if number % 2 else 500)
        assert bed.state() == "OPEN"
        before = core.stats()
        for answer in ask_both(bed) * 3:
            assert (answer.status, answer.code) == (503, "E904")
        assert core.stats() == before
        assert before["calls"] + before["other"] == 5
        assert bed.run(lambda hub: hub.backends["CORE"].breaker.settings.reset_timeout) == 10.0


@pytest.mark.req("HUB-3")
@pytest.mark.req("HUB-7")
def test_a_success_and_a_business_refusal_start_the_count_anew() -> None:
    with running_target() as core, hub_bed(f"CORE={core.url},fail-threshold=2") as bed:
        for amount in (5, 5000):
            core.ctl(mode="fail")
            assert ask(bed.port, "POST", "/tx", TX).code == "E500"
            core.ctl(mode="normal")
            assert ask(bed.port, "POST", "/tx", b'{"target": "CORE", "amount": %d}' % amount).status == 200
        assert bed.state() == "CLOSED"


@pytest.mark.req("HUB-3")
@pytest.mark.req("TRACE-4")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("door", [0, 1])
def test_an_open_circuit_says_when_to_come_back(door: int, loop: str) -> None:
    """Why, in a sentence and a code; how long, in milliseconds and in a header, whole seconds, rounded up."""
    with refusing() as port, hub_bed(f"CORE=http://127.0.0.1:{port},fail-threshold=1,reset-timeout=300", loop=loop) as bed:
        assert ask_both(bed)[0].code == "E901"
        answer = ask_both(bed)[door]
        body = answer.json()
        assert (answer.status, answer.code) == (503, "E904")
        assert {key: body[key] for key in ("code", "title", "status", "target")} == {
            "code": "E904", "title": CODES["E904"].meaning, "status": 503, "target": "CORE",
        }  # fmt: skip
        assert "CORE is open" in body["detail"]
        assert "last E901" in body["detail"]
        assert 200_000 < body["retry_after_ms"] <= 300_000
        assert answer.headers["retry-after"] == str(math.ceil(body["retry_after_ms"] / 1000))
        assert "maybe_executed" not in body


@pytest.mark.req("TRACE-4")
@pytest.mark.parametrize(("code", "seconds", "header", "ms"), [
    ("E904", 7.2, "8", 7200), ("E904", 7.0, "7", 7000), ("E904", 0.0001, "1", 1), ("E904", 0.0, "1", 0),
    ("E904", -3.0, "1", 0), ("E904", None, "1", 1000), ("E907", None, "1", 1000), ("E907", 59.0001, "60", 59001),
    ("E905", 0.4, "1", 400), ("E905", None, None, None), ("E906", None, None, None),
])  # fmt: skip
def test_retry_after_is_in_whole_seconds_rounded_up_and_at_least_one(
    code: str, seconds: float | None, header: str | None, ms: int | None
) -> None:
    """Where nobody knows, an open circuit and a rate limit say one second, the others nothing."""
    head, body = problem(code, "why", target="CORE", retry_after=seconds)
    assert head.split(b" ")[1] == str(CODES[code].status).encode()
    lines = [line for line in head.decode().split("\r\n") if line.startswith("Retry-After")]
    assert lines == ([] if header is None else [f"Retry-After: {header}"])
    assert (f'"retry_after_ms": {ms}' if ms is not None else "retry_after_ms") in body.decode() or ms is None
    assert (b"retry_after_ms" in body) == (ms is not None)


@pytest.mark.req("TRACE-4")
def test_a_circuit_forced_open_without_end_says_so() -> None:
    with running_target() as core, hub_bed(f"CORE={core.url}") as bed:
        bed.run(lambda hub: hub.backends["CORE"].breaker.set_mode(Mode.FORCED_OPEN, "moving house"))
        for answer in ask_both(bed):
            assert (answer.code, answer.headers["retry-after"]) == ("E904", "1")
            assert "moving house" in answer.json()["detail"]
        assert core.stats()["calls"] == 0


@pytest.mark.req("HUB-4", "HUB-9", "TRACE-4")
@pytest.mark.parametrize("loop", LOOPS)
def test_at_the_limit_the_answer_is_no_at_once(loop: str) -> None:
    """The classic mistake of queueing what is over the limit: here the refusals are back while the calls still run."""
    with running_target() as core, hub_bed(f"CORE={core.url},read=60", loop=loop, budget_ms="60000") as bed:
        core.ctl(mode="hang")
        callers = [Caller(bed.port) for _ in range(10)]
        for caller in callers:
            caller.begin("POST", "/tx", TX)
        core.wait_for(in_flight=10)
        for answer in ask_both(bed) * 2:
            assert (answer.status, answer.code, answer.json()["target"]) == (503, "E905", "CORE")
            assert "10 calls running" in answer.json()["detail"]
        assert core.stats()["in_flight"] == core.stats()["max_inflight"] == bed.in_flight() == 10
        assert bed.run(lambda hub: hub.backends["CORE"].bulkhead.waiting) == 0
        for caller in callers:
            caller.close()


@pytest.mark.req("HUB-4")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("way", [
    "answered", "answered with an error", "not connected", "silent", "broken off", "not HTTP", "budget spent",
    "client gone", "client gone while connecting", "client gone in the middle of its body", "bad chunk",
    "a fault of our own",
])
def test_a_place_is_given_back_whatever_happens(way: str, loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for one: after each of these ends the next call is let in."""

    def script(connection: RawConnection) -> None:
        while request := connection.read_request():
            if b"/bad" not in request.split(b"\r\n")[0]:
                connection.send(response(200, b"good"))
            elif way in ("broken off", "not HTTP"):
                connection.send(b"HTTP/1.1 2" if way == "broken off" else b"hello?\r\n\r\n")
                return
            elif way.startswith("answered"):
                connection.send(response(200 if way == "answered" else 500))
            else:
                connection.hang()

    limits = "max-inflight=1,connect=0.2,read=0.2"
    with raw_server(script) as server, hub_bed(f"CORE={server.url},{limits}", loop=loop, budget_ms="60000") as bed:
        with monkeypatch.context() as patch, Caller(bed.port) as caller:
            if way == "not connected":
                bed.run(lambda hub: patch.setattr(hub.backends["CORE"], "_open", _cannot_connect))
            elif way == "client gone while connecting":
                bed.run(lambda hub: patch.setattr(hub.backends["CORE"], "_open", _connects_for_ever))
            elif way == "a fault of our own":
                patch.setattr("seawall.hub.relayed.forwarded_head", lambda *_: 1 / 0)
            headers = {"X-Budget-Ms": "50"} if way == "budget spent" else {}
            if way == "client gone in the middle of its body" or way == "bad chunk":
                body = b"5000\r\n" + b"x" * 0x5000 + b"\r\n"
                caller.begin("PUT", "/CORE/bad", None, {"Transfer-Encoding": "chunked"})
                caller.send(body)
                bed.wait_for(lambda hub: hub.backends["CORE"].connections)
                if way == "bad chunk":
                    caller.send(b"what?\r\n")
                    assert caller.answer().code == "E400"
            else:
                caller.begin("GET", "/CORE/bad", headers=headers)
                if way.startswith("client gone"):
                    bed.wait_for(lambda hub: hub.backends["CORE"].bulkhead.in_flight)
                else:
                    caller.answer()
        bed.assert_at_rest()
        bed.errors.clear()
        assert ask(bed.port, "GET", "/CORE/good").body == b"good"
        assert bed.run(lambda hub: hub.backends["CORE"].bulkhead.rejected) == 0


async def _cannot_connect(*_: object) -> None:
    raise OSError("no route to it")


async def _connects_for_ever(*_: object) -> None:
    import asyncio

    await asyncio.sleep(3600)


@pytest.mark.req("HUB-9")
@pytest.mark.parametrize("loop", LOOPS)
def test_in_half_open_one_trial_goes_whoever_asks(loop: str) -> None:
    """The classic mistakes of several trials, and of a clock that is read past the one given: it stands until it is set."""
    clock = ManualClock(time.monotonic() + 1e6)
    gate = threading.Event()

    def script(connection: RawConnection) -> None:
        while connection.read_request():
            if len(connection.server.requests) > 5:
                gate.wait(30)
                connection.send(response(200, b"{}"))
            else:
                connection.send(response(500))

    with raw_server(script) as server, hub_bed(f"CORE={server.url},max-inflight=50", loop=loop, clock=clock) as bed:
        for _ in range(5):
            ask(bed.port, "POST", "/tx", TX)
        clock.advance(9.999)
        assert [answer.code for answer in ask_both(bed)] == ["E904", "E904"]
        assert bed.state() == "OPEN"
        assert len(server.requests) == 5
        clock.advance(0.001)
        callers = [Caller(bed.port) for _ in range(20)]
        for caller in callers:
            caller.begin("POST", "/tx", TX)
        bed.wait_for(lambda hub: hub.backends["CORE"].codes.get("E904") == 2 + 19)
        bed.wait_for(lambda _: len(server.requests) == 6)
        assert (bed.state(), bed.in_flight()) == ("HALF_OPEN", 1)
        gate.set()
        answers = [caller.answer() for caller in callers]
        assert sorted(answer.code or "" for answer in answers) == ["0000"] + ["E904"] * 19
        assert "half-open" in next(answer.json()["detail"] for answer in answers if answer.code == "E904")
        for caller in callers:
            caller.close()
        assert bed.state() == "CLOSED"
        assert len(server.requests) == 6


@pytest.mark.req("HUB-3")
def test_a_failed_trial_opens_again_with_the_timer_from_the_start() -> None:
    clock = ManualClock(time.monotonic() + 1e6)
    with running_target() as core, hub_bed(f"CORE={core.url},fail-threshold=1,reset-timeout=5", clock=clock) as bed:
        core.ctl(mode="fail")
        assert ask(bed.port, "POST", "/tx", TX).code == "E500"
        clock.advance(6.0)
        assert ask(bed.port, "POST", "/tx", TX).code == "E500"
        clock.advance(4.0)
        refused = ask(bed.port, "POST", "/tx", TX)
        assert (refused.code, refused.headers["retry-after"]) == ("E904", "1")
        core.ctl(mode="normal")
        clock.advance(1.0)
        assert ask(bed.port, "POST", "/tx", TX).code == "0000"
        assert bed.state() == "CLOSED"
        assert core.stats()["calls"] == 3


@pytest.mark.req("HUB-7")
@pytest.mark.parametrize("rule", [None, "any"])
def test_a_refusal_counts_under_no_rule(rule: str | None) -> None:
    """Neither for the target, nor towards opening, nor by moving the moment of the next trial."""
    with running_target() as core, hub_bed(f"CORE={core.url},max-inflight=1", failures=rule, budget_ms="60000") as bed:
        bed.lay_out()
        core.ctl(mode="slow", delay_ms=300)
        with Caller(bed.port) as caller:
            caller.begin("POST", "/tx", TX)
            core.wait_for(in_flight=1)
            codes = [answer.code for answer in ask_both(bed) * 4]
            codes.append(ask(bed.port, "GET", "/CORE/x", headers={"X-Budget-Ms": "0"}).code)
            assert codes == ["E905"] * 8 + ["E906"]
            assert bed.effect() == "nothing"
            assert caller.answer().code == "0000"


@pytest.mark.parametrize("loop", LOOPS)
def test_a_line_is_there_where_one_was_asked_for(loop: str) -> None:
    """``--max-queue``: first come, first served; a wait that lasts too long, and a line that is full, end in E905."""
    gate = threading.Event()

    def script(connection: RawConnection) -> None:
        while connection.read_request():
            gate.wait(30)
            connection.send(response(200, connection.server.requests[-1].split(b" ")[1]))

    limits = "max-inflight=1,max-queue=2,max-wait=20,read=30"
    with raw_server(script) as server, hub_bed(f"CORE={server.url},{limits}", loop=loop, budget_ms="60000") as bed:
        callers = []
        for number in range(3):
            callers.append(Caller(bed.port))
            callers[-1].begin("GET", f"/CORE/{number}")
            bed.wait_for(lambda hub, number=number: hub.backends["CORE"].bulkhead.waiting == number)  # type: ignore[misc]
        refused = ask(bed.port, "GET", "/CORE/x")
        assert (refused.code, refused.json()["detail"]) == ("E905", "CORE is full: 1 call running and 2 waiting")
        gate.set()
        assert [caller.answer().body for caller in callers] == [b"/0", b"/1", b"/2"]
        for caller in callers:
            caller.close()


@pytest.mark.parametrize("loop", LOOPS)
def test_a_wait_in_line_ends_and_a_waiter_that_leaves_keeps_no_place(loop: str) -> None:
    limits = "max-inflight=1,max-queue=5,max-wait=0.2,read=60"
    with running_target() as core, hub_bed(f"CORE={core.url},{limits}", loop=loop, budget_ms="60000") as bed:
        core.ctl(mode="hang")
        with Caller(bed.port) as first, Caller(bed.port) as second:
            first.begin("GET", "/CORE/x")
            core.wait_for(in_flight=1)
            second.begin("GET", "/CORE/x")
            bed.wait_for(lambda hub: hub.backends["CORE"].bulkhead.waiting == 1)
            second.close()
            refused = ask(bed.port, "GET", "/CORE/x")
            assert (refused.code, refused.json()["detail"]) == ("E905", "CORE had no place free within 0.2 s")
            bed.wait_for(lambda hub: hub.backends["CORE"].bulkhead.waiting == 0)
            spent = ask(bed.port, "GET", "/CORE/x", headers={"X-Budget-Ms": "50"})
            assert (spent.code, "in line for CORE" in spent.json()["detail"]) == ("E906", True)
        bed.assert_at_rest()
        assert core.stats()["other"] == 1


@pytest.mark.parametrize("loop", LOOPS)
def test_who_stands_in_line_when_the_circuit_opens_is_refused(loop: str) -> None:
    """A place comes free with the very failure that opens: nobody takes it to the target any more."""
    gate = threading.Event()

    def script(connection: RawConnection) -> None:
        connection.read_request()
        gate.wait(30)  # and breaks off, without an answer

    limits = "max-inflight=1,max-queue=2,max-wait=20,read=30,fail-threshold=1,reset-timeout=300"
    with raw_server(script) as server, hub_bed(f"CORE={server.url},{limits}", loop=loop, budget_ms="60000") as bed:
        callers = [Caller(bed.port) for _ in range(3)]
        for number, caller in enumerate(callers):
            caller.begin("POST", "/CORE/x", b"")
            bed.wait_for(lambda hub: hub.backends["CORE"].bulkhead.in_flight)
            bed.wait_for(lambda hub, number=number: hub.backends["CORE"].bulkhead.waiting == number)  # type: ignore[misc]
        gate.set()
        answers = [caller.answer() for caller in callers]
        assert [(answer.status, answer.code) for answer in answers] == [(502, "E903"), (503, "E904"), (503, "E904")]
        for refused in answers[1:]:
            assert "CORE is open" in refused.json()["detail"]
            assert 200 < int(refused.headers["retry-after"]) <= 300
        assert len(server.requests) == 1
        for caller in callers:
            caller.close()


@pytest.mark.parametrize(("path", "detail"), [
    ("/", "names no target"), ("/nobody/x", "CLAIM, CORE"), ("/core/x", "CLAIM, CORE"), ("/CORE%2Fx", "CLAIM, CORE"),
])
def test_what_names_no_target(path: str, detail: str) -> None:
    """E404, with the names there are; names are taken byte for byte."""
    with running_target() as core, hub_bed(f"CORE={core.url}", f"CLAIM={core.url}") as bed, Caller(bed.port) as caller:
        answer = caller.ask("GET", path)
        assert (answer.status, answer.code, detail in answer.json()["detail"]) == (404, "E404", True)
        assert caller.ask("HEAD", path).status == 404
        assert caller.ask("POST", "/tx", b'{"target": "core"}').code == "E404"
        assert caller.ask("GET", "/CORE").status == 200
        assert bed.run(lambda hub: hub.refused) == {"E404": 3}
        assert core.stats()["other"] == 1


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(("sent", "status", "code"), [
    (b"GET /CORE/x\r\n\r\n", 400, "E400"),
    (b"GET /CORE/x HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 2000 + b"\r\n\r\n", 431, "E431"),
    (b"GET /CORE/x HTTP/1.1\r\nHos", 408, "E408"),
    (b"POST /tx HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n{", 408, "E408"),
    (b"PUT /CORE/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n{", 408, "E408"),
])
def test_what_the_hub_does_not_take(sent: bytes, status: int, code: str, loop: str) -> None:
    """Not understood, a head too large, a sender too slow: the answer says so, and the connection ends."""
    short = hub_bed("CORE=http://127.0.0.1:9", loop=loop, max_head="1024", head_timeout="0.2", body_gap="0.2")
    with short as bed:
        bed.lay_out()
        came = talk(bed.port, sent)
        assert came.startswith(b"HTTP/1.1 %d " % status)
        assert b"X-Seawall-Code: %b\r\n" % code.encode() in came
        assert b"Connection: close\r\n" in came
        assert (bed.effect(), bed.codes().keys() <= {"E408"}) == ("nothing", True)


@pytest.mark.parametrize("loop", LOOPS)
def test_an_answer_of_the_hub_itself_leaves_the_connection_usable(loop: str) -> None:
    """And echoes the request's id, so that whoever asked can quote it."""
    with refusing() as port, hub_bed(f"CORE=http://127.0.0.1:{port},fail-threshold=2", loop=loop) as bed:
        with Caller(bed.port) as caller:
            for number, code in enumerate(["E901", "E901", "E904", "E904"]):
                answer = caller.ask("POST", "/tx", TX, {"X-Request-Id": f"mine-{number}"})
                assert (answer.code, answer.headers["x-request-id"]) == (code, f"mine-{number}")
                assert "connection" not in answer.headers
