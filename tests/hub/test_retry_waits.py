"""Between two attempts nothing is held and the budget runs; the target may say how long to wait."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest

from seawall.policies.retry_budget import RetryBudget
from tests.hub.attempts import TX, Step, hangs, headers, in_turn, jitter, retries_of, stopped
from tests.hub.bed import LOOPS, Caller, RawConnection, ask, hub_bed, raw_server, response, talk
from tests.hub.phase import waiting

OK, FAIL = response(200, b'{"fine": 1}'), response(500, b'{"no": 1}', X_Theirs="y")
SLOW = "retry=2,retry-base-ms=20000,retry-max-delay-ms=20000,budget-ms=60000,read=30"


# -- what the target asks for


@pytest.mark.fault("F30")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("door", ["tx", "path"])
@pytest.mark.parametrize("status", [429, 503])
def test_a_hint_is_waited_for_in_place_of_the_computed_wait(status: int, door: str, loop: str) -> None:
    """A 429 is repeated only for its hint, and counts for nothing at the breaker."""
    busy = response(status, b"{}", Retry_After="0.2")
    with raw_server(in_turn(busy, OK)) as server:
        limits = "retry=3,retry-base-ms=9000,retry-max-delay-ms=9000,idempotent=yes"
        with hub_bed(f"CORE={server.url},{limits}", loop=loop) as bed:
            jitter(bed, 1.0)
            began = time.monotonic()
            answer = ask(bed.port, "POST", "/tx", TX) if door == "tx" else ask(bed.port, "GET", "/CORE/x")
            assert 0.2 <= time.monotonic() - began < 5.0
            assert answer.status == 200
            assert bed.run(lambda hub: hub.backends["CORE"].breaker.snapshot().failures) == 0


@pytest.mark.fault("F30")
@pytest.mark.parametrize("door", ["tx", "path"])
@pytest.mark.parametrize(("hint", "reason"), [
    ("3600", "pushback"), ("61", "pushback"), ("30", "budget"), ("Fri, 31 Dec 9999 23:59:59 GMT", "pushback"),
])  # fmt: skip
def test_a_hint_that_cannot_be_waited_for_ends_it_at_once(hint: str, reason: str, door: str) -> None:
    """The client gets the answer, hint and all."""
    with raw_server(in_turn(response(503, b"{}", Retry_After=hint))) as server:
        with hub_bed(f"CORE={server.url},retry=3,idempotent=yes") as bed:
            answer = ask(bed.port, "POST", "/tx", TX) if door == "tx" else ask(bed.port, "GET", "/CORE/x")
            assert answer.status == (502 if door == "tx" else 503)
            assert answer.headers["retry-after"] == hint
            assert len(server.requests) == 1
            assert stopped(bed) == {reason: 1}


@pytest.mark.fault("F30")
@pytest.mark.parametrize("hint", ["-1", "soon", "", "Sun, 99 Foo 1994 08:49:37 GMT", "1e3", "\xb2"])
def test_a_hint_that_says_nothing_is_none(hint: str) -> None:
    busy = response(503, Retry_After=hint)
    with raw_server(in_turn(busy, OK)) as server, hub_bed(f"CORE={server.url},retry=2,retry-base-ms=1") as bed:
        assert ask(bed.port, "GET", "/CORE/x").status == 200
    with raw_server(in_turn(response(429, Retry_After=hint))) as server, hub_bed(f"CORE={server.url},retry=2") as bed:
        assert ask(bed.port, "GET", "/CORE/x").status == 429
        assert len(server.requests) == 1


@pytest.mark.fault("F30")
def test_a_date_is_read_against_the_targets_own() -> None:
    """Its clock may be years off ours."""
    at = "Sun, 06 Nov 1994 08:49:{} GMT"
    busy = response(503, Date=at.format(37), Retry_After=at.format(38))
    with raw_server(in_turn(busy, OK)) as server, hub_bed(f"CORE={server.url},retry=2") as bed:
        began = time.monotonic()
        assert ask(bed.port, "GET", "/CORE/x").status == 200
        assert time.monotonic() - began >= 1.0


# -- the budget


@pytest.mark.fault("F28")
@pytest.mark.parametrize(("door", "loop"), [("tx", "asyncio"), ("path", "uvloop")])
def test_each_attempt_is_told_its_own_limit_or_what_is_left_if_that_is_less(door: str, loop: str) -> None:
    """750 ms in all, 300 ms a try: with retries nobody works on for an attempt that is over."""
    with raw_server(in_turn(hangs)) as server:
        limits = "retry=3,retry-base-ms=0,read=0.3,idempotent=yes"
        with hub_bed(f"CORE={server.url},{limits}", loop=loop) as bed:
            more = {"X-Budget-Ms": "750", "grpc-timeout": "750m"}
            began = time.monotonic()
            if door == "tx":
                answer = ask(bed.port, "POST", "/tx", TX, more)
            else:
                answer = ask(bed.port, "GET", "/CORE/x", headers=more)
            assert time.monotonic() - began >= 0.75
            assert (answer.status, answer.code) == (504, "E906")
            assert answer.json()["detail"] == "attempt 3 of 3: the budget of 750 ms is spent while waiting for CORE"
            told = [int(headers(request)["x-budget-ms"]) for request in server.requests]
            assert told[:2] == [300, 300]
            assert 0 <= told[2] <= 150
            assert [headers(request)["grpc-timeout"] for request in server.requests][:2] == ["300000u"] * 2
            assert stopped(bed) == {"budget": 1}


@pytest.mark.fault("F27")
@pytest.mark.parametrize("loop", LOOPS)
def test_an_attempt_that_lasted_to_the_end_of_the_budget_is_followed_by_none(loop: str) -> None:
    with raw_server(in_turn(hangs)) as server, hub_bed(f"CORE={server.url},retry=3,read=30", loop=loop) as bed:
        answer = ask(bed.port, "GET", "/CORE/x", headers={"X-Budget-Ms": "150"})
        assert (answer.status, answer.code) == (504, "E906")
        assert len(server.requests) == 1
        assert retries_of(bed) == 0


@pytest.mark.req("BUDGET-6")
@pytest.mark.parametrize(("limits", "budget"), [
    ("retry-base-ms=2000", "1000"), ("retry-base-ms=500,min-ms=600", "1000"),
])  # fmt: skip
def test_a_wait_that_does_not_fit_is_not_begun(limits: str, budget: str) -> None:
    """Neither the wait by itself, nor with ``min-ms`` for the call after it: the answer comes at once."""
    with raw_server(in_turn(FAIL)) as server, hub_bed(f"CORE={server.url},retry=3,{limits}") as bed:
        jitter(bed, 1.0)
        answer = ask(bed.port, "GET", "/CORE/x", headers={"X-Budget-Ms": budget})
        assert (answer.status, answer.body) == (500, b'{"no": 1}')
        assert "server-timing" not in answer.headers
        assert (len(server.requests), stopped(bed)) == (1, {"budget": 1})


@pytest.mark.fault("F38")
def test_with_the_retry_budget_spent_nothing_is_repeated() -> None:
    with raw_server(in_turn(FAIL)) as server, hub_bed(f"CORE={server.url},retry=3,retry-base-ms=0") as bed:
        bed.run(lambda hub: setattr(hub.backends["CORE"].retry, "retry_budget", RetryBudget(0.0, 0.0)))
        assert ask(bed.port, "GET", "/CORE/x").status == 500
        assert (len(server.requests), stopped(bed)) == (1, {"retry_budget": 1})


@pytest.mark.parametrize("loop", LOOPS)
def test_a_budget_that_ends_in_a_later_attempt_is_the_answer_to_that(loop: str) -> None:
    """Also where a failed answer was on its way in, and though there had been one before it."""

    def dribbles(connection: RawConnection) -> None:
        connection.send(b"HTTP/1.1 500 No\r\nContent-Length: 400\r\n\r\n")
        connection.drip(b"e" * 400, 0.02)

    with raw_server(in_turn(FAIL, dribbles)) as server:
        with hub_bed(f"CORE={server.url},retry=3,retry-base-ms=0", loop=loop) as bed:
            answer = ask(bed.port, "GET", "/CORE/x", headers={"X-Budget-Ms": "300"})
            assert (answer.status, answer.code, stopped(bed)) == (504, "E906", {"budget": 1})
            assert answer.json()["detail"].startswith("attempt 2 of 3: the budget of 300 ms is spent")


@pytest.mark.parametrize("loop", LOOPS)
def test_the_budget_of_the_hub_itself_covers_all_attempts_too(loop: str) -> None:
    """It begins once, when the body is in: a further attempt makes it no longer."""
    with raw_server(in_turn(hangs)) as server:
        limits = "retry=10,retry-base-ms=0,read=0.2,budget-ms=500"
        with hub_bed(f"CORE={server.url},{limits}", loop=loop) as bed:
            assert ask(bed.port, "PUT", "/CORE/x", b"body").code in ("E906", "E902")  # the latter on a busy machine
            spent = 200 * (len(server.requests) - 1)
            assert 2 <= len(server.requests) <= 3
            assert int(headers(server.requests[-1])["x-budget-ms"]) <= 500 - spent


@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_that_was_held_up_past_the_budget_passes_on_the_answer_there_was(loop: str) -> None:
    with raw_server(in_turn(FAIL)) as server:
        with hub_bed(f"CORE={server.url},retry=2,retry-base-ms=500", loop=loop) as bed, Caller(bed.port) as caller:
            jitter(bed, 1.0)
            caller.begin("GET", "/CORE/x", headers={"X-Budget-Ms": "700"})
            bed.wait_for(waiting)
            bed.run(lambda _: time.sleep(0.8))
            answer = caller.answer()
            assert (answer.status, answer.body, stopped(bed)) == (500, b'{"no": 1}', {"budget": 1})
            assert len(server.requests) == 1


# -- nothing is held


@pytest.mark.req("LIB-9")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("failure", [FAIL, hangs], ids=["500", "hang"])
def test_the_place_is_free_while_the_next_attempt_is_waited_for(failure: Step, loop: str) -> None:
    with raw_server(in_turn(failure, OK)) as server:
        limits = "retry=2,retry-base-ms=20000,retry-max-delay-ms=20000,budget-ms=60000,read=0.2,max-inflight=1"
        with hub_bed(f"CORE={server.url},{limits}", loop=loop) as bed, Caller(bed.port) as first:
            jitter(bed, 1.0)
            first.begin("GET", "/CORE/x")
            bed.wait_for(waiting)
            assert bed.in_flight() == 0
            assert ask(bed.port, "GET", "/CORE/y").status == 200
            first.close()
            bed.wait_for(lambda hub: hub.backends["CORE"].codes == {"0000": 1, "C499": 1})


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("failure", [FAIL, hangs], ids=["500", "hang"])
def test_who_stands_in_line_gets_the_place(failure: Step, loop: str) -> None:
    """At once, not when somebody comes by."""
    with raw_server(in_turn(failure, OK)) as server:
        limits = "retry=2,retry-base-ms=20000,retry-max-delay-ms=20000,budget-ms=60000,read=0.2,max-inflight=1,max-queue=5"
        with (
            hub_bed(f"CORE={server.url},{limits}", loop=loop) as bed,
            Caller(bed.port) as first, Caller(bed.port) as second,
        ):  # fmt: skip
            jitter(bed, 1.0)
            bed.run(lambda hub: hub.backends["CORE"].bulkhead.try_acquire())  # until both stand in line
            first.begin("GET", "/CORE/1")
            bed.wait_for(lambda hub: hub.backends["CORE"].bulkhead.waiting == 1)
            second.begin("GET", "/CORE/2")
            bed.wait_for(lambda hub: hub.backends["CORE"].bulkhead.waiting == 2)
            bed.run(lambda hub: hub.backends["CORE"].bulkhead.release())
            assert second.answer().status == 200
            assert bed.run(waiting) == 1


@pytest.mark.parametrize("loop", LOOPS)
def test_a_client_that_leaves_meanwhile_takes_the_next_attempt_with_it(loop: str, tmp_path: Path) -> None:
    """It was answered nothing, and the access log says so."""
    log = tmp_path / "access"
    with (
        raw_server(in_turn(FAIL)) as server,
        hub_bed(f"CORE={server.url},{SLOW}", loop=loop, access_log=str(log)) as bed,
    ):
        jitter(bed, 1.0)
        with Caller(bed.port) as caller:
            caller.begin("GET", "/CORE/x")
            bed.wait_for(waiting)
        bed.wait_for(lambda hub: hub.backends["CORE"].codes == {"C499": 1})
        assert len(server.requests) == 1
        assert not bed.run(lambda hub: hub.backends["CORE"].breaker._epoch.cuts)
        assert stopped(bed) == {"cut": 1}
    [line] = map(json.loads, log.read_text().splitlines())
    assert (line["code"], line["status"]) == ("C499", 0)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_client_that_leaves_in_a_later_attempt_cuts_it(loop: str) -> None:
    with (
        raw_server(in_turn(FAIL, hangs)) as server,
        hub_bed(f"CORE={server.url},retry=2,retry-base-ms=1,read=30,budget-ms=60000", loop=loop) as bed,
    ):
        with Caller(bed.port) as caller:
            caller.begin("GET", "/CORE/x")
            bed.wait_for(lambda hub: hub.backends["CORE"].breaker.started == 2)
        bed.wait_for(lambda hub: hub.backends["CORE"].codes == {"C499": 1})
        assert stopped(bed) == {"cut": 1}
        assert bed.run(lambda hub: hub.backends["CORE"].retry.calls) == 1  # type: ignore[union-attr]


@pytest.mark.parametrize("loop", LOOPS)
def test_what_a_client_sends_ahead_is_answered_after_the_attempts(loop: str) -> None:
    with raw_server(in_turn(FAIL, OK, OK)) as server:
        with hub_bed(f"CORE={server.url},retry=2,retry-base-ms=20", loop=loop) as bed:
            two = b"GET /CORE/1 HTTP/1.1\r\nHost: a\r\n\r\nGET /CORE/2 HTTP/1.1\r\nHost: a\r\n\r\n"
            said = talk(bed.port, two, until=lambda came: came.count(b'{"fine": 1}') == 2)
            assert said.count(b"HTTP/1.1 200 ") == 2
            assert [request[:6] for request in server.requests] == [b"GET /1", b"GET /1", b"GET /2"]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(("patience", "cut"), [("30", 0), ("0.2", 1)])
def test_a_drain_waits_for_the_next_attempt_as_long_as_for_anything(patience: str, cut: int, loop: str) -> None:
    wait = "500" if cut == 0 else "20000"
    with raw_server(in_turn(FAIL, OK)) as server:
        limits = f"retry=2,retry-base-ms={wait},retry-max-delay-ms={wait},budget-ms=60000"
        with hub_bed(f"CORE={server.url},{limits}", loop=loop, drain_timeout=patience) as bed, Caller(bed.port) as caller:
            jitter(bed, 1.0)
            caller.begin("GET", "/CORE/x")
            bed.wait_for(waiting)
            drained = asyncio.run_coroutine_threadsafe(bed.hub.drain(), bed.hub.loop)
            answer = caller.answer()
            assert (answer.status, answer.code) == ((200, None) if cut == 0 else (503, "E908"))
            assert answer.headers["connection"] == "close"
            assert drained.result(30) == cut
