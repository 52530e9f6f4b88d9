"""Fixtures for every test: a clock moved by hand, fast thread switching, and a check that nothing is left running."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests import leaks
from tests.clock import ManualClock

# The same examples in every run, and no time limit an example that a loaded machine could break.
settings.register_profile("house", deadline=None, derandomize=True, database=None, print_blob=True)
settings.load_profile("house")


@pytest.fixture
def manual_clock() -> ManualClock:
    """A clock at 0.0 that moves only by ``advance`` and ``set``."""
    return ManualClock()


@pytest.fixture
def fast_switching() -> Iterator[None]:
    """Let threads take turns every microsecond, not every 5 ms: races that need luck then show in a short test."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(autouse=True)
def nothing_left_running() -> Iterator[None]:
    """Fail a test that leaves a non-daemon thread or a child process behind; end the child, to spare the next test."""
    threads_before, children_before = leaks.threads(), set(leaks.children())

    def new_children() -> dict[int, str]:
        return {pid: name for pid, name in leaks.children().items() if pid not in children_before}

    def left() -> list[str]:
        threads = [f"thread {thread.name}" for thread in leaks.threads() - threads_before]
        return threads + [f"process {pid} {name or '(ended, not waited for)'}" for pid, name in new_children().items()]

    yield
    if names := leaks.settled(left):
        for pid in new_children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        pytest.fail("left running: " + "; ".join(names), pytrace=False)
