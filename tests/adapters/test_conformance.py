"""The same cases for every client: what a protected client does, whatever it is made of.

``python -m tests.adapters.table --write`` keeps the table of clients and cases in docs/adapters/README.md.
"""

from __future__ import annotations

import gc
import pickle
import time
from collections.abc import Iterator
from typing import Any

import pytest

import seawall
from seawall import Bulkhead, CircuitBreaker, Retry, Timeout, Wall
from tests.adapters.served import Served
from tests.adapters.subjects import Stream, Subject, subjects

SHORT = 0.25   # s: a budget that is to end
LATE = 2.0     # s that an end may be late on a busy machine; what hangs here would last a minute


@pytest.fixture(params=list(subjects()), ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


class Bench:
    """A client of one kind, and the target it calls."""

    def __init__(self, kind: type[Subject]) -> None:
        self.kind = kind
        self.wall = Wall()
        self.made: list[Subject] = []

    def __call__(self, *, connections: int | None = None, name: str = "CORE", **settings: Any) -> Subject:
        options = {key: settings.pop(key) for key in ("total", "first", "headers", "idempotent") if key in settings}
        if name not in self.wall:
            settings.setdefault("breaker", CircuitBreaker(3))
            self.wall.target(name, **settings)
        self.made.append(self.kind(self.wall, connections=connections, target=name, **options))
        return self.made[-1]

    def again(self, **more: Any) -> Retry:
        return Retry(3, base_delay=0.001, retry_budget=None, **more)

    @property
    def now(self) -> seawall.TargetSnapshot:
        return self.wall["CORE"].snapshot()

    def quiet(self) -> tuple[int, int]:
        """Calls running and completed."""
        bulkhead = self.now.bulkhead
        assert bulkhead is not None
        return bulkhead.in_flight, bulkhead.completed

    def state(self) -> tuple[str, int]:
        """The circuit's state, and its failures in a row."""
        breaker = self.now.breaker
        assert breaker is not None
        return breaker.state.value, breaker.failures


@pytest.fixture
def bench(kind: type[Subject]) -> Iterator[Bench]:
    bench = Bench(kind)
    yield bench
    for subject in bench.made:
        subject.close()


def drain(stream: Stream) -> None:
    while stream.part():
        pass


def took(began: float) -> float:
    return time.monotonic() - began


# -- the plain case
def test_a_good_answer_comes_through(bench: Bench, served: Served) -> None:
    assert bench().get(f"{served.url}/ok?bytes=100000") == (200, b"x" * 100_000)
    assert (bench.quiet(), bench.state()) == ((0, 1), ("CLOSED", 0))


def test_connections_are_used_again(bench: Bench, served: Served) -> None:
    client = bench(retry=bench.again())
    for _ in range(4):
        assert client.get(f"{served.url}/ok").status == 200
    assert client.get(f"{served.url}/flaky?fail=2").status == 200
    assert served.connections == 1


def test_a_body_is_sent_as_it_is(bench: Bench, served: Served) -> None:
    got = bench().ask("POST", f"{served.url}/echo", body=b"hello", headers={"X-Mine": "1"})
    assert (got.status, served.asked[0].body, served.asked[0].headers["x-mine"]) == (200, b"hello", "1")


def test_a_body_that_comes_from_an_iterator_is_sent(bench: Bench, served: Served) -> None:
    assert bench().ask("POST", f"{served.url}/echo", body=iter([b"hel", b"lo"])).status == 200
    assert served.asked[0].body == b"hello"


# -- names
def test_without_a_name_the_host_is_the_target(kind: type[Subject], served: Served) -> None:
    wall = Wall()
    client = kind(wall)
    assert client.get(f"{served.url}/ok").status == 200
    client.close()
    assert [target.name for target in wall] == [served.host]


def test_hosts_are_mapped_to_names(kind: type[Subject], served: Served) -> None:
    wall = Wall()
    for naming in ({served.host: "A"}, lambda host: "B" if host == served.host else None, {"other.example": "C"}):
        client = kind(wall, target=naming)
        assert client.get(f"{served.url}/ok").status == 200
        client.close()
    assert [target.name for target in wall] == ["A", "B", served.host]


# -- the breaker
@pytest.mark.parametrize("path", ["/status?is=500", "/status?is=503", "/reset", "/garbage", "/break"])
def test_failures_open_the_circuit(bench: Bench, served: Served, path: str) -> None:
    client = bench()
    ends: tuple[type[Exception], ...] = client.broken
    if client.repeats:
        ends = (*ends, seawall.CircuitOpenError)
    for _ in range(3):
        try:
            assert client.get(served.url + path).status >= 500
        except ends:
            pass
    with pytest.raises(seawall.CircuitOpenError) as refusal:
        client.get(f"{served.url}/ok")
    assert isinstance(refusal.value, client.refused)
    assert (refusal.value.target, refusal.value.state, len(served.asked)) == ("CORE", "OPEN", 3)
    assert bench.quiet() == (0, 3)


def test_a_target_that_is_not_there_opens_the_circuit(bench: Bench, served: Served) -> None:
    client = bench()
    for _ in range(3):
        with pytest.raises(client.unreached):
            client.get("http://127.0.0.1:1/")
    assert bench.state()[0] == "OPEN"


@pytest.mark.parametrize("status", [404, 408, 429])
def test_what_the_client_did_wrong_is_no_failure_of_the_target(bench: Bench, served: Served, status: int) -> None:
    client = bench()
    for _ in range(4):
        assert client.get(f"{served.url}/status?is={status}").status == status
    assert bench.state() == ("CLOSED", 0)


def test_an_answer_of_a_hub_proves_it_alive(bench: Bench, served: Served) -> None:
    client = bench(retry=bench.again())
    for _ in range(4):
        assert client.get(f"{served.url}/status?is=503&code=E904").status == 503
    assert (bench.state(), len(served.asked)) == (("CLOSED", 0), 4)


def test_a_good_answer_ends_the_row_of_failures(bench: Bench, served: Served) -> None:
    client = bench()
    for path in ("/status?is=500", "/status?is=500", "/ok", "/status?is=500"):
        client.get(served.url + path)
    assert bench.state() == ("CLOSED", 1)


def test_an_answer_in_time_counts_against_the_clients_own_limit(bench: Bench, served: Served) -> None:
    """A read limit of the client's own, with no budget: its own error, unchanged, and a failure of the target."""
    client = bench()
    with pytest.raises(client.slow) as error:
        client.get(f"{served.url}/hang", read=0.1)
    assert not isinstance(error.value, seawall.SeawallError)
    assert (bench.state(), bench.quiet()) == (("CLOSED", 1), (0, 1))


# -- the bulkhead
def test_a_stream_holds_its_place_until_it_is_closed(bench: Bench, served: Served) -> None:
    client = bench(bulkhead=Bulkhead(1))
    stream = client.stream(f"{served.url}/drip?ms=5&parts=1000")
    assert stream.part() != b""
    assert bench.quiet() == (1, 0)
    with pytest.raises(seawall.BulkheadFullError) as refusal:
        client.get(f"{served.url}/ok")
    assert isinstance(refusal.value, client.refused)
    stream.close()
    assert bench.quiet() == (0, 1)
    assert client.get(f"{served.url}/ok").status == 200
    assert bench.state() == ("CLOSED", 0)


def test_a_stream_gives_its_place_back_at_its_end(bench: Bench, served: Served) -> None:
    client = bench(bulkhead=Bulkhead(1))
    stream = client.stream(f"{served.url}/drip?ms=1&parts=5&chunked=1")
    drain(stream)
    assert bench.quiet() == (0, 1)
    stream.close()
    assert bench.quiet() == (0, 1)


def test_a_response_that_is_dropped_gives_its_place_back(bench: Bench, served: Served) -> None:
    if bench.kind.keeps:
        pytest.skip("its connection keeps it alive")
    client = bench()
    stream: Any = client.stream(f"{served.url}/drip?ms=5&parts=1000")
    assert bench.quiet() == (1, 0)
    del stream
    gc.collect()
    assert bench.quiet()[0] == 0


# -- the budget
@pytest.mark.fault("F36")
@pytest.mark.parametrize("path", ["/hang", "/driphead?ms=20", "/drip?ms=20", "/drip?ms=20&chunked=1", "/pause?ms=9000"])
def test_a_budget_ends_whatever_the_target_does(bench: Bench, served: Served, path: str) -> None:
    client, began = bench(), time.monotonic()
    with seawall.budget(SHORT), pytest.raises(seawall.DeadlineExceededError) as error:
        client.get(served.url + path)
    assert SHORT - 0.01 < took(began) < SHORT + LATE
    assert isinstance(error.value, client.late)
    assert served.left.wait(10)
    assert (bench.state(), bench.quiet()) == (("CLOSED", 0), (0, 1))  # a cut, and no failure


@pytest.mark.parametrize("path", ["/hang", "/driphead?ms=20", "/drip?ms=20", "/pause?ms=9000"])
def test_the_limit_of_an_attempt_is_a_failure_of_the_target(bench: Bench, served: Served, path: str) -> None:
    client, began = bench(timeout=Timeout(SHORT)), time.monotonic()
    with pytest.raises(seawall.TimeoutExceededError) as error:
        client.get(served.url + path)
    assert SHORT - 0.01 < took(began) < SHORT + LATE
    assert isinstance(error.value, client.late)
    assert (error.value.target, error.value.limit) == ("CORE", SHORT)
    assert (bench.state(), bench.quiet()) == (("CLOSED", 1), (0, 1))


def test_a_total_of_the_client_is_one_as_well(bench: Bench, served: Served) -> None:
    client = bench(total=SHORT)
    with pytest.raises(seawall.TimeoutExceededError):
        client.get(f"{served.url}/drip?ms=20")
    assert bench.state() == ("CLOSED", 1)


def test_a_stream_ends_with_the_budget_it_began_in(bench: Bench, served: Served) -> None:
    """Also where it is read outside the block: what was allowed for the request was allowed for its body."""
    client, began = bench(), time.monotonic()
    with seawall.budget(SHORT):
        stream = client.stream(f"{served.url}/drip?ms=20")
    with pytest.raises(client.body_late):
        drain(stream)
    assert SHORT - 0.01 < took(began) < SHORT + LATE
    stream.close()
    assert bench.quiet() == (0, 1)


def test_with_nothing_left_nothing_is_sent(bench: Bench, served: Served) -> None:
    client = bench(retry=bench.again())
    with seawall.budget(0.0), pytest.raises(seawall.NoBudgetError) as refusal:
        client.get(f"{served.url}/ok")
    assert isinstance(refusal.value, client.refused)
    assert (served.asked, bench.quiet()) == ([], (0, 0))


def test_the_callee_is_told_what_is_left_at_each_attempt(bench: Bench, served: Served) -> None:
    client = bench(retry=bench.again())
    with seawall.budget(5.0):
        assert client.get(f"{served.url}/flaky?fail=2").status == 200
    told = [int(asked.headers["x-budget-ms"]) for asked in served.asked]
    assert told == sorted(told, reverse=True)
    assert 0 < told[-1] < told[0] <= 5000


def test_the_callee_is_told_the_limit_of_the_attempt(bench: Bench, served: Served) -> None:
    client = bench(timeout=Timeout(1.5))
    client.get(f"{served.url}/ok")
    with seawall.budget(0.9):
        client.get(f"{served.url}/ok")
    first, second = (int(asked.headers["x-budget-ms"]) for asked in served.asked)
    assert 900 < first <= 1500
    assert second <= 900


def test_without_a_limit_nothing_is_told(bench: Bench, served: Served) -> None:
    bench().get(f"{served.url}/ok")
    assert "x-budget-ms" not in served.asked[0].headers


def test_a_smaller_budget_that_the_caller_wrote_stays(bench: Bench, served: Served) -> None:
    client = bench()
    with seawall.budget(5.0):
        client.get(f"{served.url}/ok", headers={"X-Budget-Ms": "70"})
        client.get(f"{served.url}/ok", headers={"X-Budget-Ms": "70000"})
    first, second = (int(asked.headers["x-budget-ms"]) for asked in served.asked)
    assert first == 70
    assert second <= 5000


def test_who_does_not_want_it_tells_nothing(bench: Bench, served: Served) -> None:
    client = bench(headers=None)
    with seawall.budget(5.0):
        client.get(f"{served.url}/ok")
    assert "x-budget-ms" not in served.asked[0].headers


def test_a_connection_is_of_use_after_a_cut(bench: Bench, served: Served) -> None:
    client = bench()
    with seawall.budget(SHORT), pytest.raises(seawall.DeadlineExceededError):
        client.get(f"{served.url}/drip?ms=20")
    assert client.get(f"{served.url}/ok") == (200, b"xx")
    assert client.get(f"{served.url}/ok") == (200, b"xx")
    assert bench.quiet() == (0, 3)


# -- retries
@pytest.mark.parametrize("how", ["status=503", "how=reset"])
def test_what_failed_is_sent_again(bench: Bench, served: Served, how: str) -> None:
    client = bench(retry=bench.again(), breaker=CircuitBreaker(9))
    assert client.get(f"{served.url}/flaky?fail=2&{how}") == (200, b"xx")
    assert (len(served.asked), bench.quiet()) == (3, (0, 3))


def test_the_last_answer_is_the_callers(bench: Bench, served: Served) -> None:
    client = bench(retry=bench.again(), breaker=CircuitBreaker(9))
    assert client.get(f"{served.url}/status?is=503&bytes=7") == (503, b"eeeeeee")
    assert (len(served.asked), bench.quiet(), bench.state()) == (3, (0, 3), ("CLOSED", 3))


def test_an_answer_that_was_kept_is_whole_when_the_next_attempt_is_refused(bench: Bench, served: Served) -> None:
    client = bench(retry=bench.again(), breaker=CircuitBreaker(1))
    assert client.get(f"{served.url}/status?is=503&bytes=7") == (503, b"eeeeeee")
    assert (len(served.asked), bench.quiet(), bench.state()[0]) == (1, (0, 1), "OPEN")


def test_an_answer_too_long_to_keep_is_passed_on(bench: Bench, served: Served) -> None:
    client = bench(retry=bench.again(), breaker=CircuitBreaker(9))
    assert client.get(f"{served.url}/status?is=503&bytes=300000") == (503, b"e" * 300_000)
    assert (len(served.asked), bench.quiet()) == (1, (0, 1))


def test_a_post_is_not_sent_twice(bench: Bench, served: Served) -> None:
    client = bench(retry=bench.again(), breaker=CircuitBreaker(9))
    assert client.ask("POST", f"{served.url}/status?is=503", body=b"1").status == 503
    with pytest.raises(client.broken):
        client.ask("POST", f"{served.url}/reset", body=b"1")
    assert len(served.asked) == 2


def test_a_post_with_a_key_is(bench: Bench, served: Served) -> None:
    client = bench(retry=bench.again(), breaker=CircuitBreaker(9))
    got = client.ask("POST", f"{served.url}/flaky?fail=2", body=b"once", headers={"Idempotency-Key": "7"})
    assert (got.status, [asked.body for asked in served.asked]) == (200, [b"once"] * 3)


def test_a_client_may_say_that_all_of_its_requests_are(bench: Bench, served: Served) -> None:
    client = bench(retry=bench.again(), breaker=CircuitBreaker(9), idempotent=True)
    assert client.ask("POST", f"{served.url}/flaky?fail=2", body=b"once").status == 200


def test_a_body_that_cannot_be_replayed_is_not_sent_twice(bench: Bench, served: Served) -> None:
    client = bench(retry=bench.again(), breaker=CircuitBreaker(9))
    got = client.ask("PUT", f"{served.url}/status?is=503", body=iter([b"on", b"ce"]))
    assert (got.status, [asked.body for asked in served.asked]) == (503, [b"once"])


def test_what_never_left_is_sent_again_whatever_it_is(bench: Bench, served: Served) -> None:
    client = bench(retry=bench.again(), breaker=CircuitBreaker(9))
    with pytest.raises(client.unreached):
        client.ask("POST", "http://127.0.0.1:1/", body=b"1")
    assert bench.quiet() == (0, 3)


@pytest.mark.fault("F30")
def test_a_wait_that_does_not_fit_into_the_budget_is_not_begun(bench: Bench, served: Served) -> None:
    client, began = bench(retry=bench.again()), time.monotonic()
    with seawall.budget(5.0):
        got = client.get(f"{served.url}/status?is=429&retry_after=3600")
    assert (got.status, len(served.asked)) == (429, 1)
    assert took(began) < 5.0


def test_a_wish_of_the_target_is_waited_for(bench: Bench, served: Served) -> None:
    client = bench(retry=bench.again(), breaker=CircuitBreaker(9))
    began = time.monotonic()
    assert client.get(f"{served.url}/flaky?fail=1&retry_after=1").status == 200
    assert took(began) >= 1.0


def test_a_refusal_is_not_repeated(bench: Bench, served: Served) -> None:
    client = bench(retry=bench.again(), breaker=CircuitBreaker(1))
    client.ask("POST", f"{served.url}/status?is=500")
    with pytest.raises(seawall.CircuitOpenError):
        client.get(f"{served.url}/ok")
    assert (len(served.asked), bench.quiet()) == (1, (0, 1))


def test_attempts_come_out_of_the_budget(bench: Bench, served: Served) -> None:
    client, began = bench(retry=Retry(9, base_delay=0.001, retry_budget=None), timeout=Timeout(0.1)), time.monotonic()
    with seawall.budget(SHORT), pytest.raises((seawall.DeadlineExceededError, seawall.TimeoutExceededError)):
        client.get(f"{served.url}/hang")
    assert took(began) < SHORT + LATE
    assert 2 <= len(served.asked) <= 3


@pytest.mark.fault("F37")
def test_a_loop_around_it_for_the_same_target_repeats_alone(bench: Bench, served: Served) -> None:
    """Three attempts of three would be nine."""
    client = bench(retry=bench.again(), breaker=CircuitBreaker(99))
    outer = Retry(3, base_delay=0.001, retry_budget=None, name="CORE", on=[*client.broken, seawall.on_result(_failed)])
    assert outer.call(client.get, f"{served.url}/status?is=503").status == 503
    assert len(served.asked) == 3


def _failed(got: Any) -> bool:
    return bool(got.status == 503)


# -- what is not the target's doing
def test_a_full_pool_is_not_the_targets_failure(bench: Bench, served: Served) -> None:
    if bench.kind.full is None:
        pytest.skip("its pool has no limit of its own")
    client = bench(connections=1, retry=bench.again())
    stream = client.stream(f"{served.url}/drip?ms=5&parts=1000")
    with seawall.budget(SHORT), pytest.raises((*bench.kind.full, seawall.DeadlineExceededError)):
        client.get(f"{served.url}/ok")
    stream.close()
    assert (bench.state(), len(served.asked)) == (("CLOSED", 0), 1)
    assert bench.quiet() == (0, 2)


def test_a_redirect_is_a_call_of_its_own(bench: Bench, served: Served) -> None:
    client = bench()
    assert client.get(f"{served.url}/redirect?to=/ok", redirects=True) == (200, b"xx")
    assert client.get(f"{served.url}/redirect?to=/ok").status == 302
    assert (served.paths(), bench.quiet()) == (["/redirect", "/ok", "/redirect"], (0, 3))


def test_two_clients_of_one_name_share_a_circuit(bench: Bench, served: Served) -> None:
    one, other = bench(), bench()
    for _ in range(3):
        one.get(f"{served.url}/status?is=500")
    with pytest.raises(seawall.CircuitOpenError):
        other.get(f"{served.url}/ok")


def test_a_trial_closes_the_circuit_at_the_head_of_its_answer(bench: Bench, served: Served) -> None:
    client = bench(breaker=CircuitBreaker(1, reset_timeout=0.05))
    client.get(f"{served.url}/status?is=500")
    time.sleep(0.06)  # the reset timeout, on the real clock
    stream = client.stream(f"{served.url}/drip?ms=5&parts=1000")
    assert bench.state()[0] == "CLOSED"
    stream.close()


def test_an_error_can_be_pickled(bench: Bench, served: Served) -> None:
    client = bench()
    with seawall.budget(0.0), pytest.raises(seawall.NoBudgetError) as refusal:
        client.get(f"{served.url}/ok")
    again = pickle.loads(pickle.dumps(refusal.value))
    assert (type(again), str(again), again.target) == (type(refusal.value), str(refusal.value), "CORE")


def test_a_setting_that_cannot_work_is_said(kind: type[Subject]) -> None:
    with pytest.raises(seawall.ConfigError, match="total is in seconds"):
        kind(Wall(), total=-1)
    with pytest.raises(TypeError, match="target= takes a name"):
        kind(Wall(), target=5)
    with pytest.raises(TypeError, match=r"seawall\.Wall"):
        kind("CORE")  # type: ignore[arg-type]
