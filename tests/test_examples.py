"""Each example runs, says nothing on stderr, and prints to the letter what the file beside it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SHOWN = sorted(path for path in EXAMPLES.glob("*/*.out") if path.with_suffix(".py").exists())


def printed(*command: str, where: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", *command], cwd=where, capture_output=True, text=True, timeout=60, check=False,
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_there_are_examples() -> None:
    assert {path.stem for path in SHOWN} >= {"protection", "flaky", "slow"}


@pytest.mark.parametrize("expected", SHOWN, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_an_example_prints_what_the_file_beside_it_says(expected: Path) -> None:
    assert printed(f"{expected.stem}.py", where=expected.parent) == expected.read_text(encoding="utf-8")


TRACE = """
breaker = Breaker()
breaker.call(False)
#  result=failure state=CLOSED failures=1 started=1 retry_at=0
breaker.call(False)
#  result=failure state=CLOSED failures=2 started=2 retry_at=0
breaker.call(False)
#  result=failure state=OPEN failures=3 started=3 retry_at=5
breaker.call(False)
#  state=OPEN rejected without downstream call started=3
breaker.call(True)
#  state=OPEN rejected without downstream call started=3
breaker.clock = 6
breaker.call(False)
#  probe state=HALF_OPEN
#  result=failure state=OPEN failures=4 started=4 retry_at=11
breaker.clock = 12
breaker.call(True)
#  probe state=HALF_OPEN
#  result=success state=CLOSED started=5
breaker.call(True)
#  result=success state=CLOSED started=6
print(breaker.circuit.failures)
#  0
"""
BURSTS = """
asyncio.run(burst(8))
#  requests=8 completed=8 rejected=0 peak_active=8 admitted_waiters=0
asyncio.run(burst(2))
#  requests=8 completed=8 rejected=0 peak_active=2 admitted_waiters=6
asyncio.run(burst(2, queue_limit=3))
#  requests=8 completed=5 rejected=3 peak_active=2 admitted_waiters=3
"""


@pytest.mark.parametrize("typed", [
    pytest.param(TRACE, marks=pytest.mark.req("TRACE-1"), id="breaker"),
    pytest.param(BURSTS, marks=pytest.mark.req("TRACE-2"), id="admission"),
    pytest.param("", marks=pytest.mark.req("TRACE-1"), id="the import prints nothing"),
])
def test_the_trace_is_printed_line_by_line_as_it_is_typed(typed: str) -> None:
    """With a line printed after each statement, so that what belongs to which is compared too."""
    lines = [line for line in typed.strip().splitlines() if not line.startswith("#")]
    program = "import asyncio\nfrom protection import Breaker, burst\n"
    program += "".join(f"{line}\nprint('--')\n" for line in lines)
    assert blocks(printed("-c", program, where=EXAMPLES / "admission")) == wanted(typed)


def blocks(output: str) -> list[list[str]]:
    """What each statement has printed."""
    *ended, after = output.split("--\n")
    return [block.splitlines() for block in ended] + [[after]] * bool(after)


def wanted(typed: str) -> list[list[str]]:
    """What each statement should print: the comments below it."""
    found: list[list[str]] = []
    for line in typed.strip().splitlines():
        if line.startswith("#  "):
            found[-1].append(line[3:])
        else:
            found.append([])
    return found
