"""Calls a guarded function over and over while somebody sends SIGINT; run as a program, it prints what came of it.

``python -m tests.storm room|queue NUMBER``: ends after so many interrupts have landed, one at a time. Its parent sends
them. ``room``: two places, nobody waits. ``queue``: one place, and a second thread that wants it all the time.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import threading
import time
from pathlib import Path
from traceback import walk_tb
from types import FrameType, TracebackType

from seawall import Bulkhead, CircuitBreaker, RejectedError, Target
from tests.lines import assert_at_rest, until
from tests.points import OURS


class Switch:
    """While on, a signal raises, and turns it off: no interrupt falls into the handling of another."""

    def __init__(self) -> None:
        self.on = False
        self.missed = 0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.on:
            self.on = False
            raise KeyboardInterrupt
        self.missed += 1


class Storm:
    """The guarded function and what has been counted. It fails two times in five: the circuit opens, and tries again."""

    def __init__(self, kind: str) -> None:
        self.limit = Bulkhead(2) if kind == "room" else Bulkhead(1, max_queue=5, max_wait=None)
        self.breaker = CircuitBreaker(2, 0.0, half_open_max_calls=2)
        self.guarded = Target("CORE", breaker=self.breaker, bulkhead=self.limit)(self._user)
        self.calls = self.other_calls = self.landed = self.inside = self.opened = 0
        self.files: dict[str, int] = {}
        self.longest = 0.0
        self.ended = threading.Event()
        self.breaker.listen(self._count)

    def _user(self) -> None:
        self.calls += 1
        if self.calls % 5 < 2:
            raise OSError

    def _count(self, event: object) -> None:
        self.opened += 1

    def other(self) -> None:
        """The second thread."""
        before = time.monotonic()
        while not self.ended.is_set():
            with contextlib.suppress(OSError, RejectedError):
                self.guarded()
            now = time.monotonic()
            before, self.longest = now, max(self.longest, now - before)
            self.other_calls += 1

    def run(self, number: int, switch: Switch) -> None:
        """Until so many have landed."""
        while self.landed < number:
            try:
                switch.on = True
                while True:
                    with contextlib.suppress(OSError, RejectedError):
                        self.guarded()
            except KeyboardInterrupt as error:
                self._landed(error.__traceback__)

    def _landed(self, where: TracebackType | None) -> None:
        self.landed += 1
        ours = [frame.f_code.co_filename for frame, _ in walk_tb(where) if frame.f_code.co_filename.startswith(OURS)]
        if ours:
            self.inside += 1
            name = Path(ours[-1]).name
            self.files[name] = self.files.get(name, 0) + 1


def main(kind: str, number: int) -> None:
    switch = Switch()
    signal.signal(signal.SIGINT, switch)
    storm = Storm(kind)
    other = threading.Thread(target=storm.other, daemon=True)
    if kind == "queue":
        other.start()
    print("ready", flush=True)
    storm.run(number, switch)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if kind == "queue":
        still = storm.other_calls
        until(lambda: storm.other_calls > still + 10)
        storm.ended.set()
        other.join(30)
        assert not other.is_alive(), "the second thread is stuck"
    after = threading.Thread(target=until, args=(lambda: passes(storm),), daemon=True)
    after.start()
    after.join(40)
    assert not after.is_alive(), "a lock is held for ever"
    assert passes(storm) or passes(storm) or passes(storm), "the circuit never lets anybody through"
    assert_at_rest(storm.limit)
    assert storm.breaker.snapshot().state in ("CLOSED", "OPEN", "HALF_OPEN")
    names = ("landed", "inside", "files", "calls", "other_calls", "opened", "longest")
    print(json.dumps({"missed": switch.missed} | {name: getattr(storm, name) for name in names}))


def passes(storm: Storm) -> bool:
    try:
        storm.guarded()
    except (OSError, RejectedError):
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
