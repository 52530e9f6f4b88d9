"""Processes under test: started on their own cores, measured through /proc, and always stopped again.

Each process gets a session of its own, so a Ctrl-C in the terminal reaches only us and we stop the rest by the ids we
know. :class:`Fleet` is the only place that starts anything that lives longer than one call.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TypeVar

T = TypeVar("T")
TICK = os.sysconf("SC_CLK_TCK")


class BenchError(Exception):
    """Something that ends the run with one line: what happened and what to do."""


class TimeLimitError(BenchError):
    """The run took longer than it may."""


def free_port() -> int:
    """A TCP port on loopback that nobody listens on now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def tree(pid: int) -> list[int]:
    """``pid`` and all its descendants (nginx and HAProxy do their work in children)."""
    found, todo = [], [pid]
    while todo:
        p = todo.pop()
        found.append(p)
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{p}/task"):
                todo += map(int, Path(f"/proc/{p}/task/{task}/children").read_text().split())
    return found


def output_of(argv: Sequence[str], limit: float, env: dict[str, str] | None = None) -> tuple[str, str]:
    """Run a program to its end and return what it wrote to standard output and to standard error.

    Raises:
        BenchError: It failed, or took longer than ``limit`` seconds (it is ended then).
    """
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=limit, check=False, env=env)
    except subprocess.TimeoutExpired:
        raise BenchError(f"{argv[0]} did not end within {limit:.0f} s") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
        raise BenchError(f"{argv[0]} failed: {said[-1]}")
    return done.stdout, done.stderr


def stat_fields(pid: int) -> list[str]:
    """The fields of ``/proc/PID/stat`` behind the command's name; empty when the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return []


def busy_seconds() -> float:
    """CPU seconds the whole machine has worked since it started, idle and stolen time left out."""
    f = list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]))
    return (f[0] + f[1] + f[2] + f[5] + f[6]) / TICK


def children_seconds() -> float:
    """CPU seconds of our children that have ended, the loader among them."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def calmest(take: Callable[[], T], foreign: Callable[[T], float], tries: int, enough: float = 0.15) -> T:
    """Take a sample; while other processes disturbed it, take another, up to ``tries``, and keep the least disturbed.

    Which is kept depends on the CPU others used, never on the outcome, so this favours nobody.

    Args:
        take: Takes a sample.
        foreign: Cores that others used during it.
        tries: At most that many samples.
        enough: So little disturbance (in cores) ends the search.
    """
    best = take()
    for _ in range(tries - 1):
        if foreign(best) <= enough:
            break
        best = min(best, take(), key=foreign)
    return best


@dataclass(frozen=True)
class Cores:
    """Which core does what; ``None`` where there is nothing to choose."""

    load: str | None = None
    target: str | None = None
    relay: str | None = None

    def __str__(self) -> str:
        if self.relay is None:
            return "nothing pinned (one core, or no taskset): ratios are rougher"
        return f"loader on core {self.load}, target on core {self.target}, relay on core {self.relay}"


def choose_cores(wish: str | None = None) -> Cores:
    """The relay gets a core of its own; loader and target share one unless there are three.

    Args:
        wish: ``LOAD,TARGET,RELAY`` as core numbers, or ``none``; ``None`` chooses among the cores we may use.
    """
    if wish == "none" or not shutil.which("taskset"):
        return Cores()
    if wish:
        parts = wish.split(",")
        if len(parts) != 3 or not all(p.isdigit() for p in parts):
            raise BenchError(f"--cpus {wish} is not three core numbers: write LOAD,TARGET,RELAY, for example 0,0,1")
        return Cores(*parts)
    mine = sorted(os.sched_getaffinity(0))
    if len(mine) < 2:
        return Cores()
    return Cores(str(mine[0]), str(mine[1] if len(mine) > 2 else mine[0]), str(mine[-1]))


def pinned(argv: Sequence[str], core: str | None) -> list[str]:
    """The command, kept on one core."""
    return ["taskset", "-c", core, *argv] if core is not None else list(argv)


