"""One run: its figures, what they were measured with, and which candidates are not in it and why."""

from __future__ import annotations

import datetime
import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

PACKAGES = ("seawall", "pybreaker", "circuitbreaker", "aiobreaker", "purgatory", "hyx", "pyresilience")
NOISE = 0.01  # of the bare call; less overhead than that is not told from none


@dataclass(frozen=True)
class Figure:
    """A candidate of a row. ``low`` and ``high``: the middle half of the rounds' ratios to bare; ``best`` is in ns."""

    xbare: float
    low: float
    high: float
    xwrap: float | None
    best: float

    @property
    def over(self) -> float:
        """What it adds to the bare call, in bare calls."""
        return self.xbare - 1.0


@dataclass
class Run:
    """What was found; grows while it runs, so that what there is can be told at any moment.

    Attributes:
        rows: Row to candidate to figure.
        contention: Setting to candidate to throughput relative to bare.
        making: What is made to ``bytes`` and ``create_us``.
        missing: Candidates that are not to be had here, "row: candidate" to why.
        broken: Candidates that are here and failed.
        foreign: Cores that other processes took, for each row.
    """

    python: str
    build: str
    machine: str
    date: str
    command: str
    versions: dict[str, str]
    rounds: int
    slice_ms: float
    quick: bool
    rows: dict[str, dict[str, Figure]] = field(default_factory=dict)
    contention: dict[str, dict[str, float]] = field(default_factory=dict)
    making: dict[str, dict[str, float]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    foreign: list[float] = field(default_factory=list)

    def times(self, row: str, peer: str, mine: str = "seawall") -> float | None:
        """How many times the overhead of ``mine`` that of ``peer`` is; ``None`` where one of them is not there."""
        figures = self.rows.get(row, {})
        if peer not in figures or mine not in figures:
            return None
        return figures[peer].over / max(figures[mine].over, NOISE)

    def leave_out(self, where: str, cand: str, why: str, missing: bool) -> None:
        """Note that a candidate is not in it, and say so; of one that is not installed, once."""
        noted = self.missing if missing else self.broken
        if not missing:
            print(f"# left out of {where}: {cand}: {why}", file=sys.stderr, flush=True)
        elif not any(key.endswith(f": {cand}") and said == why for key, said in noted.items()):
            print(f"# left out, first of {where}: {cand}: {why}", file=sys.stderr, flush=True)
        noted[f"{where}: {cand}"] = why


def begin(command: str, rounds: int, slice_ms: float, quick: bool) -> Run:
    """An empty run of this interpreter."""
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.release().split('-')[0]}, {platform.machine()}"
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Run(platform.python_version(), build(), machine, date, command, versions(), rounds, slice_ms, quick)


def build() -> str:
    """How the interpreter was built, as far as it tells."""
    options = sysconfig.get_config_var("CONFIG_ARGS") or ""
    gil = "" if getattr(sys, "_is_gil_enabled", lambda: True)() else ", free-threaded"
    optimised = [word for flag, word in (("--enable-optimizations", "PGO"), ("--with-lto", "LTO")) if flag in options]
    return f"{platform.python_implementation()}, {' and '.join(optimised) or 'no PGO, no LTO'}{gil}"


def versions() -> dict[str, str]:
    """Seawall's version and commit, and the rivals' versions."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found | {"seawall": found.get("seawall", "not installed") + commit()}


def commit() -> str:
    """The commit the measured code is at, in brackets; nothing where it is not in a checkout."""
    found = importlib.util.find_spec("seawall")
    if found is None or found.origin is None:
        return ""
    try:
        done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=Path(found.origin).parent,
                              capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return f" ({done.stdout.strip()})" if done.returncode == 0 else ""


def save(run: Run, path: Path) -> None:
    """Write a run as JSON."""
    path.write_text(json.dumps(asdict(run), indent=1) + "\n", encoding="utf-8")


def load(path: Path) -> Run:
    """Read what :func:`save` wrote."""
    found = json.loads(path.read_text(encoding="utf-8"))
    found["rows"] = {row: {cand: Figure(**figure) for cand, figure in cands.items()}
                     for row, cands in found["rows"].items()}
    return Run(**found)


def ordered(runs: Iterable[Run]) -> dict[str, Run]:
    """The runs by their interpreter's version, "3.11" first."""
    by_version = {".".join(run.python.split(".")[:2]): run for run in runs}
    return dict(sorted(by_version.items(), key=lambda item: [int(part) for part in item[0].split(".")]))
