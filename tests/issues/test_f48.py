"""F48: 2,000 interrupts over a guarded loop: no slot is lost, no lock is held for ever, nobody is left waiting.

tests/policies/test_bulkhead_struck.py walks through every single point instead; here the signals are real.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INTERRUPTS = 2000


@pytest.mark.fault("F48")
@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
@pytest.mark.parametrize("kind", ["room", "queue"])
def test_none_lost_in_two_thousand_interrupts(kind: str) -> None:
    pause = random.Random(48)
    with subprocess.Popen(
        [sys.executable, "-m", "tests.storm", kind, str(INTERRUPTS)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        end = time.monotonic() + 100
        while child.poll() is None and time.monotonic() < end:
            child.send_signal(signal.SIGINT)
            time.sleep(pause.uniform(0.0, 0.0004))
        child.kill()
        printed = child.stdout.read()
    assert child.returncode == 0
    seen = json.loads(printed)
    print(seen)
    assert seen["landed"] == INTERRUPTS
    assert seen["inside"] > INTERRUPTS / 10  # in our own lines, and not only in the loop around them
    assert seen["opened"] > 10
    assert kind == "room" or seen["other_calls"] > 10
