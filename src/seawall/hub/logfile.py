"""A log that never holds up a call: lines go into a bounded queue, a thread of its own writes them.

Theory of operation
-------------------
:meth:`LogFile.write` puts the line into a queue under a short lock, wakes the writer and returns; it does no I/O. The
writer takes what is queued, up to 256 lines at a time, and writes each line with **one** ``write`` on a descriptor
opened with ``O_APPEND``: the kernel then places whole lines one after another, also when several objects or processes
share the file. Nothing is buffered here, so a line is in the file as soon as the writer has run (it is not synced: it
survives this process, not a power cut).

What can go wrong, and what then happens:

* *The queue is full* (the disk hangs): the line is lost and counted in ``dropped``. Memory stays bounded.
* *The file was rotated*: before each batch the path is compared with the descriptor (device and inode) and opened anew
  when they differ or the path is gone, so no signal is needed, and nothing is written to the old file.
* *Writing fails* (disk full, file not to be opened): the line is lost and counted in ``failed``; the next is tried
  again. The operator is told once when it starts and once when it works again.
* *Half a line fits*: the half stays, and the next line begins on a new line.

One object a process: the writer does not survive a fork.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections import deque
from datetime import UTC, datetime

STDOUT = "-"
"""Path that stands for standard output, which is neither reopened nor closed."""

_BATCH = 256  # lines between two looks at the path: a look costs about as much as a line
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
_HINTS = {
    errno.ENOENT: "create its directory first, or name another file",
    errno.EACCES: "give this user the right to write there, or name another file",
    errno.EISDIR: "it is a directory: name a file in it",
    errno.EROFS: "name a file on a disk that may be written to",
    errno.ENOSPC: "free some space on its disk",
    errno.EDQUOT: "free some space, or raise the quota",
    errno.ENXIO: "it is a pipe that nobody reads: start its reader first, or name another file",
}

_log = logging.getLogger("seawall.hub")


def breaker_line(target: str, old: str, new: str, wall: float | None = None) -> str:
    """One change of state, as the breaker log has it: ``<time>|<target>|<FROM>-><TO>``.

    Args:
        target: The target's name.
        old: The state it left, as text or member of a ``StrEnum``.
        new: The state it entered.
        wall: Seconds since the epoch; default now.

    Returns:
        The line without its end; the time is local, ISO-8601, with milliseconds and offset, as in
        ``2026-03-01T09:30:00.123+00:00|CORE|CLOSED->OPEN``.
    """
    moment = datetime.fromtimestamp(time.time() if wall is None else wall, UTC).astimezone()
    return f"{moment.isoformat(timespec='milliseconds')}|{target}|{old}->{new}"


class LogFile:
    """Lines to a file, in order, without ever blocking or failing the caller.

    Args:
        path: The file, created when missing (mode 0o644 less the umask); ``-`` is standard output.
        capacity: Lines that may wait, 1 or more. 10,000 breaker lines are about 600 KiB.

    Attributes:
        written: Lines that are wholly in the file.
        dropped: Lines lost because the queue was full or the log closed.
        failed: Lines lost because writing them failed.
    """

    def __init__(self, path: str | os.PathLike[str], *, capacity: int = 10_000) -> None:
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1 line, not {capacity!r}")
        self.path = os.fspath(path)
        self.written = self.dropped = self.failed = 0
        self._capacity = capacity
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._done = threading.Condition(self._lock)
        self._queue: deque[str] = deque()
        self._taken = 0  # lines accepted so far
        self._settled = 0  # of these, written or failed
        self._closed = False
        self._writer: threading.Thread | None = None
        # The rest belongs to the writer alone.
        self._descriptor = -1
        self._identity = (0, 0)
        self._torn = False  # the file ends in half a line
        self._failed_before: int | None = None  # while writing fails: `failed` when that began

    def open(self) -> None:
        """Open the file and start the writer; to be called once. Lines written earlier have waited in the queue.

        Raises:
            OSError: The file cannot be opened; ``strerror`` is a sentence for the user that says what to do.
        """
        try:
            self._open()
        except OSError as error:
            message = f"cannot write the log {self.path}: {_reason(error)}; {_hint(error)}"
            raise OSError(error.errno or errno.EIO, message) from error
        self._writer = threading.Thread(target=self._run, name=f"seawall-log {self.path}", daemon=True)
        self._writer.start()

    def write(self, line: str) -> None:
        """Queue one line, given without its end. Line breaks inside it are written as ``\\n`` and ``\\r``.

        Never waits for the disk and never raises: what finds no room is counted in ``dropped``. Any thread may call it
        (a signal handler may not: it could interrupt another call that holds the lock).
        """
        with self._lock:
            if self._closed or self._taken - self._settled >= self._capacity:
                self.dropped += 1
                return
            self._queue.append(line)
            self._taken += 1
            self._work.notify()

    def flush(self, timeout: float) -> bool:
        """Wait up to ``timeout`` seconds until every line queued before this call is settled; False if it was not."""
        with self._lock:
            target = self._taken
            return self._done.wait_for(lambda: self._settled >= target, timeout)

    def close(self, timeout: float = 5.0) -> bool:
        """Take no more lines, write what is queued, close the file. Safe to repeat.

        Args:
            timeout: Seconds to wait, by default 5: a disk that hangs must not keep a program from ending.

        Returns:
            False if lines were still unwritten then; the writer goes on with them as long as the program lives.
        """
        with self._lock:
            self._closed = True
            self._work.notify()
        if self._writer is not None:
            self._writer.join(timeout)
            return not self._writer.is_alive()
        return not self._queue

    def _run(self) -> None:
        while batch := self._next_batch():
            self._write_batch(batch)
            with self._lock:
                self._settled += len(batch)
                self._done.notify_all()
        self._close_descriptor()

    def _next_batch(self) -> list[str]:
        """The next lines, waiting for at least one; empty once closed and drained."""
        with self._lock:
            while not self._queue and not self._closed:
                self._work.wait()
            return [self._queue.popleft() for _ in range(min(len(self._queue), _BATCH))]

    def _write_batch(self, batch: list[str]) -> None:
        try:
            self._follow_rotation()
        except OSError as error:
            self._note_failure(error, len(batch))
            return
        for line in batch:
            try:
                self._write_line(line)
            except OSError as error:
                self._note_failure(error, 1)
            else:
                self._note_success()

    def _write_line(self, line: str) -> None:
        text = line.replace("\r", "\\r").replace("\n", "\\n")
        data = f"{text}\n".encode(errors="backslashreplace")
        if self._torn:
            data = b"\n" + data
        # Short writes happen when the disk fills up or a limit is met; the next try then tells the reason.
        sent = os.write(self._descriptor, data)
        while sent < len(data):
            self._torn = True
            sent += os.write(self._descriptor, data[sent:])
        self._torn = False

    def _open(self) -> None:
        if self.path == STDOUT:
            self._descriptor = 1
            return
        # Without O_NONBLOCK, opening a pipe that nobody reads would hang; writing shall wait again.
        descriptor = os.open(self.path, _FLAGS | os.O_NONBLOCK, 0o644)
        os.set_blocking(descriptor, True)
        status = os.fstat(descriptor)
        self._descriptor = descriptor
        self._identity = (status.st_dev, status.st_ino)
        self._torn = False

    def _follow_rotation(self) -> None:
        if self.path == STDOUT:
            return
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            pass
        else:
            if self._descriptor >= 0 and (status.st_dev, status.st_ino) == self._identity:
                return
        self._close_descriptor()  # before opening: when descriptors have run out, this one is needed
        self._open()

    def _close_descriptor(self) -> None:
        if self._descriptor >= 0 and self.path != STDOUT:
            os.close(self._descriptor)
        self._descriptor = -1

    def _note_failure(self, error: OSError, lines: int) -> None:
        if self._failed_before is None:
            self._failed_before = self.failed
            _log.warning(
                "Lines of the log %s are being lost: %s; %s. Calls are not affected; this is said once.",
                self.path,
                _reason(error),
                _hint(error),
            )
        self.failed += lines

    def _note_success(self) -> None:
        self.written += 1
        if self._failed_before is not None:
            lost = self.failed - self._failed_before
            self._failed_before = None
            _log.info("The log %s can be written again; %d lines were lost.", self.path, lost)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _hint(error: OSError) -> str:
    return _HINTS.get(error.errno or 0, "name another file if this lasts")
