"""A function that hangs until it is let go; nothing of it outlasts the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.lines import until

__all__ = ["Hung", "hung"]


class Hung:
    """Call it, and it returns its argument once it is let go, or after a minute."""

    def __init__(self) -> None:
        self._gate = threading.Event()
        self._lock = threading.Lock()
        self.inside = 0
        self.ended: list[object] = []

    def __call__(self, result: object = None) -> object:
        with self._lock:
            self.inside += 1
        self._gate.wait(60)
        self.ended.append(result)
        with self._lock:
            self.inside -= 1
        return result

    def let_go(self) -> None:
        """Let all return, and those that come later at once."""
        self._gate.set()

    def hold(self) -> None:
        """Let those that come hang again."""
        self._gate.clear()


@pytest.fixture
def hung() -> Iterator[Hung]:
    """One that is let go at the end of the test."""
    call = Hung()
    yield call
    call.let_go()
    until(lambda: not call.inside)
