"""Workers are counted by Little's law, and a pool that is large enough at the total is not at half a minute."""

from __future__ import annotations

from collections import deque

import pytest

from seawall.budgetplan.places import Places
from seawall.budgetplan.probed import probe_of
from seawall.budgetplan.read import Source
from seawall.budgetplan.workers import Pool, limits, long_ms, near, workers
from tests.budgetplan.plans import GOOD, changed
from tests.budgetplan.reports import PROBE, plan_of

pytestmark = pytest.mark.req("BUDGET-9")


def test_workers_are_rate_times_limit() -> None:
    assert (workers(10, 3000), workers(50, 3000), workers(50, 30_000)) == (30, 150, 1500)


@pytest.mark.parametrize(("value", "told"), [
    (0, "0"), (0.0004, "0"), (0.004, "0.004"), (3.006, "3.01"), (15.03, "15"), (99.96, "100"), (142.5, "143"),
    (150.0, "150"),
])  # fmt: skip
def test_a_count_is_told_with_three_digits_or_as_a_whole(value: float, told: str) -> None:
    assert near(value) == told


def test_limits_stand_from_the_shortest_to_the_longest() -> None:
    found = limits(probe_of(Source("p", PROBE, Places())), plan_of(GOOD))
    assert [(limit.key, limit.ms) for limit in found] == [
        ("refused", 0.4), ("connect_timeout", 300.6), ("read_timeout", 1001.3), ("largest", 1200), ("worst", 2850),
        ("total", 3000), ("half_a_minute", 30_000)]


def test_a_long_total_is_compared_with_ten_of_it() -> None:
    assert long_ms(plan_of(changed(total_ms=10_000))) == 30_000
    plan = plan_of(changed(total_ms=10_001))
    assert long_ms(plan) == 100_010
    assert limits(probe_of(Source("p", PROBE, Places())), plan)[-1].key == "ten_totals"


@pytest.mark.parametrize(("total", "rate"), [(3000, 50), (3000, 10), (2850, 7)])
def test_the_pool_fills_up_and_strands_as_many_as_a_simulation_says(total: int, rate: int) -> None:
    """One request after the other; each that finds a worker keeps it for the long limit."""
    plan = plan_of(changed(total_ms=total))
    pool = Pool.of(plan, rate)
    busy: deque[float] = deque()
    stranded, arrivals = 0, 0
    while True:
        now = arrivals / rate * 1000
        if len(busy) < pool.workers:
            busy.append(now + long_ms(plan))
        elif now >= busy[0] - 1e-6:
            break
        else:
            stranded += 1
        arrivals += 1
    assert stranded == pytest.approx(pool.stranded, abs=1)
    assert pool.workers >= workers(rate, total) > pool.workers - 1