@contextlib.contextmanager
def on_core(core: str | None) -> Iterator[None]:
    """Keep this process on a core while it measures; what it starts meanwhile inherits that."""
    if core is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {int(core)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@dataclass(frozen=True)
class Running:
    """One started process and the port it serves."""

    name: str
    port: int
    proc: subprocess.Popen[bytes]
    log: Path

    def cpu(self) -> tuple[float, float]:
        """User and system CPU seconds of the process tree so far (10 ms steps)."""
        rows = [f for p in tree(self.proc.pid) if (f := stat_fields(p))]
        return sum(int(f[11]) for f in rows) / TICK, sum(int(f[12]) for f in rows) / TICK

    def rss_kib(self) -> int:
        """Resident memory of the process tree in KiB."""
        pages = sum(int(f[21]) for p in tree(self.proc.pid) if (f := stat_fields(p)))
        return pages * os.sysconf("SC_PAGE_SIZE") // 1024

    def last_words(self) -> str:
        """The last lines it wrote, in one: what went wrong, as far as it said."""
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return " / ".join(lines[-3:])[-400:] or "it said nothing"


class Fleet:
    """Everything a benchmark starts. Leaving the ``with`` block stops it and removes the work folder.

    Attributes:
        work: Folder for configurations and logs.
        running: What has been started and not stopped.
    """

    def __init__(self) -> None:
        self.work = Path(tempfile.mkdtemp(prefix="seawall-bench-"))
        self.running: list[Running] = []

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *exc: object) -> None:
        # A second Ctrl-C must not leave half of them running; stopping is bounded, so ignoring it is safe.
        before = {s: signal.signal(s, signal.SIG_IGN) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        signal.alarm(0)
        try:
            self.stop(*self.running)
            shutil.rmtree(self.work, ignore_errors=True)
        finally:
            for s, handler in before.items():
                signal.signal(s, handler)

    def folder(self, name: str) -> Path:
        """A folder of its own for one process."""
        d = self.work / name
        d.mkdir(parents=True, exist_ok=True)
        return d

    def start(self, name: str, argv: Sequence[str], port: int, core: str | None = None) -> Running:
        """Start a command that will serve ``port``; it may not be ready yet."""
        log = self.folder(name) / "output.log"
        try:
            with log.open("wb") as out:
                proc = subprocess.Popen(pinned(argv, core), stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                                        start_new_session=True)
        except OSError as e:
            raise BenchError(f"{name} cannot be started: {argv[0]}: {e.strerror}") from None
        running = Running(name, port, proc, log)
        self.running.append(running)
        return running

    def stop(self, *those: Running) -> None:
        """End processes: SIGTERM, 5 s, SIGKILL. Those already gone are fine."""
        live = [r for r in those if r.proc.poll() is None]
        for r in live:
            _signal_session(r.proc.pid, signal.SIGTERM)
        for r in live:
            try:
                r.proc.wait(5)
            except subprocess.TimeoutExpired:
                _signal_session(r.proc.pid, signal.SIGKILL)
                r.proc.wait(5)
        self.running = [r for r in self.running if r not in those]


class Stopwatch:
    """How much of the machine processes that are not ours took since it was made."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._began, self._busy, self._ours = time.monotonic(), busy_seconds(), self._used()

    def _used(self) -> float:
        return children_seconds() + time.process_time() + sum(sum(r.cpu()) for r in self._fleet.running)

    def foreign(self) -> float:
        """Cores taken by others, on average."""
        ours, passed = self._used() - self._ours, time.monotonic() - self._began
        return max(0.0, busy_seconds() - self._busy - ours) / passed


def _signal_session(pid: int, sig: signal.Signals) -> None:
    """The process is not reaped yet, so its id still names the session we made for it and nothing else."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, sig)


@contextlib.contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """End what runs inside after ``seconds``, and let Ctrl-C, SIGTERM and SIGHUP end it tidily.

    Ctrl-C is set too, because a shell lets what it starts in the background ignore it.
    """
    def late(_sig: int, _frame: FrameType | None) -> None:
        raise TimeLimitError(f"stopped after {seconds:.0f} s, longer than this run may take; "
                             "use fewer --rounds or a quieter machine")

    def ended(sig: int, _frame: FrameType | None) -> None:
        sys.exit(128 + sig)

    wanted = {signal.SIGALRM: late, signal.SIGTERM: ended, signal.SIGHUP: ended,
              signal.SIGINT: signal.default_int_handler}
    before = {s: signal.signal(s, handler) for s, handler in wanted.items()}
    signal.alarm(int(seconds) + 1)
    try:
        yield
    finally:
        signal.alarm(0)
        for s, handler in before.items():
            signal.signal(s, handler)


def want_files(count: int) -> None:
    """Raise the limit of open files to ``count``; children inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        raise BenchError(f"only {hard} open files are allowed and {count} are needed: raise the limit (ulimit -Hn)")
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def main_guard(run: Callable[[], int]) -> int:
    """Run a benchmark's body; turn what may go wrong into one line and an exit code.

    Returns:
        What ``run`` returned, 2 when something is missing or failed to start, 130 after Ctrl-C.
    """
    try:
        return run()
    except BenchError as e:
        print(f"bench: {e}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("bench: interrupted; all that was started is stopped", file=sys.stderr)
        return 130
