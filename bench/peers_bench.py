"""What Seawall adds to a call, beside its peers, an empty wrapper and the bare call, measured in one run.

    python bench/peers_bench.py
    python bench/peers_bench.py --rows breaker_closed stack --no-contention --no-memory
    python bench/peers_bench.py --callgrind breaker_closed

Only ratios between candidates of one row of one run mean anything: they are taken inside each round, in which all
candidates are called in random order. ``x bare`` and ``x wrapper`` compare with the bare call and with an empty
``*args, **kwargs`` wrapper, the empty loop subtracted; overhead is what a call costs more than the bare one. Where
nothing is called inside (``breaker_api``, ``..._prim``, ``..._with``), bare is the call of an empty function.

The rivals come with the dependency group ``bench``; one that is not installed is left out with a word.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import logging
import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from peers import breakers, callgrind, contention, limits, making, measuring, others, ours, record, report, stacks
from peers.rows import BASELINES, ROWS, Row, add
from rig import procs, verdict

LONGEST_SECONDS = 1800
QUICK_ROUNDS, QUICK_SLICE_MS = 8, 2.0


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rows", nargs="+", metavar="NAME", help="rows whose name contains one of these, contention, memory")
    p.add_argument("--exact", action="store_true", help="--rows are whole names")
    p.add_argument("--cands", nargs="+", metavar="NAME", help="only these candidates, and the baselines")
    p.add_argument("--versus", default=limits.OURS, metavar="CAND", help="whose overhead is 1 in the closing table")
    p.add_argument("--rounds", type=int, default=40)
    p.add_argument("--slice-ms", type=float, default=4.0, help="how long a candidate is called in a round")
    p.add_argument("--quick", action="store_true", help="only shows that everything runs")
    p.add_argument("--no-contention", action="store_true")
    p.add_argument("--no-memory", action="store_true")
    p.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    p.add_argument("--extra", type=Path, metavar="FILE.py", help="more candidates, from its register(add, GUARDS, MAKE)")
    p.add_argument("--skipped", action="store_true", help="say at the end why each candidate was left out of each row")
    p.add_argument("--list", action="store_true", help="rows and candidates, nothing is measured")
    p.add_argument("--callgrind", nargs="*", metavar="ROW", help="count instructions of these rows instead of time")
    p.add_argument("--once", nargs=3, metavar=("ROW", "CAND", "N"), help=argparse.SUPPRESS)
    a = p.parse_args(argv)
    if a.quick:
        a.rounds, a.slice_ms = QUICK_ROUNDS, QUICK_SLICE_MS
    if a.rounds < 4 or a.slice_ms <= 0:
        p.error("--rounds must be at least 4 (a middle half needs them), --slice-ms more than 0")
    return a


def fill_rows(extra: Path | None) -> None:
    """Let everybody take part."""
    for module in (ours, breakers, others, stacks):
        module.register()
    if extra is None:
        return
    spec = importlib.util.spec_from_file_location("bench_extra", extra)
    if spec is None or spec.loader is None or not extra.is_file():
        raise procs.BenchError(f"--extra {extra}: no such Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.register(add, contention.GUARDS, making.MAKE)


class Choice:
    """What the command line asks for."""

    def __init__(self, a: argparse.Namespace) -> None:
        self._names, self._exact, self.cands = a.rows, a.exact, a.cands
        known = {cand for row in ROWS.values() for cand in row.cands} | {*contention.GUARDS, *making.MAKE}
        if unknown := [cand for cand in (*(a.cands or ()), a.versus) if cand not in known]:
            raise procs.BenchError(f"no such candidate: {', '.join(unknown)} (--list names them)")
        if not (self.rows() or self.asks("contention") or self.asks("memory")):
            raise procs.BenchError(f"no row is called like {', '.join(a.rows)} (--list names them)")

    def asks(self, name: str) -> bool:
        """Whether a row, or "contention" or "memory", is asked for."""
        return self._names is None or any(n == name if self._exact else n in name for n in self._names)

    def rows(self) -> list[Row]:
        """The rows asked for, with the candidates asked for."""
        def wanted(cand: str) -> bool:
            return self.cands is None or cand in self.cands or cand in BASELINES

        return [Row(r.name, r.mode, r.doc, r.target, r.right, {c: f for c, f in r.cands.items() if wanted(c)})
                for r in ROWS.values() if self.asks(r.name)]


def take(a: argparse.Namespace, choice: Choice, run: record.Run) -> None:
    """Measure what is asked for, and print each table when it is there."""
    print(f"Python {run.python} ({run.build}), {run.machine}; "
          + ", ".join(f"{name} {version}" for name, version in run.versions.items())
          + f"; {a.rounds} rounds of {a.slice_ms:g} ms", flush=True)
    for row in choice.rows():
        print(report.row(row.name, measuring.measure(row, run, a.rounds, a.slice_ms / 1e3)), flush=True)
    if choice.asks("contention") and not a.no_contention:
        rounds, seconds = (3, 0.02) if a.quick else (7, 0.2)
        for work in contention.WORKS:
            for threads in contention.THREADS:
                label = contention.measure(run, work, threads, rounds, seconds, choice.cands)
                print(report.contention(label, run.contention.get(label, {})), flush=True)
    if choice.asks("memory") and not a.no_memory:
        making.measure(run, 1000 if a.quick else 10_000, choice.cands)
        print(report.making(run), flush=True)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep what the rivals warn of and log out of the figures and off the terminal."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def command_line(given: Sequence[str]) -> str:
    """How to do it again, without the file that the figures go to."""
    kept, words = ["python", "bench/peers_bench.py"], iter(given)
    for word in words:
        if word == "--json":
            next(words, None)
        elif not word.startswith("--json="):
            kept.append(word)
    return shlex.join(kept)


def measured(a: argparse.Namespace, argv: Sequence[str] | None) -> list[verdict.Verdict]:
    """Measure, print, and return the verdicts. Interrupted, it still tells what there is."""
    choice = Choice(a)
    run = record.begin(command_line(sys.argv[1:] if argv is None else argv), a.rounds, a.slice_ms, a.quick)
    try:
        with procs.bounded(LONGEST_SECONDS):
            take(a, choice, run)
    finally:
        verdicts = limits.verdicts(run)
        print(report.closing(run, a.versus, verdicts), flush=True)
        for what, why in {**run.missing, **run.broken}.items() if a.skipped else ():
            print(f"left out of {what}: {why}")
        if a.json:
            record.save(run, a.json)
    return verdicts


def run(argv: Sequence[str] | None = None) -> list[verdict.Verdict]:
    """Do what the command line says."""
    a = arguments(argv)
    fill_rows(a.extra)
    with quiet():
        if a.list:
            print(report.listing())
        elif a.once:
            callgrind.only_run(a.once[0], a.once[1], int(a.once[2]))
        elif a.callgrind is not None:
            names = a.callgrind or ["call", "breaker_closed"]
            if unknown := [name for name in names if name not in ROWS]:
                raise procs.BenchError(f"no such row: {', '.join(unknown)} (--list names them)")
            with procs.bounded(LONGEST_SECONDS * len(names)):
                callgrind.count(names, a.cands, ["--extra", str(a.extra)] if a.extra else [])
        else:
            return measured(a, argv)
    return []


if __name__ == "__main__":
    sys.exit(procs.main_guard(lambda: 0 if all(v.held for v in run()) else 1))
