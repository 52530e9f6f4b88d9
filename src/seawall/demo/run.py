"""The demo from beginning to end."""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from .show import Done, Screen, report, verdict
from .stage import Stage
from .traffic import Pace, Tally

__all__ = ["run"]

RATE = 50.0  # transactions a second to each target
HUB = [
    "--fail-threshold=5", "--reset-timeout=2", "--max-inflight=10", "--read=1", "--connect=0.3", "--budget-ms=3000",
]  # fmt: skip


class Act(NamedTuple):
    """One phase: how long, and what CORE is told."""

    name: str
    seconds: float
    core: dict[str, object]


ACTS = (
    Act("calm", 5.0, {"mode": "normal"}),
    Act("CORE fails", 6.0, {"mode": "fail"}),
    Act("CORE well", 4.0, {"mode": "normal"}),
    Act("CORE hangs", 7.0, {"mode": "slow", "delay_ms": 5000}),
    Act("CORE well again", 5.0, {"mode": "normal"}),
)
EXPECTED = ("E500", "E902", "E904", "E905")


def run(say: Callable[[str], None] | None = None) -> int:
    """Show it; the exit code: 0 if CLAIM's callers noticed nothing, else 1.

    Raises:
        StageError: A process did not come up.
    """
    screen = Screen(sys.stdout, live=sys.stdout.isatty() and say is None)
    tell = say or screen.say
    with tempfile.TemporaryDirectory(prefix="seawall-demo-") as folder, Stage(Path(folder), HUB) as stage:
        ports = stage.ports
        tell(f"two targets, CORE on {ports['CORE']} and CLAIM on {ports['CLAIM']}, behind a hub on {ports['hub']}")
        tell(f"{RATE:g} transactions a second to each; the hub: {' '.join(HUB)}")
        # A Ctrl-C while the loop is made would leave it to nobody, and print a traceback when it is collected.
        held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        with asyncio.Runner() as runner:
            runner.get_loop()
            signal.pthread_sigmask(signal.SIG_SETMASK, held)
            phases = runner.run(_play(stage, screen))
        report(phases, stage.breaker_log.read_text(), tell)
    faults = verdict(phases)
    seen = set().union(*(phase.tallies["CORE"].codes for phase in phases))
    faults += [f"CORE's callers never got {code}, so this run proves nothing" for code in EXPECTED if code not in seen]
    tell("")
    for fault in faults:
        tell(f"NOT WELL  {fault}")
    if not faults:
        tell("CORE died twice, and CLAIM's callers noticed nothing.")
    return 1 if faults else 0


async def _play(stage: Stage, screen: Screen) -> list[Done]:
    began = time.monotonic()
    paces = {name: Pace(name, stage.ports["hub"], RATE) for name in ("CORE", "CLAIM")}
    running = [asyncio.ensure_future(pace.run()) for pace in paces.values()]
    phases = []
    try:
        for act in ACTS:
            await asyncio.to_thread(stage.control, "CORE", **act.core)
            for pace in paces.values():
                pace.tally = Tally()
            tallies = {name: pace.tally for name, pace in paces.items()}
            phases.append(Done(act.name, tallies))
            end = time.monotonic() + act.seconds
            while time.monotonic() < end:
                states = await asyncio.to_thread(stage.states)
                screen.update(time.monotonic() - began, act.name, states, tallies)
                await asyncio.sleep(0.25)
        return phases
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
