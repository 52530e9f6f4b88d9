"""An event loop in virtual time: when nothing is left to do, the clock jumps to the next timer."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class _Jumping(selectors.SelectSelector):
    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("the test waits for what will never happen")
        self.loop.now += timeout
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """asyncio's own loop but for the time: it starts at ``now``, and passes only while nobody has anything to do.

    Attributes:
        now: The time, in seconds; a test may move it forward, as work that takes long would.
        timers: How many timers were set so far.
        share: Of its delay, after which a timer fires. Less than 1: too early, as by rounding.
        faults: What the loop was told of errors nobody caught.
    """

    def __init__(self, now: float = 1000.0) -> None:
        self.now, self.timers, self.share = now, 0, 1.0
        self.faults: list[dict[str, Any]] = []
        selector = _Jumping()
        selector.loop = self
        super().__init__(selector)
        self.set_exception_handler(lambda _, fault: self.faults.append(fault))

    def time(self) -> float:
        return self.now

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        self.timers += 1
        return super().call_at(self.now + (when - self.now) * self.share, callback, *args, context=context)

    @property
    def pending(self) -> int:
        """Timers set and neither cancelled nor fired."""
        handles: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        return sum(not handle.cancelled() for handle in handles)


def the_loop() -> VirtualLoop:
    """The virtual loop that is running."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run ``main`` to its end in virtual time. Nothing in it may wait for other threads or the network."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        result = runner.run(main)
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)
        assert loop.faults == []
    return result
