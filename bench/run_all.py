"""The figures of a release, one part after another: relay.py, hang.py, half_open.py, peers_bench.py.

It takes about nine minutes on a quiet machine, longer on a busy one.

    python bench/run_all.py
    python bench/run_all.py --quick     only shows that everything runs; its figures mean nothing

Exit code: 0 all limits held, 1 one was missed or could not be measured, 130 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

import half_open
import hang
import peers_bench
import relay
from rig import procs, verdict

Part = Callable[[Sequence[str] | None], list[verdict.Verdict]]
PARTS: list[tuple[str, Part, list[str]]] = [
    ("CPU per relayed request", relay.run, ["--rounds", "1", "--seconds", "1"]),
    ("A hung target", hang.run, ["--repeat", "1", "--probes", "200"]),
    ("Half-open under a rush", half_open.run, ["--repetitions", "50"]),
    ("The library beside its peers", peers_bench.run, ["--quick"]),
]


def one(title: str, part: Part, argv: Sequence[str]) -> list[verdict.Verdict]:
    """Run one part; what keeps it from running becomes its verdict, so that the others still run."""
    print(f"\n## {title}\n", flush=True)
    try:
        return part(argv)
    except procs.BenchError as e:
        print(f"bench: {e}", file=sys.stderr)
        return [verdict.Verdict(title, None, 0, why=str(e))]


def run(argv: Sequence[str] | None = None) -> int:
    """Run all parts and sum up."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--quick", action="store_true", help="one short round of each")
    a = p.parse_args(argv)
    found = [v for title, part, quick in PARTS for v in one(title, part, quick if a.quick else [])]
    print("\n## Verdicts\n")
    print("\n".join(f"- {v}" for v in found))
    return 0 if all(v.held for v in found) else 1


if __name__ == "__main__":
    sys.exit(procs.main_guard(run))
