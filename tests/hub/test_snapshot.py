"""The snapshot shows each target as it is, and looking at it changes nothing."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import seawall
from seawall.faults.running import running_target
from seawall.hub.backend import Backend
from seawall.hub.server import Hub
from seawall.hub.settings import TargetSettings
from seawall.hub.snapshot import SCHEMA, json_pieces, snapshot
from tests.adminport import Answer, Asker, admin_port, ask, targets
from tests.aio import run_async

MOVING = ("time", "uptime_s", "retry_after_ms")


def still(value: Any) -> Any:
    """Without what the mere passing of time changes."""
    if isinstance(value, dict):
        return {key: still(member) for key, member in value.items() if key not in MOVING}
    return value


def open_circuit(backend: Backend) -> None:
    for _ in range(backend.settings.fail_threshold):
        assert backend.breaker.allow()
        backend.breaker.record_failure("E500")
        backend.count("E500", 0.25)
    assert not backend.breaker.allow()


async def relay(hub: Hub, body: dict[str, Any]) -> Answer:
    host, _, port = hub.listeners[0].name.rpartition(":")
    one = Asker(*await asyncio.open_connection(host, int(port)))
    try:
        text = json.dumps(body)
        one.send(f"POST /tx HTTP/1.1\r\nHost: hub\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
        return await one.answer()
    finally:
        await one.close()


def test_an_untouched_hub_is_shown_with_its_limits_and_noughts(tmp_path: Path) -> None:
    known = TargetSettings(
        name="CORE", host="127.0.0.1", port=9201, path="/v2", connect=0.3, read=2.0, budget_ms=1500, min_ms=20,
        body_gap=30.0, fail_threshold=3, reset_timeout=0.25, max_inflight=7, max_queue=4,
    )  # fmt: skip

    async def test() -> None:
        before = time.time()
        async with admin_port(tmp_path, [known], max_connections=100) as (hub, _):
            seen = snapshot(hub)
            assert seen["schema"] == SCHEMA == "seawall.snapshot/1"
            when = datetime.fromisoformat(seen["time"])
            assert when.tzinfo is not None
            assert before - 1 <= when.timestamp() <= time.time() + 1
            assert seen["hub"].pop("uptime_s") >= 0
            assert seen["hub"].pop("tasks") >= 1
            lines = {"written": 0, "dropped": 0, "failed": 0}
            assert seen["hub"] == {
                "version": seawall.__version__, "ready": True, "draining": False, "clients": 0, "idle_clients": 0,
                "max_connections": 100, "bad_budgets": 0, "ignored_budgets": 0, "refused": {}, "breaker_log": lines,
                "access_log": None,
            }  # fmt: skip
            assert seen["targets"] == {"CORE": {
                "url": "http://127.0.0.1:9201/v2", "state": "CLOSED", "mode": "ENFORCE", "mode_reason": "",
                "reason": "", "failures": 0, "retry_after_ms": 0, "trial_due": False, "opened": 0, "started": 0,
                "rejected": 0, "in_flight": 0, "waiting": 0, "max_inflight": 7, "max_queue": 4, "peak_inflight": 0,
                "completed": 0, "no_room": 0, "retry": None,
                "limits": {"connect_ms": 300, "read_ms": 2000, "budget_ms": 1500, "min_ms": 20, "body_gap_ms": 30000,
                           "fail_threshold": 3, "reset_timeout_ms": 250},
                "codes": {}, "latency_ms": {"count": 0, "mean": 0, "p50": 0, "p95": 0, "p99": 0},
                "connections": {"open": 0, "idle": 0},
            }}  # fmt: skip

    run_async(test())


def test_a_circuit_that_opened_says_why_and_when_to_come_back_and_the_other_is_as_it_was(tmp_path: Path) -> None:
    async def test() -> None:
        async with admin_port(tmp_path, targets(2)) as (hub, _):
            open_circuit(hub.backends["T0"])
            seen = snapshot(hub)["targets"]
            core = seen["T0"]
            counted = [core[key] for key in ("state", "failures", "opened", "started", "rejected")]
            assert counted == ["OPEN", 5, 1, 5, 1]
            assert core["reason"] == "5 failures in a row, last E500"
            assert 0 < core["retry_after_ms"] <= 10_000
            assert (core["trial_due"], core["codes"]) == (False, {"E500": 5})
            assert core["latency_ms"]["count"] == 5
            assert core["latency_ms"]["mean"] == 250
            for quantile in ("p50", "p95", "p99"):
                assert core["latency_ms"][quantile] == pytest.approx(250, rel=1 / 32)
            assert (seen["T1"]["state"], seen["T1"]["started"], seen["T1"]["codes"]) == ("CLOSED", 0, {})

    run_async(test())


def test_a_trial_that_is_due_is_shown_and_not_taken(tmp_path: Path) -> None:
    async def test() -> None:
        async with admin_port(tmp_path, targets(1, reset_timeout=0.001)) as (hub, _):
            for _ in range(5):
                hub.backends["T0"].breaker.record_failure("E500")
            while not snapshot(hub)["targets"]["T0"]["trial_due"]:
                await asyncio.sleep(0.001)
            assert snapshot(hub)["targets"]["T0"]["state"] == "OPEN"
            assert hub.backends["T0"].breaker.allow()
            assert snapshot(hub)["targets"]["T0"]["state"] == "HALF_OPEN"

    run_async(test())


def test_a_circuit_forced_open_without_end_has_no_time_to_come_back(tmp_path: Path) -> None:
    async def test() -> None:
        async with admin_port(tmp_path) as (hub, _):
            hub.backends["T0"].breaker.set_mode("FORCED_OPEN", "moving house")
            core = snapshot(hub)["targets"]["T0"]
            assert (core["mode"], core["mode_reason"], core["retry_after_ms"]) == ("FORCED_OPEN", "moving house", None)
            json.dumps(core, allow_nan=False)

    run_async(test())


@pytest.mark.fault("F47")
def test_looking_changes_nothing(tmp_path: Path) -> None:
    """Neither for who looks again, nor for the circuit: the threshold of 5 is reached by the fifth failure still."""

    async def test() -> None:
        async with admin_port(tmp_path, targets(3)) as (hub, door):
            open_circuit(hub.backends["T1"])
            core = hub.backends["T0"]
            hub.count_refused("E404")
            while not hub.breaker_log.written:
                await asyncio.sleep(0.001)  # the line of T1 is written by a thread of its own
            for number in range(1, 5):
                assert core.breaker.allow()
                core.breaker.record_failure("E901")
                core.count("E901", 0.3)
                seen = snapshot(hub)
                assert still(snapshot(hub)) == still(seen)
                assert seen["targets"]["T0"]["failures"] == seen["targets"]["T0"]["started"] == number
                pages = [(await ask(door, path)).body for path in ("/metrics", "/metrics")]
                assert pages[0] == pages[1]
            assert core.breaker.state == "CLOSED"
            core.breaker.record_failure("E901")
            assert snapshot(hub)["targets"]["T0"]["state"] == "OPEN"

    run_async(test())


def test_the_page_is_the_snapshot_piece_by_piece(tmp_path: Path) -> None:
    async def test() -> None:
        async with admin_port(tmp_path, targets(3)) as (hub, door):
            open_circuit(hub.backends["T1"])
            assert still(json.loads(b"".join(json_pieces(hub)))) == still(snapshot(hub))
            answer = await ask(door, "/api/v1/snapshot")
            assert answer.headers["content-type"] == "application/json"
            assert list(answer.json()["targets"]) == ["T0", "T1", "T2"]

    run_async(test())


@pytest.mark.req("HUB-5")
def test_what_was_relayed_is_what_is_shown(tmp_path: Path) -> None:
    """Three good calls, one business refusal, two system errors that open the circuit, and one call refused."""

    async def test() -> None:
        with running_target("CORE") as core, running_target("CLAIM") as claim:
            known = [
                TargetSettings(name=target.name, host="127.0.0.1", port=target.port, fail_threshold=2)
                for target in (core, claim)
            ]
            async with AsyncExitStack() as stack:
                hub, door = await stack.enter_async_context(admin_port(tmp_path, known))
                for amount in (1, 2, 3, 1_000_000):
                    assert (await relay(hub, {"target": "CORE", "amount": amount})).status == 200
                core.ctl(mode="fail")
                answers = [(await relay(hub, {"target": "CORE"})).json()["code"] for _ in range(3)]
                assert answers == ["E500", "E500", "E904"]
                assert (await relay(hub, {"target": "CLAIM"})).json()["code"] == "0000"
                await relay(hub, {"target": "NOWHERE"})
                seen = (await ask(door, "/api/v1/snapshot")).json()
            shown = seen["targets"]["CORE"]
            assert shown["codes"] == {"0000": 3, "B201": 1, "E500": 2, "E904": 1}
            assert (shown["state"], shown["failures"], shown["opened"]) == ("OPEN", 2, 1)
            assert (shown["started"], shown["completed"], shown["rejected"], shown["in_flight"]) == (6, 6, 1, 0)
            assert (shown["peak_inflight"], shown["latency_ms"]["count"]) == (1, 7)
            assert shown["connections"]["open"] >= shown["connections"]["idle"]
            other = seen["targets"]["CLAIM"]
            assert (other["state"], other["codes"], other["completed"]) == ("CLOSED", {"0000": 1}, 1)
            assert seen["hub"]["refused"] == {"E404": 1}

    run_async(test())
