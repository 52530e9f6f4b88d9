"""What is measured against the partner is what its paths promise: two ends that share no line of code agree."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from seawall import Deadline
from seawall.faults.running import RunningServer, running_partner
from seawall.measure.call import call
from seawall.measure.course import fan_out, in_turn
from seawall.measure.probe import probe
from seawall.measure.repeat import ON, Attempts, Failing, to_retry
from seawall.measure.url import Url

LONG = 60.0  # s


@pytest.fixture(scope="module")
def partner() -> Iterator[RunningServer]:
    with running_partner() as server:
        yield server


@pytest.mark.req("BUDGET-3")
@pytest.mark.parametrize(("path", "phase", "status"), [
    ("/slow?ms=20", "done", 200),
    ("/slow?ms=60000", "read", None),
    ("/status/204", "done", 204),
    ("/status/302", "done", 302),
    ("/status/404", "done", 404),
    ("/status/503", "done", 503),
    ("/status/100", "done", 200),
    ("/status/101", "read", None),
    ("/drip?bytes=5&every_ms=20", "done", 200),
    ("/drip?bytes=1000&every_ms=20", "total", 200),
    ("/budget?ms=0", "done", 200),
    ("/_stats", "done", 200),
])
def test_each_path_ends_where_it_should(partner: RunningServer, path: str, phase: str, status: int | None) -> None:
    called = call(partner.url + path, connect=LONG, read=0.5, total=1.0)
    assert (called.phase, called.status) == (phase, status)


@pytest.mark.req("BUDGET-4")
def test_slow_calls_share_a_budget(partner: RunningServer) -> None:
    urls = [Url.parse(f"{partner.url}/slow?ms={ms}") for ms in (50, 60_000, 50)]
    deadline = Deadline.after(0.5)
    first, second, third = in_turn(urls, deadline, connect=LONG)
    assert [called.phase for called in (first, second, third)] == ["done", "read", "no_budget"]
    assert second.read_limit <= 0.5 - first.elapsed
    assert deadline.expired


@pytest.mark.req("BUDGET-7")
def test_the_partner_hears_the_budget_and_takes_it_as_its_own_limit(partner: RunningServer) -> None:
    """Work of 50 ms three times has room in the first two thirds of a budget, the next ends early and says so."""
    told = list(fan_out(Url.parse(partner.url).below("/budget?ms=50"), 3, Deadline.after(LONG), connect=LONG))
    assert [one.received for one in told] == [one.sent for one in told]
    assert all(one.called.status == 200 and one.called.elapsed >= 0.05 for one in told)
    [short] = fan_out(Url.parse(partner.url).below("/budget?ms=60000"), 1, Deadline.after(0.5), connect=LONG)
    assert short.sent <= 500
    assert short.called.phase in ("done", "read")  # it answers 10 ms before the end, which a loaded machine may miss
    if short.called.phase == "done":
        assert (short.called.status, short.received) == (504, short.sent)


@pytest.mark.req("BUDGET-6")
@pytest.mark.parametrize(("fails", "reason", "number"), [(0, "success", 1), (2, "success", 3), (9, "attempts", 4)])
def test_a_flaky_path_is_called_until_it_answers(partner: RunningServer, fails: int, reason: str, number: int) -> None:
    deadline = Deadline.after(LONG)
    url = Url.parse(f"{partner.url}/flaky?fail={fails}&key={reason}{fails}")
    attempts = Attempts(lambda: call(url, deadline=deadline), to_retry(4, 5), deadline, Failing.parse(ON))
    assert (len(list(attempts)), attempts.reason) == (number, reason)


@pytest.mark.req("BUDGET-6")
@pytest.mark.parametrize(("asked", "reason"), [("600", "pushback"), ("40", "budget")])
def test_a_pause_that_the_partner_asks_for_is_heard(partner: RunningServer, asked: str, reason: str) -> None:
    deadline = Deadline.after(20)
    url = Url.parse(f"{partner.url}/status/429?retry_after={asked}")
    attempts = Attempts(lambda: call(url, deadline=deadline), to_retry(4, 5), deadline, Failing.parse(ON))
    [only] = attempts
    assert (only.asked, attempts.reason) == (float(asked), reason)


@pytest.mark.req("BUDGET-2")
def test_the_partner_sleeps_for_a_probe(partner: RunningServer) -> None:
    *_, reading = probe(connect=0.2, read=0.2, partner=Url.parse(partner.url))
    assert reading.shown
    assert reading.called.elapsed >= 0.2
