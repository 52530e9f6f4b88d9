"""F54: a request with 100 ms of budget behind one with 3,000 ms was cut 3 s late: all stood in one queue of timers."""

from __future__ import annotations

import pytest

from seawall.faults.running import running_target
from tests.hub.bed import LOOPS, Caller, hub_bed

TX = b'{"target": "CORE"}'


def ask_for(caller: Caller, door: str, budget: str) -> None:
    method, path = door.split(" ")
    caller.begin(method, path, TX if method == "POST" else None, {"X-Budget-Ms": budget})


@pytest.mark.fault("F54")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("door", ["POST /tx", "GET /CORE/x"])
def test_the_short_budget_ends_first_whatever_stands_before_it(door: str, loop: str) -> None:
    """Many long ones before it, and one behind: the short one is answered while they all still run."""
    with running_target() as core, hub_bed(f"CORE={core.url},read=20,max-inflight=50", loop=loop, budget_ms="20000") as bed:
        core.ctl(mode="hang")
        callers = [Caller(bed.port) for _ in range(22)]
        for number, caller in enumerate(callers):
            ask_for(caller, door, "100" if number == 20 else "15000")
        answer = callers[20].answer()
        assert (answer.code, "100 ms" in answer.json()["detail"]) == ("E906", True)
        assert bed.codes() == {"E906": 1}
        assert bed.in_flight() >= 20
        for caller in callers:
            caller.close()


@pytest.mark.fault("F54")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("door", ["POST /tx", "GET /CORE/x"])
def test_a_short_budget_on_a_connection_that_just_had_a_long_one(door: str, loop: str) -> None:
    """The connection stands on the wheel for the later moment, and must move; by its own measure the hub cut it in time."""
    with running_target() as core, hub_bed(f"CORE={core.url},read=20", loop=loop, budget_ms="20000") as bed:
        with Caller(bed.port) as caller:
            for mode, budget, status in (("normal", "15000", 200), ("hang", "100", 504), ("normal", "15000", 200)):
                core.ctl(mode=mode)
                ask_for(caller, door, budget)
                assert caller.answer().status == status
        longest = bed.run(lambda hub: hub.backends["CORE"].latency.quantile(1.0))
        assert 0.09 < longest < 5.0
