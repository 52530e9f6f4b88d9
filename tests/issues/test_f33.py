"""F33: a time limit on a function works in any thread, keeps fractions of a second, and injects nothing into a thread.

tests/policies/test_timeout_threads.py has the rules.
"""

from __future__ import annotations

import signal
import threading
import time

import pytest

from seawall import Timeout, TimeoutExceededError
from tests.lines import until

pytestmark = pytest.mark.fault("F33")


class Work:
    """Computes and sleeps until it is told to stop, and keeps whatever is raised in the midst of it."""

    def __init__(self) -> None:
        self.stop = False
        self.turns = 0
        self.struck: BaseException | None = None

    def __call__(self) -> None:
        try:
            while not self.stop:
                self.turns += 1
                time.sleep(0.001)
        except BaseException as error:
            self.struck = error
            raise


def waited(limit: Timeout, work: Work) -> float:
    """Seconds until the limit has ended the wait for ``work``."""
    begin = time.monotonic()
    with pytest.raises(TimeoutExceededError) as caught:
        limit.call(work)
    assert caught.value.limit == limit.seconds
    return time.monotonic() - begin


def test_a_fifth_of_a_second_in_a_worker_thread_is_a_fifth_of_a_second() -> None:
    alarm, timer = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    work, limit = Work(), Timeout(0.2)
    seconds: list[float] = []
    thread = threading.Thread(target=lambda: seconds.append(waited(limit, work)))
    thread.start()
    thread.join(30)
    work.stop = True
    assert 0.199 <= seconds[0] < 20.0
    assert (signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)) == (alarm, timer)


def test_an_abandoned_call_goes_on_undisturbed_until_it_ends_by_itself() -> None:
    work, limit = Work(), Timeout(0.02)
    waited(limit, work)
    turns = work.turns
    until(lambda: work.turns > turns + 20)
    assert limit.abandoned == 1
    work.stop = True
    until(lambda: not limit.abandoned)
    assert work.struck is None
