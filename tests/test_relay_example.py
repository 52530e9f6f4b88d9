"""The hand-made hub on the library alone keeps the promises of HUB-3, HUB-4 and HUB-6."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seawall.faults.running import RunningTarget, running_target

RELAY = Path(__file__).parent.parent / "examples" / "relay" / "relay.py"


class Hub:
    """The example as a process of its own."""

    def __init__(self, port: int, log: Path) -> None:
        self.port, self.log = port, log

    def tx(self, target: str, **more: object) -> tuple[int, dict[str, Any], str | None]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("POST", "/tx", json.dumps({"target": target, **more}))
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read()), answer.getheader("Retry-After")
        finally:
            connection.close()


@pytest.fixture
def targets() -> Iterator[tuple[RunningTarget, RunningTarget]]:
    with running_target("CORE") as core, running_target("CLAIM") as claim:
        yield core, claim


@pytest.fixture
def hub(targets: tuple[RunningTarget, RunningTarget], tmp_path: Path) -> Iterator[Hub]:
    log = tmp_path / "breaker.log"
    flags = ["--port=0", "--fail-threshold=3", "--reset-timeout=30", "--max-inflight=2", f"--breaker-log={log}"]
    for name, target in zip(("CORE", "CLAIM"), targets, strict=True):
        flags += ["--target", f"{name}={target.url}"]
    with subprocess.Popen([sys.executable, str(RELAY), *flags], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield Hub(int(line.rsplit(":", 1)[1]), log)
        process.terminate()
        assert process.wait(10) == 0


@pytest.mark.req("HUB-3", "HUB-6", "HUB-7", "TRACE-4")
def test_a_failing_target_is_called_no_more_and_the_other_goes_on(
    hub: Hub, targets: tuple[RunningTarget, RunningTarget]
) -> None:
    core, _ = targets
    assert hub.tx("CORE", amount=10)[1]["code"] == "0000"
    assert hub.tx("CORE", amount=5000)[1]["code"] == "B201"
    core.ctl(mode="fail")
    assert [hub.tx("CORE")[1]["code"] for _ in range(4)] == ["E500", "E500", "E500", "E904"]
    status, answer, retry_after = hub.tx("CORE")
    assert (status, answer["code"]) == (503, "E904")
    assert retry_after is not None
    assert 1 <= int(retry_after) <= 30
    assert hub.tx("CLAIM", amount=1)[0] == 200
    assert core.stats()["calls"] == 5
    assert [line.split("|")[1:] for line in hub.log.read_text().splitlines()] == [["CORE", "CLOSED->OPEN"]]


@pytest.mark.req("HUB-4")
def test_what_is_over_the_limit_is_refused_at_once(hub: Hub, targets: tuple[RunningTarget, RunningTarget]) -> None:
    core, _ = targets
    core.ctl(mode="slow", delay_ms=1000)
    codes: Counter[str] = Counter()
    threads = [threading.Thread(target=lambda: codes.update([hub.tx("CORE", amount=1)[1]["code"]])) for _ in range(2)]
    for thread in threads:
        thread.start()
    core.wait_for(in_flight=2)
    assert hub.tx("CORE", amount=1)[1]["code"] == "E905"
    for thread in threads:
        thread.join(20)
    assert codes == {"0000": 2}
    assert core.stats()["max_inflight"] == 2


def test_what_is_not_understood_is_said(hub: Hub) -> None:
    assert hub.tx("NOBODY")[1]["code"] == "E404"
    connection = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=20)
    connection.request("POST", "/tx", "no json")
    assert connection.getresponse().status == 400
    connection.close()
