"""A failed answer is read before it is judged, up to a size and for a time; whatever happens, nothing is left behind."""

from __future__ import annotations

import random
import threading
import time

import pytest

from tests.hub.attempts import TX, Step, breaks, hangs, in_turn, retries_of, stopped
from tests.hub.bed import LOOPS, Caller, RawConnection, ask, hub_bed, raw_server, response

OK, FAIL = response(200, b'{"fine": 1}'), response(500, b'{"no": 1}', X_Theirs="y")


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("framing", ["counted", "chunked", "until it closes"])
@pytest.mark.parametrize(("size", "repeated"), [(60_000, True), (200_000, False)])
def test_a_failed_answer_too_long_to_be_kept_is_passed_on_and_not_repeated(
    size: int, repeated: bool, framing: str, loop: str
) -> None:
    body = b"e" * size

    def fails(connection: RawConnection) -> bool:
        if framing == "counted":
            connection.send(b"HTTP/1.1 500 No\r\nContent-Length: %d\r\n\r\n%b" % (size, body))
        elif framing == "chunked":
            pieces = b"".join(b"7d0\r\n%b\r\n" % (b"e" * 2000) for _ in range(size // 2000))
            connection.send(b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n" + pieces + b"0\r\n\r\n")
        else:
            connection.send(b"HTTP/1.1 500 No\r\n\r\n" + body)
        return framing != "until it closes"

    with raw_server(in_turn(fails, OK)) as server:
        with hub_bed(f"CORE={server.url},retry=2,retry-base-ms=1", loop=loop) as bed:
            answer = ask(bed.port, "GET", "/CORE/x")
            if repeated:
                assert (answer.status, stopped(bed)) == (200, {"success": 1})
            else:
                assert (answer.status, answer.body, stopped(bed)) == (500, body, {"not_idempotent": 1})
            assert len(server.requests) == 1 + repeated


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("framing", [b"Content-Length: 40\r\n\r\n", b"\r\n"])
def test_a_failed_answer_too_slow_to_be_kept_is_passed_on_and_not_repeated(framing: bytes, loop: str) -> None:
    """It dawdles for longer than an attempt may take: the client gets it as it comes."""

    def dawdles(connection: RawConnection) -> None:
        connection.send(b"HTTP/1.1 500 No\r\n" + framing)
        connection.drip(b"e" * 40, 0.015)

    with raw_server(in_turn(dawdles, OK)) as server:
        with hub_bed(f"CORE={server.url},retry=2,retry-base-ms=1,connect=0.1,read=0.2", loop=loop) as bed:
            answer = ask(bed.port, "GET", "/CORE/x")
            assert (answer.status, answer.body) == (500, b"e" * 40)
            assert (len(server.requests), stopped(bed)) == (1, {"not_idempotent": 1})


@pytest.mark.parametrize("loop", LOOPS)
def test_a_failed_answer_that_breaks_off_is_a_broken_attempt(loop: str) -> None:
    def breaks_off(connection: RawConnection) -> None:
        connection.send(b"HTTP/1.1 500 No\r\nContent-Length: 40\r\n\r\nabc")

    with raw_server(in_turn(breaks_off, OK)) as server:
        with hub_bed(f"CORE={server.url},retry=2,retry-base-ms=1", loop=loop) as bed:
            assert ask(bed.port, "GET", "/CORE/x").status == 200
    with raw_server(in_turn(breaks_off)) as server:
        with hub_bed(f"CORE={server.url},retry=2,retry-base-ms=1", loop=loop) as bed:
            with pytest.raises((EOFError, ConnectionError)):  # the last one is passed on as it comes
                ask(bed.port, "GET", "/CORE/x")
            assert (bed.codes(), stopped(bed)) == ({"E903": 1}, {"attempts": 1})


@pytest.mark.parametrize("loop", LOOPS)
def test_an_answer_that_has_begun_to_be_passed_on_is_never_followed_by_another(loop: str) -> None:
    def breaks_off(connection: RawConnection) -> None:
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\nabc")

    with raw_server(in_turn(breaks_off, OK)) as server:
        with hub_bed(f"CORE={server.url},retry=2,retry-base-ms=1", loop=loop) as bed, Caller(bed.port) as caller:
            caller.begin("GET", "/CORE/x")
            with pytest.raises((EOFError, ConnectionError)):
                caller.answer()
            assert (len(server.requests), stopped(bed), bed.codes()) == (1, {}, {"E903": 1})


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("failure", [FAIL, breaks], ids=["500", "break"])
def test_a_trial_whose_client_has_left_is_one_attempt(failure: Step, loop: str) -> None:
    """Nobody waits for the answer to another."""
    gone = threading.Event()

    def later(connection: RawConnection) -> bool:
        gone.wait(20)
        if callable(failure):
            failure(connection)
            return False
        connection.send(failure)
        return True

    with raw_server(in_turn(FAIL, later)) as server:
        limits = "retry=3,retry-base-ms=1,fail-threshold=1,reset-timeout=0.05,read=20,budget-ms=60000"
        with hub_bed(f"CORE={server.url},{limits}", loop=loop) as bed:
            assert ask(bed.port, "GET", "/CORE/x").status == 500
            before = retries_of(bed)
            bed.wait_for(lambda hub: hub.backends["CORE"].breaker.snapshot().trial_due)
            with Caller(bed.port) as caller:
                caller.begin("GET", "/CORE/x")
                bed.wait_for(lambda _: len(server.requests) == 2)
            bed.wait_for(lambda hub: hub.ghosts)
            gone.set()
            bed.wait_for(lambda hub: not hub.ghosts)
            assert (retries_of(bed), len(server.requests)) == (before, 2)


# -- everything at once


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_happens_each_request_gets_one_answer_and_nothing_stays_in_use(seed: int, loop: str) -> None:
    """A crowd on both doors, a target that fails in every way; the bed looks for what is left behind."""
    dice = random.Random(seed)

    def slowly(connection: RawConnection) -> None:
        connection.send(b"HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.drip(b"3\r\nabc\r\n0\r\n\r\n", 0.002)

    busy = response(503, b"{}", Retry_After="0.01")
    ways: list[Step] = [OK, OK, FAIL, busy, hangs, breaks, slowly, lambda _: None, response(429, b"{}")]
    with raw_server(in_turn(*(dice.choice(ways) for _ in range(400)))) as server:
        limits = "retry=4,retry-base-ms=5,read=0.05,idempotent=yes,max-inflight=4,max-queue=8"
        with hub_bed(f"CORE={server.url},{limits},fail-threshold=6,reset-timeout=0.05", loop=loop) as bed:
            answers: list[int] = []

            def client(number: int) -> None:
                mine = random.Random(seed * 100 + number)
                for _ in range(12):
                    kind = mine.randrange(4)
                    if kind == 0:
                        answers.append(ask(bed.port, "POST", "/tx", TX).status)
                    elif kind == 1:
                        body = b"b" * mine.choice([3, 20_000])
                        answers.append(ask(bed.port, "PUT", "/CORE/x", body, {"X-Budget-Ms": "300"}).status)
                    elif kind == 2:
                        answers.append(ask(bed.port, "GET", "/CORE/x").status)
                    else:
                        with Caller(bed.port) as caller:
                            caller.begin("GET", "/CORE/x")
                            time.sleep(mine.random() * 0.05)
                        answers.append(0)

            threads = [threading.Thread(target=client, args=(number,)) for number in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            assert len(answers) == 96
            assert set(answers) <= {0, 200, 429, 500, 502, 503, 504}
            bed.assert_at_rest()
            assert sum(bed.codes().values()) == 96
            assert retries_of(bed) > 5
