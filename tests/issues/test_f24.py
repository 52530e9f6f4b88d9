"""F24: of 5,000 waiters a release wakes one, and while nothing is released nobody wakes at all.

(Left aside: that each waiter looks by itself after 1 s, 2 s, 4 s, ..., see ``seawall.drivers.FIRST_LOOK``.)
"""

from __future__ import annotations

import asyncio
import selectors
import threading
from functools import partial

import pytest

from seawall import Bulkhead
from seawall.drivers import aio, threads
from seawall.policies.slots import Ticket
from tests.lines import assert_at_rest, until

pytestmark = pytest.mark.fault("F24")
WAITERS = 5000


class CountingSelector(selectors.DefaultSelector):
    """Counts the turns of the event loop."""

    turns = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.turns += 1
        return super().select(timeout)


def test_one_wake_up_for_each_release_among_five_thousand_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aio, "FIRST_LOOK", 3600.0)
    limit = Bulkhead(1, max_queue=None, max_wait=None)
    woken: list[int] = []
    claimed: list[int] = []
    really_set, really_claim = aio._set, limit.claim

    def count_set(future: asyncio.Future[None]) -> None:
        woken.append(1)
        really_set(future)

    def count_claim(self: Bulkhead, ticket: Ticket, waited: float | None) -> None:
        claimed.append(1)
        really_claim(ticket, waited)

    monkeypatch.setattr(aio, "_set", count_set)
    monkeypatch.setattr(Bulkhead, "claim", count_claim)
    selector = CountingSelector()

    async def main() -> None:
        limit.acquire()
        tasks = [asyncio.create_task(limit.aacquire()) for _ in range(WAITERS)]
        while limit.waiting < WAITERS:
            await asyncio.sleep(0)
        selector.turns = 0
        await asyncio.sleep(0.05)
        assert selector.turns < 5, "a busy loop"
        assert woken == []
        for released in range(1, 101):
            limit.release()
            while limit.started < released + 1:
                await asyncio.sleep(0)
            assert (len(woken), len(claimed), limit.waiting) == (released, released, WAITERS - released)
            assert [task.done() for task in tasks] == [True] * released + [False] * (WAITERS - released)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (len(woken), len(claimed), limit.waiting) == (100, 100, 0)
        limit.release()

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        runner.run(main())
    assert_at_rest(limit)


def has_started(limit: Bulkhead, number: int) -> bool:
    return limit.started == number


def test_one_wake_up_for_each_release_among_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "FIRST_LOOK", 3600.0)
    limit = Bulkhead(1, max_queue=None, max_wait=None)
    woken: list[int] = []

    class Latch:
        def __init__(self) -> None:
            self._lock = threading.Lock()
            self.acquire = self._lock.acquire

        def release(self) -> None:
            woken.append(1)
            self._lock.release()

    monkeypatch.setattr(threads, "Lock", Latch)
    limit.acquire()
    waiting = [threading.Thread(target=limit.acquire) for _ in range(40)]
    for thread in waiting:
        thread.start()
    until(lambda: limit.waiting == 40)
    for released in range(1, 41):
        limit.release()
        until(partial(has_started, limit, released + 1))
        assert (len(woken), limit.waiting) == (released, 40 - released)
    for thread in waiting:
        thread.join(30)
    limit.release()
    assert_at_rest(limit)
