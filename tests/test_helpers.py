"""The helpers of the suite itself: the clock, the bounded asyncio run, the check for what was left running."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from tests import leaks
from tests.aio import run_async
from tests.clock import ManualClock


def test_manual_clock_moves_only_by_hand(manual_clock: ManualClock) -> None:
    assert manual_clock() == 0.0
    assert manual_clock.advance(1.5) == manual_clock() == 1.5
    assert manual_clock.set(6.0) == manual_clock() == 6.0


def test_manual_clock_never_goes_back(manual_clock: ManualClock) -> None:
    manual_clock.set(6.0)
    with pytest.raises(ValueError, match="cannot go back"):
        manual_clock.advance(-1.0)
    assert manual_clock() == 6.0


def test_run_async_returns_what_the_coroutine_returns() -> None:
    assert run_async(asyncio.sleep(0, result=7)) == 7


def test_run_async_ends_a_coroutine_that_never_would() -> None:
    with pytest.raises(TimeoutError):
        run_async(asyncio.Event().wait(), timeout=0.05)


def test_fast_switching_is_on_inside_the_test(fast_switching: None) -> None:
    assert sys.getswitchinterval() < 1e-5


def test_a_thread_that_would_keep_the_process_alive_is_found() -> None:
    stop = threading.Event()
    before = leaks.threads()
    thread = threading.Thread(target=stop.wait, args=(30,))
    thread.start()
    try:
        assert leaks.threads() - before == {thread}
        assert leaks.settled(lambda: [t.name for t in leaks.threads() - before], grace=0.05) == [thread.name]
    finally:
        stop.set()
        thread.join(30)
    assert leaks.threads() == before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_child_process_is_found_until_it_is_waited_for() -> None:
    assert leaks.children() == {}
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert "input()" in leaks.children()[child.pid]
    assert leaks.children() == {}
