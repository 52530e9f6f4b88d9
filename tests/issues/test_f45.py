"""F45: an open circuit turns the health check red, and the orchestrator kills the service. Here liveness never depends
on targets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adminport import admin_port, ask, targets
from tests.aio import run_async


@pytest.mark.fault("F45")
def test_with_every_circuit_open_the_hub_is_alive_and_ready(tmp_path: Path) -> None:
    """Ready as well: a hub that was taken out for a dead target could not serve the others."""

    async def test() -> None:
        async with admin_port(tmp_path, targets(3), health_path="/healthz") as (hub, door):
            for backend in hub.backends.values():
                for _ in range(backend.settings.fail_threshold):
                    backend.breaker.record_failure("E901")
                assert backend.breaker.state == "OPEN"
            assert (await ask(door, "/livez")).status == 200
            assert (await ask(door, "/readyz")).status == 200

    run_async(test())


@pytest.mark.fault("F45")
def test_a_full_target_and_a_line_before_it_do_not_make_the_hub_unwell(tmp_path: Path) -> None:
    async def test() -> None:
        async with admin_port(tmp_path, targets(1, max_inflight=1)) as (hub, door):
            bulkhead = hub.backends["T0"].bulkhead
            assert bulkhead.try_acquire()
            assert not bulkhead.try_acquire()
            assert (await ask(door, "/livez")).status == 200
            assert (await ask(door, "/readyz")).status == 200
            bulkhead.release()

    run_async(test())
