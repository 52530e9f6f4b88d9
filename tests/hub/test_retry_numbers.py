"""Retries in the settings, on the line at start, in the snapshot and on the metrics page."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.errors import ConfigError
from seawall.hub.metrics import metric_pieces
from seawall.hub.server import Hub
from seawall.hub.settings import arithmetic, parse_target
from seawall.hub.snapshot import snapshot
from seawall.plan import Reason
from tests.exposition import Samples, read
from tests.hub.attempts import in_turn
from tests.hub.bed import ask, hub_bed, raw_server, response

URL = "CORE=http://127.0.0.1:9201"
OK, FAIL = response(200, b"{}"), response(500, b"{}")


def page(hub: Hub) -> Samples:
    return read(b"".join(metric_pieces(hub)))


def values(samples: Samples, name: str) -> dict[str, float]:
    """A metric's values by the label that is not the target."""
    found = {labels: value for (known, labels), value in samples.items() if known == name}
    return {",".join(text for key, text in labels if key != "target"): value for labels, value in found.items()}


def test_each_attempt_and_the_reason_for_the_last_are_counted() -> None:
    with raw_server(in_turn(FAIL, OK, FAIL, FAIL, FAIL)) as server:
        with hub_bed(f"CORE={server.url},retry=2,retry-base-ms=1") as bed:
            assert [ask(bed.port, "GET", "/CORE/x").status for _ in range(2)] == [200, 500]
            assert ask(bed.port, "POST", "/CORE/x", b"").status == 500
            seen = bed.run(page)
            assert values(seen, "seawall_breaker_started_total") == {"": 5}
            assert values(seen, "seawall_retries_total") == {"": 2}
            ended = {"success": 1, "attempts": 1, "not_idempotent": 1}
            assert values(seen, "seawall_retry_stopped_total") == {reason.value: 0 for reason in Reason} | ended
            assert values(seen, "seawall_calls_total") == {"0000": 1, "E500": 2}
            assert bed.run(lambda hub: hub.backends["CORE"].retry.calls) == 3  # type: ignore[union-attr]
            retry: dict[str, Any] = bed.run(snapshot)["targets"]["CORE"]["retry"]
            assert 90 < retry.pop("retry_budget_left") <= 100
            stopped = {"success": 1, "attempts": 1, "not_idempotent": 1}
            assert retry == {"max_attempts": 2, "retries": 2, "stopped": stopped}


def test_a_target_without_retries_shows_none() -> None:
    with hub_bed(URL) as bed:
        assert not [name for name, _ in bed.run(page) if "retr" in name]
        assert bed.run(snapshot)["targets"]["CORE"]["retry"] is None


def test_the_line_at_start_says_how_many_attempts_there_may_be() -> None:
    line = arithmetic(parse_target(f"{URL},retry=3"))
    assert line.endswith("; up to 3 attempts where a request may be sent again")
    assert "waits at most 3 s for the first byte (3 times connect 0.3 + read 2, and waits), budget 3 s" in line
    assert "attempts" not in arithmetic(parse_target(URL))


@pytest.mark.parametrize(("settings", "says"), [
    ("retry=0", "retry: is a whole number from 1"), ("retry=101", "to 100"), ("retry-base-ms=x", "write milliseconds"),
    ("retry-base-ms=500,retry-max-delay-ms=100", "retry_max_delay_ms: 100 ms is shorter than retry_base_ms, 500 ms"),
    ("idempotent=maybe", "idempotent: is yes or no"), ("retries=3", "did you mean retry?"),
])  # fmt: skip
def test_what_cannot_work_is_refused(settings: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse_target(f"{URL},{settings}")
