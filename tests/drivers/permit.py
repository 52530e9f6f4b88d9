"""A place for one call, held and given back as a guard does it, and threads that end soon."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from seawall import Timeout
from seawall.drivers import pool
from seawall.drivers.pool import run

__all__ = ["Permit", "short_idle"]


class Permit:
    """A place for one call, as a bulkhead gives it: ``free`` has one element while it is free."""

    def __init__(self) -> None:
        self.free: list[str] = []
        self.held: list[str] | None = self.free
        self.late_in: list[str] = []

    def late(self, held: list[str]) -> None:
        held.append("late")
        self.late_in.append(threading.current_thread().name)

    def call(self, timeout: Timeout, fn: Callable[[], Any]) -> Any:
        """As the guard does it: what is still held is put back in its own frame, by two steps without a call."""
        try:
            return run(timeout, fn, (), {}, None, self)
        finally:
            if (free := self.held) is not None:
                self.held = None
                free += ("caller",)


@pytest.fixture
def short_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that have nothing to do end at once; none of other tests are about."""
    monkeypatch.setattr(pool, "IDLE", 0.02)
    monkeypatch.setattr(pool._pool, "idle", {})  # the others find out when they have ended a call, or end by themselves
