"""What must hold, each limit once, and the verdicts of a run.

The limits come from prototypes that were measured before Seawall was written; they leave 25 to 30 % for what a product
adds. They hold for a plain Python function of one argument and for the decorator with its defaults, counters on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from rig import verdict

from peers.record import Run

OURS = "seawall"


class Overhead(NamedTuple):
    """A rival's overhead over the bare call must be at least so many times ours."""

    row: str
    peer: str
    least: float


class Throughput(NamedTuple):
    """Our throughput under contention must be at least so many times the peer's."""

    setting: str
    peer: str
    least: float


class Making(NamedTuple):
    """What making one may cost at most. Microseconds are the one limit here that depends on the machine."""

    what: str
    figure: str
    unit: str
    most: float


RETRY = {"pyresilience": 28, "backoff": 45, "stamina": 250, "tenacity": 280}
ARETRY = {"hyx": 8, "pyresilience": 13, "backoff": 17, "tenacity": 200}
OVERHEADS = (
    Overhead("breaker_closed", "wrapper", 1.0),
    Overhead("breaker_closed", "circuitbreaker", 7),
    Overhead("breaker_closed", "purgatory", 11),
    Overhead("breaker_closed", "aiobreaker", 15),
    Overhead("breaker_closed", "pybreaker", 18),
    Overhead("breaker_closed", "pyresilience", 24),
    Overhead("abreaker_closed", "circuitbreaker", 5),
    Overhead("abreaker_closed", "hyx", 6),
    Overhead("abreaker_closed", "purgatory", 9),
    Overhead("abreaker_closed", "aiobreaker", 10),
    Overhead("abreaker_closed", "pyresilience", 16),
    Overhead("breaker_failure", "circuitbreaker", 2.2),
    *(Overhead("breaker_failure", peer, 6) for peer in ("purgatory", "aiobreaker", "pybreaker", "pyresilience")),
    Overhead("breaker_open", "circuitbreaker", 1.7),
    *(Overhead("breaker_open", peer, 5) for peer in ("purgatory", "aiobreaker", "pybreaker", "pyresilience")),
    Overhead("breaker_cycle", "circuitbreaker", 0.77),  # rare: at most 1.3 times circuitbreaker's
    Overhead("breaker_api", "pyresilience", 3.5),
    Overhead("breaker_with", "pybreaker", 9),
    Overhead("breaker_with", "purgatory", 1.1),
    Overhead("breaker_with", "circuitbreaker", 0.55),  # whose `with` never refuses
    Overhead("bulkhead", "threading.BoundedSemaphore", 8),
    Overhead("bulkhead", "pyresilience", 12),
    Overhead("abulkhead", "asyncio.Semaphore", 5),
    Overhead("abulkhead", "hyx", 13),
    Overhead("abulkhead", "pyresilience", 16),
    *(Overhead("retry_first_try", peer, least) for peer, least in RETRY.items()),
    *(Overhead("aretry_first_try", peer, least) for peer, least in ARETRY.items()),
    Overhead("stack_no_timeout", "wrapper", 0.5),  # at most two empty wrappers
    Overhead("stack_no_timeout", "pyresilience", 17),
    Overhead("stack_no_timeout", "tenacity+pybreaker+Semaphore", 120),
    Overhead("stack_deadline", "pyresilience", 50),
    Overhead("astack_no_timeout", "pyresilience", 16),
    Overhead("astack_no_timeout", "hyx", 17),
    Overhead("astack_timeout_yield", "pyresilience", 10),
    Overhead("astack_timeout_yield", "hyx", 14),
    Overhead("atimeout_yield", "asyncio.timeout", 3.5),
    Overhead("atimeout_yield", "asyncio.wait_for", 4.5),
)
THROUGHPUTS = (
    Throughput("no-op, 8 threads", "wrapper", 0.9),
    Throughput("no-op, 8 threads", "circuitbreaker", 6),
    Throughput("no-op, 8 threads", "pybreaker", 30),
    Throughput("no-op, 8 threads", "pyresilience", 60),
    Throughput("1 ms of I/O, 32 threads", "bare", 0.95),
)
MAKINGS = (
    Making("seawall", "bytes", " B", 450),
    Making("seawall, decorated", "bytes", " B", 1400),
    Making("seawall", "create_us", " us", 3),
    Making("seawall, decorated", "create_us", " us", 30),
)
COUNT = len(OVERHEADS) + len(THROUGHPUTS) + len(MAKINGS)
LEAST = {(limit.row, limit.peer): limit.least for limit in OVERHEADS}


@dataclass(frozen=True)
class AtLeast(verdict.Verdict):
    """A figure that must not be smaller than ``least``."""

    least: float = 0.0

    @property
    def held(self) -> bool:
        """False when it is under its limit, or there is no number."""
        return self.value is not None and not self.why and self.value >= self.least

    def __str__(self) -> str:
        if self.value is None or self.why:
            return super().__str__()
        outcome = "held" if self.held else "MISSED"
        return f"{self.what}: {self.value:.2f} (must be at least {self.least:g}): {outcome}"


def verdicts(run: Run) -> list[verdict.Verdict]:
    """One for each limit that this run can judge: not for rows not asked for, nor for a rival that is not installed."""
    return [*_overheads(run), *_throughputs(run), *_makings(run)]


def _overheads(run: Run) -> Iterator[verdict.Verdict]:
    for row, peer, least in OVERHEADS:
        if row in run.rows and (why := _absent(run, row, peer)) is not None:
            yield AtLeast(f"{row}: overhead of {_called(peer)} / ours", run.times(row, peer, OURS), why=why, least=least)


def _throughputs(run: Run) -> Iterator[verdict.Verdict]:
    for setting, peer, least in THROUGHPUTS:
        found = run.contention.get(setting)
        if found is not None and (why := _absent(run, setting, peer)) is not None:
            value = None if why else found[OURS] / found[peer]
            yield AtLeast(f"{setting}: our throughput / that of {_called(peer)}", value, why=why, least=least)


def _makings(run: Run) -> Iterator[verdict.Verdict]:
    for what, figure, unit, most in MAKINGS:
        label = f"{'memory' if figure == 'bytes' else 'creation'}: {'breaker' if what == OURS else 'decorated function'}"
        if what in run.making:
            yield verdict.Verdict(label, run.making[what][figure], most, unit=unit)
        elif why := run.broken.get(f"making: {what}"):
            yield verdict.Verdict(label, None, most, unit=unit, why=why)


def _absent(run: Run, where: str, peer: str) -> str | None:
    """Why there is no figure: empty where there is one, ``None`` where nothing is to be judged."""
    found = run.rows.get(where) or run.contention.get(where, {})
    for cand in (OURS, peer):
        if cand not in found:
            return run.broken.get(f"{where}: {cand}")
    return ""


def _called(peer: str) -> str:
    return {"wrapper": "an empty wrapper", "bare": "the bare call"}.get(peer, peer)
