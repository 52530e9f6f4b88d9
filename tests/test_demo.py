"""The demo: its verdict, its whole run, and that nothing of it is left when it is interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from seawall.demo.show import Done, report, verdict
from seawall.demo.traffic import Tally


def phase(name: str, codes: dict[str, int], seconds: float) -> Done:
    tallies = {target: Tally() for target in ("CORE", "CLAIM")}
    tallies["CLAIM"].codes.update(codes)
    tallies["CLAIM"].seconds.extend([seconds] * 20)
    return Done(name, tallies)


@pytest.mark.parametrize(
    ("codes", "seconds", "faults"),
    [
        ({"0000": 9, "B201": 1}, 0.001, 0),
        ({"0000": 9}, 0.050, 0),  # calm + 50 ms is allowed: three times next to nothing is next to nothing
        ({"0000": 9}, 0.060, 1),
        ({"0000": 9, "E905": 1}, 0.001, 1),
        ({"0000": 9, "no answer": 1}, 0.080, 2),
    ],
)
def test_the_verdict_sees_codes_and_slowness_of_the_healthy_target(
    codes: dict[str, int], seconds: float, faults: int
) -> None:
    assert len(verdict([phase("calm", {"0000": 9}, 0.001), phase("CORE fails", codes, seconds)])) == faults


def test_the_report_names_every_phase_and_line() -> None:
    said: list[str] = []
    phases = [phase("calm", {"0000": 9}, 0.001), phase("CORE fails", {"0000": 8}, 0.002)]
    report(phases, "a|CORE|CLOSED->OPEN\n", said.append)
    text = "\n".join(said)
    for piece in ("CORE fails", "0000 8", "2.0 ms", "2.0 x", "a|CORE|CLOSED->OPEN"):
        assert piece in text


def children_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in children.read_text().split()] if children.exists() else []


def start() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "seawall", "demo"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip


@pytest.mark.parametrize("moment", [0.3, 2.5, 5.0])
def test_an_interrupt_at_any_moment_leaves_no_process(moment: float) -> None:
    with start() as demo:
        time.sleep(moment)  # what is waited for is the demo's own start, of which nothing can be seen from outside
        children = children_of(demo.pid)
        os.kill(demo.pid, signal.SIGINT)
        said, _ = demo.communicate(timeout=30)
    assert demo.returncode == 130, said
    assert "Traceback" not in said
    assert [pid for pid in children if Path(f"/proc/{pid}").exists()] == []


@pytest.mark.req("HUB-3", "HUB-4", "HUB-5", "HUB-6")
def test_the_whole_demo_shows_one_target_dying_and_the_other_unharmed() -> None:
    with start() as demo:
        said, _ = demo.communicate(timeout=120)
    assert demo.returncode == 0, said
    for piece in ("E500", "E902", "E904", "E905", "|CORE|CLOSED->OPEN", "|CORE|HALF_OPEN->CLOSED"):
        assert piece in said
    assert "|CLAIM|" not in said
