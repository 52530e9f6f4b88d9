"""Plans carried out from the callbacks of a protocol: whoever owns the sockets and timers asks what is next.

Nothing is waited for here and nothing is called: that is what makes it a driver for code that must never block.
"""

from __future__ import annotations

from typing import final

from ..plan import Effect, Ended, Plan

__all__ = ["Steps"]


@final
class Steps:
    """A plan, step by step. ``next`` is what is to be done now; ``None``: it is over, and ``ended`` is how."""

    __slots__ = ("_plan", "ended", "next")

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.ended: Ended | None = None
        self.next: Effect | None = None
        self._go_on(None)

    def attempted(self, ended: Ended) -> None:
        """The attempt that was to be made has ended."""
        self._go_on(ended)

    def slept(self) -> None:
        """The wait is over."""
        self._go_on(None)

    def close(self) -> None:
        """Nobody wants to know any more."""
        self.next = None
        self._plan.close()

    def _go_on(self, ended: Ended | None) -> None:
        try:
            self.next = self._plan.send(ended)
        except StopIteration as stop:
            self.next, self.ended = None, stop.value
