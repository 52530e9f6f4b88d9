"""Whatever happens to CORE, CLAIM's callers cannot tell: not by an answer, not by a wait."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import pytest

from seawall.faults.running import running_target
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

CORE, CLAIM = b'{"target": "CORE", "amount": 5}', b'{"target": "CLAIM", "amount": 5}'
OWN_TO_A_REQUEST = ("x-request-id",)


@contextlib.contextmanager
def dead() -> Iterator[str]:
    with refusing() as port:
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def unreachable() -> Iterator[str]:
    with black_hole() as port:
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def mode(name: str, delay_ms: int | None = None) -> Iterator[str]:
    with running_target("CORE") as core:
        core.ctl(mode=name, delay_ms=delay_ms)
        yield core.url


@contextlib.contextmanager
def endless() -> Iterator[str]:
    """A target whose answers begin, and go on without an end."""

    def script(connection: RawConnection) -> None:
        connection.read_request()
        connection.send(b"HTTP/1.1 200 OK\r\n\r\n")
        connection.drip(b"x" * 100_000, 0.001)

    with raw_server(script) as server:
        yield server.url


TROUBLES = {
    "dead": dead, "unreachable": unreachable, "failing": lambda: mode("fail"), "hung": lambda: mode("hang"),
    "slow": lambda: mode("slow", 400), "dripping": lambda: mode("drip_head"), "resetting": lambda: mode("reset"),
    "garbage": lambda: mode("garbage"), "endless": endless,
}  # fmt: skip


def shown(answers: list[Answer]) -> list[tuple[int, dict[str, str], bytes]]:
    """All of an answer but what is of one request alone."""
    return [
        (answer.status, {k: v for k, v in answer.headers.items() if k not in OWN_TO_A_REQUEST}, answer.body)
        for answer in answers
    ]


def claims(bed: HubBed, count: int) -> list[Answer]:
    with Caller(bed.port) as caller:
        return [caller.ask("POST", "/tx", CLAIM) for _ in range(count)]


@contextlib.contextmanager
def crowd(bed: HubBed, size: int = 20) -> Iterator[None]:
    """So many callers of CORE, each asking again and again until the block ends."""
    over = threading.Event()

    def call(number: int) -> None:
        while not over.is_set():
            with contextlib.suppress(OSError, EOFError), Caller(bed.port) as caller:
                if number % 2:
                    caller.ask("POST", "/tx", CORE, {"X-Budget-Ms": "500"})
                else:
                    caller.ask("GET", "/CORE/x", headers={"X-Budget-Ms": "500"})
            over.wait(0.01)

    threads = [threading.Thread(target=call, args=(number,), daemon=True) for number in range(size)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(30)


@pytest.mark.req("HUB-5")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("trouble", TROUBLES)
def test_claim_answers_as_ever(trouble: str, loop: str) -> None:
    """The same bytes as on a quiet day, while 20 callers press on CORE and its circuit does what it has to."""
    limits = "fail-threshold=3,reset-timeout=0.2,max-inflight=3,connect=0.2,read=0.3"
    with TROUBLES[trouble]() as core, running_target("CLAIM") as claim:
        with hub_bed(f"CORE={core},{limits}", f"CLAIM={claim.url}", loop=loop) as bed:
            quiet = shown(claims(bed, 2))
            with crowd(bed):
                bed.wait_for(lambda hub: sum(hub.backends["CORE"].codes.values()) >= 20)
                assert shown(claims(bed, 60)) == [quiet[0]] * 60
            assert bed.codes("CLAIM") == {"0000": 62}
            assert bed.state("CLAIM") == "CLOSED"
            assert claim.stats()["calls"] == 62


@pytest.mark.req("HUB-5")
@pytest.mark.parametrize("loop", LOOPS)
def test_claim_waits_for_nothing_that_core_waits_for(loop: str) -> None:
    """All places of CORE hang, more callers are refused; 100 answers of CLAIM come before any of CORE's limits passes."""
    with running_target("CORE") as core, running_target("CLAIM") as claim:
        targets = f"CORE={core.url},read=20,max-inflight=5,max-queue=5", f"CLAIM={claim.url}"
        with hub_bed(*targets, loop=loop, budget_ms="60000") as bed:
            core.ctl(mode="hang")
            callers = [Caller(bed.port) for _ in range(10)]
            for caller in callers:
                caller.begin("POST", "/tx", CORE)
            core.wait_for(in_flight=5)
            bed.wait_for(lambda hub: hub.backends["CORE"].bulkhead.waiting == 5)
            assert ask(bed.port, "POST", "/tx", CORE).code == "E905"
            assert [answer.code for answer in claims(bed, 100)] == ["0000"] * 100
            assert (bed.in_flight("CORE"), bed.codes("CORE")) == (5, {"E905": 1})
            for caller in callers:
                caller.close()


@pytest.mark.req("HUB-5", "HUB-9")
@pytest.mark.parametrize("loop", LOOPS)
def test_there_is_no_one_breaker_for_the_whole_hub(loop: str) -> None:
    """The classic mistake: CORE's failures open CORE, however they mix with CLAIM's successes, and CLAIM stays closed."""
    with refusing() as port, raw_server(answering(response(200, b"{}"))) as claim:
        with hub_bed(f"CORE=http://127.0.0.1:{port}", f"CLAIM={claim.url}", loop=loop) as bed:
            codes = [ask(bed.port, "POST", "/tx", body).code for _ in range(6) for body in (CORE, CLAIM)]
            assert codes == ["E901", "0000"] * 5 + ["E904", "0000"]
            assert (bed.state("CORE"), bed.state("CLAIM")) == ("OPEN", "CLOSED")
            lines = bed.breaker_log.read_text()
            assert [line.split("|")[1:] for line in lines.splitlines()] == [["CORE", "CLOSED->OPEN"]]


@pytest.mark.req("HUB-5")
def test_each_target_has_limits_and_rules_of_its_own() -> None:
    with raw_server(answering(response(404))) as server:
        with hub_bed(f"CORE={server.url},failures=any,fail-threshold=2", f"CLAIM={server.url},max-inflight=1") as bed:
            assert [ask(bed.port, "POST", "/tx", CORE).code for _ in range(3)] == ["B404", "B404", "E904"]
            assert [ask(bed.port, "POST", "/tx", CLAIM).code for _ in range(3)] == ["B404"] * 3
