"""Strikes a running call at each single point at which CPython handles signals and, since 3.12, collects garbage.

Those points are the return of a call, the first line of a function, and the backward jump of a loop. A storm of signals
hits them by luck; this walks through all of them, one run each.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import seawall

AFTER = ("RESUME", "CALL", "CALL_KW", "CALL_FUNCTION_EX")
OURS = (str(Path(seawall.__file__).parent), "<seawall guard")  # the package, and what it generates


class Point:
    """The ``number``-th point of a run, counted from 0: ``strike`` is called there. ``reached`` tells where it was."""

    def __init__(self, number: int, strike: Callable[[], object]) -> None:
        self.number, self.strike = number, strike
        self.reached = ""
        self._seen = 0
        self._before: dict[FrameType, str] = {}  # the instruction that each frame has executed last

    def run(self, act: Callable[[], object]) -> None:
        """Call ``act``, and strike on the way."""
        outer = sys.gettrace()
        sys._getframe().f_trace_opcodes = True  # before settrace: 3.12 wants it so
        sys.settrace(self._trace)
        try:
            act()
        finally:
            sys.settrace(outer)
            self._before.clear()

    def _trace(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "call" and frame.f_code.co_filename.startswith(OURS):
            frame.f_trace = self._step  # before the next line: 3.13 wants it so
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            self._before[frame] = "RESUME"
            return self._step
        return None

    def _step(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "opcode" and not self.reached:
            here = _instructions(frame.f_code)[frame.f_lasti]
            before = self._before.get(frame, "")
            self._before[frame] = here
            # PUSH_EXC_INFO begins a handler: the call before it raised, which is no point.
            if here not in ("RESUME", "PUSH_EXC_INFO") and (before in AFTER or here == "JUMP_BACKWARD"):
                if self._seen == self.number:
                    self.reached = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
                    self.strike()
                self._seen += 1
        return self._step


def _instructions(code: CodeType, _known: dict[CodeType, dict[int, str]] = {}) -> dict[int, str]:  # noqa: B006  # a cache
    if code not in _known:
        _known[code] = {one.offset: one.opname for one in dis.get_instructions(code)}
    return _known[code]


@contextmanager
def untouched() -> Iterator[None]:
    """What runs in here is not struck."""
    outer = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(outer)


def at_each_point(once: Callable[[Callable[[Callable[[], object]], None]], None], strike: Callable[[], object]) -> int:
    """Run ``once(struck)`` for each point of what it hands to ``struck``; return how many points there were."""
    number = 0
    while True:
        point = Point(number, strike)
        try:
            once(point.run)
        except Exception as error:
            error.add_note(f"struck at point {number}, {point.reached}")
            raise
        if not point.reached:
            return number
        number += 1
