"""Instructions per call, counted by valgrind's callgrind: no noise, so a change of one percent shows.

A run of a few calls is subtracted from a run of many, which leaves out the interpreter's start and the making of the
guard. The loop is in the figure, the cyclic garbage collector is not: a single collection of everything would cover up all
else. Instructions are not time: a cache miss and an addition count the same.
"""

from __future__ import annotations

import asyncio
import gc
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from rig import procs, tools

from peers.measuring import Caller
from peers.rows import BASELINES, ROWS, Skip

COUNTED = (200, 1200)
LONGEST_SECONDS = 120  # a process; it takes about three
SCRIPT = Path(__file__).resolve().parent.parent / "peers_bench.py"


def only_run(row: str, cand: str, count: int) -> None:
    """A fixed number of calls, for callgrind.

    Raises:
        BenchError: There is no such candidate here.
    """
    if row not in ROWS or cand not in ROWS[row].cands:
        raise procs.BenchError(f"no such row and candidate: {row}, {cand} (--list names them)")
    with asyncio.Runner() as runner:
        caller = Caller(ROWS[row], runner)
        try:
            fn = caller.built(cand)
        except (Skip, ImportError) as e:
            raise procs.BenchError(f"{cand} is not to be had: {e}") from None
        gc.disable()
        caller.seconds(fn, count)


def collected(row: str, cand: str, count: int, options: Sequence[str]) -> int:
    """Instructions of a whole process that makes ``count`` calls."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable, str(SCRIPT),
               "--once", row, cand, str(count), *options]
    _, said = procs.output_of(command, LONGEST_SECONDS, {**os.environ, "PYTHONHASHSEED": "0"})
    found = re.search(r"Collected : (\d+)", said)
    if not found:
        raise procs.BenchError("callgrind counted nothing")
    return int(found[1])


def count(names: Sequence[str], only: Sequence[str] | None, options: Sequence[str]) -> None:
    """Count and print, row by row."""
    tools.need("valgrind")
    for name in names:
        print(f"\n### {name}: {ROWS[name].doc}\n\n| candidate | instructions | x bare |\n| --- | --- | --- |", flush=True)
        bare = None
        for cand in ROWS[name].cands:
            if only is not None and cand not in (*only, *BASELINES):
                continue
            try:
                few, many = (collected(name, cand, n, options) for n in COUNTED)
            except procs.TimeLimitError:
                raise
            except procs.BenchError as e:
                print(f"# left out: {cand} of {name}: {e}", file=sys.stderr, flush=True)
                continue
            each = (many - few) / (COUNTED[1] - COUNTED[0])
            bare = bare or each
            print(f"| {cand} | {each:,.0f} | {each / bare:.2f} |", flush=True)
