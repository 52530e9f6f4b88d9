"""The metrics page is valid, and says what the snapshot says."""

from __future__ import annotations

from pathlib import Path

import pytest

import seawall
from seawall.hub.metrics import BUCKETS, FAMILIES, label, metric_pieces
from seawall.hub.server import Hub
from seawall.hub.snapshot import snapshot
from tests import exposition
from tests.adminport import admin_port, ask, targets
from tests.aio import run_async
from tests.exposition import Samples, value


def page(hub: Hub) -> Samples:
    return exposition.read(b"".join(metric_pieces(hub)))


def test_the_page_is_valid_and_says_what_it_is(tmp_path: Path) -> None:
    async def test() -> None:
        async with admin_port(tmp_path, targets(3, retry=2)) as (hub, door):
            hub.backends["T1"].count("0000", 0.004)
            hub.count_refused("E404")
            answer = await ask(door, "/metrics")
            assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
            samples = exposition.read(answer.body)
            families = {name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") for name, _ in samples}
            assert families == set(FAMILIES)
            assert value(samples, "seawall_hub_info", version=seawall.__version__) == 1
            assert value(samples, "seawall_hub_ready") == 1

    run_async(test())


def test_the_numbers_are_those_of_the_snapshot(tmp_path: Path) -> None:
    async def test() -> None:
        async with admin_port(tmp_path, targets(2, max_inflight=3, max_queue=2)) as (hub, _):
            core = hub.backends["T0"]
            for code, times in (("0000", 3), ("B201", 1), ("E500", 5)):
                for _ in range(times):
                    assert core.breaker.allow()
                    core.count(code, 0.01)
                    core.breaker.record_failure(code) if code == "E500" else core.breaker.record_success()
            assert not core.breaker.allow()
            assert core.bulkhead.try_acquire()
            shown, samples = snapshot(hub)["targets"]["T0"], page(hub)
            core.bulkhead.release()
            for code, count in shown["codes"].items():
                assert value(samples, "seawall_calls_total", target="T0", code=code) == count
            for name, member in (
                ("breaker_started_total", "started"), ("breaker_opened_total", "opened"),
                ("breaker_failures", "failures"), ("bulkhead_in_flight", "in_flight"),
                ("bulkhead_limit", "max_inflight"), ("bulkhead_peak_in_flight", "peak_inflight"),
                ("queue_depth", "waiting"), ("queue_limit", "max_queue"),
            ):  # fmt: skip
                assert value(samples, f"seawall_{name}", target="T0") == shown[member], name
            assert (shown["started"], shown["in_flight"], shown["opened"]) == (9, 1, 1)
            assert value(samples, "seawall_rejections_total", target="T0", reason="open") == shown["rejected"] == 1
            assert value(samples, "seawall_rejections_total", target="T0", reason="bulkhead") == 0
            assert value(samples, "seawall_call_duration_seconds_count", target="T0") == 9
            assert value(samples, "seawall_call_duration_seconds_sum", target="T0") == pytest.approx(0.09)
            assert value(samples, "seawall_call_duration_seconds_count", target="T1") == 0

    run_async(test())


@pytest.mark.parametrize(("mode", "opened", "state"), [
    ("ENFORCE", False, "closed"), ("ENFORCE", True, "open"), ("OBSERVE", True, "open"), ("DISABLED", False, "disabled"),
    ("FORCED_OPEN", False, "forced_open"), ("FORCED_CLOSED", True, "forced_closed"),
])  # fmt: skip
def test_exactly_one_state_is_1(tmp_path: Path, mode: str, opened: bool, state: str) -> None:
    async def test() -> None:
        async with admin_port(tmp_path) as (hub, _):
            breaker = hub.backends["T0"].breaker
            for _ in range(5 * opened):
                breaker.record_failure()
            breaker.set_mode(mode)
            samples = page(hub)
            states = {dict(labels)["state"]: number for (name, labels), number in samples.items()
                      if name == "seawall_breaker_state"}  # fmt: skip
            assert states == {**dict.fromkeys(states, 0), state: 1}
            assert len(states) == 6

    run_async(test())


def test_a_latency_is_in_every_bucket_from_its_own_on(tmp_path: Path) -> None:
    async def test() -> None:
        async with admin_port(tmp_path) as (hub, _):
            for seconds in (0.0, 0.0009, 0.02, 0.6, 40.0, 4000.0):
                hub.backends["T0"].count("0000", seconds)
            samples = page(hub)
            counts = {dict(labels)["le"]: number for (name, labels), number in samples.items()
                      if name.endswith("_bucket")}  # fmt: skip
            assert [float(bound) for bound in counts] == list(BUCKETS)
            assert counts.items() >= {"0.001": 2, "0.025": 3, "0.75": 4, "60": 5, "+Inf": 6}.items()

    run_async(test())


@pytest.mark.parametrize("text", [
    '"', "\\", "\n", 'a"b\\n\\"', "\u0085\u2028\r\tü", "}", "{x=\"1\"} 5\nseawall_forged 1",
])  # fmt: skip
def test_a_code_made_up_by_a_target_stays_one_label(tmp_path: Path, text: str) -> None:
    async def test() -> None:
        async with admin_port(tmp_path) as (hub, _):
            hub.backends["T0"].count(text, 0.1)
            samples = page(hub)
            assert value(samples, "seawall_calls_total", target="T0", code=text) == 1
            assert not any("forged" in name for name, _ in samples)

    run_async(test())


def test_what_has_a_meaning_of_its_own_in_a_label_is_escaped() -> None:
    assert label("code", 'a"b\\c\nd') == 'code="a\\"b\\\\c\\nd"'


def test_lost_lines_of_a_log_are_counted(tmp_path: Path) -> None:
    async def test() -> None:
        async with admin_port(tmp_path, access_log=str(tmp_path / "access.log")) as (hub, _):
            assert hub.access_log is not None
            hub.breaker_log.dropped, hub.access_log.failed = 3, 2
            samples = page(hub)
            assert value(samples, "seawall_log_lines_dropped_total", log="breaker") == 3
            assert value(samples, "seawall_log_lines_failed_total", log="access") == 2
            assert value(samples, "seawall_log_lines_written_total", log="access") == 0

    run_async(test())


@pytest.mark.parametrize("broken", [
    b"x 1\n",
    b"# HELP x y\n# TYPE x gauge\nx 1",
    b"# TYPE x gauge\nx 1\n",
    b"# HELP x y\n# TYPE x gauge\nx 1\nx 1\n",
    b"# HELP x y\n# TYPE x gauge\nx{a=\"1\" 1\n",
    b"# HELP x y\n# TYPE x gauge\nx{a=\"\\q\"} 1\n",
    b"# HELP x y\n# TYPE x gauge\n",
    b"# HELP x y\n# TYPE x counter\nx 1\n",
    b"# HELP x_total y\n# TYPE x_total counter\nx_total -1\n",
    b"# HELP x y\n# TYPE x histogram\nx_bucket{le=\"1\"} 2\nx_bucket{le=\"+Inf\"} 1\nx_sum 1\nx_count 1\n",
    b"# HELP x y\n# TYPE x histogram\nx_bucket{le=\"1\"} 1\nx_bucket{le=\"+Inf\"} 1\nx_sum 1\nx_count 2\n",
    b"# HELP x y\n# TYPE x histogram\nx_bucket{le=\"1\"} 1\nx_sum 1\nx_count 1\n",
])  # fmt: skip
def test_a_broken_page_is_found(broken: bytes) -> None:
    with pytest.raises(AssertionError):
        exposition.read(broken)
