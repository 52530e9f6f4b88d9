"""A line on a terminal that says what is going on, once it has gone on for a second; nowhere else."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

__all__ = ["Progress"]

AFTER = 1.0  # s; what is over sooner needs no word
EVERY = 0.2
CLEAR = "\r\x1b[K"


class Progress:
    """A block during which ``what`` is shown on standard error, with the seconds it has taken so far.

    Only where standard error is a terminal that can clear a line; the line is gone when the block ends.

    Args:
        what: What is going on. May be changed meanwhile, from the thread that entered.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Progress:
        """Begin."""
        import os

        if sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM", "") not in ("", "dumb"):
            self._thread = threading.Thread(target=self._run, args=(time.monotonic(),), daemon=True, name="progress")
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Clear the line."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(1.0)

    def _run(self, began: float) -> None:
        shown = False
        pause = AFTER
        try:
            while not self._ended.wait(pause):
                shown, pause = True, EVERY
                sys.stderr.write(f"{CLEAR}{self.what[:70]}  {time.monotonic() - began:.1f} s")
                sys.stderr.flush()
            if shown:
                sys.stderr.write(CLEAR)
                sys.stderr.flush()
        except (OSError, ValueError):
            pass  # the terminal has gone: nobody looks
