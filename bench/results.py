"""Writes RESULTS.md: peers_bench.py on each of Python 3.11, 3.12 and 3.13, one after another, on one page.

    python bench/results.py
    python bench/results.py --python /opt/python3.13/bin/python3 -o /tmp/results.md
    python bench/results.py --quick -o /tmp/results.md      only shows that it works

It makes an environment for each (.venv-3.x-bench) with the dependency group ``bench``, or takes the interpreters given
with ``--python``, in which Seawall and its rivals must be installed. About two minutes each, and what pip takes.
Interrupted, it writes nothing and prints the page of the interpreters that were finished.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from peers import page, record
from rig import procs

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
VERSIONS = ("3.11", "3.12", "3.13")
LONGEST_SECONDS = 2400  # an interpreter, its environment included
GRACE_SECONDS = 15      # for a run to write what it has


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-o", "--output", type=Path, default=BENCH / "RESULTS.md", metavar="FILE")
    p.add_argument("--versions", nargs="+", default=VERSIONS, metavar="3.X", help=f"which ({' '.join(VERSIONS)})")
    p.add_argument("--python", nargs="+", default=[], metavar="PATH", help="these interpreters, and make no environment")
    p.add_argument("--read", nargs="+", type=Path, default=[], metavar="FILE.json", help="kept figures, none measured")
    p.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the figures there, as 3.x.json")
    p.add_argument("--quick", action="store_true", help="hardly any rounds; needs -o, since the figures mean nothing")
    a = p.parse_args(argv)
    if a.quick and a.output == p.get_default("output"):
        p.error("--quick makes figures that mean nothing: name another file with -o")
    return a


def ended(argv: Sequence[str]) -> int:
    """Run a program to its end and return its exit code; interrupted, it is given time to write what it has."""
    child = subprocess.Popen(argv, cwd=ROOT)
    try:
        return child.wait()
    except BaseException as e:
        if not isinstance(e, KeyboardInterrupt):  # Ctrl-C has reached it too
            child.terminate()
        try:
            child.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        raise


def environment(version: str) -> str:
    """The interpreter of an environment that has Seawall and its rivals; made where it is needed.

    Raises:
        BenchError: There is no such interpreter, or no package index; what was said stands above.
    """
    folder = f".venv-{version}-bench"
    if ended(["tools/venv.sh", "make", folder, version, "-e", ".[all]", "--group", "bench"]):
        raise procs.BenchError(f"no environment for Python {version} (the reason stands above); --versions leaves it out")
    return str(ROOT / folder / "bin/python")


def measured(python: str, figures: Path, options: Sequence[str]) -> record.Run:
    """One run of peers_bench.py; its limits may be missed, it must have figures."""
    print(f"\n## {python}\n", flush=True)
    figures.unlink(missing_ok=True)
    code = ended([python, str(BENCH / "peers_bench.py"), "--json", str(figures), *options])
    if code not in (0, 1) or not figures.is_file():
        raise procs.BenchError(f"{python} bench/peers_bench.py ended with exit code {code}; the reason stands above")
    return record.load(figures)


def written(runs: Sequence[record.Run], argv: Sequence[str]) -> str:
    """The page, of what there is."""
    return page.page(record.ordered(runs), shlex.join(["python", "bench/results.py", *argv]))


def run(argv: Sequence[str] | None = None) -> int:
    """Measure, and write the page."""
    a = arguments(argv)
    given = sys.argv[1:] if argv is None else argv
    runs = [record.load(path) for path in a.read]
    wanted = [] if a.read else a.python or a.versions
    longest = 60 + LONGEST_SECONDS * len(wanted)
    try:
        with tempfile.TemporaryDirectory(prefix="seawall-bench-") as work, procs.bounded(longest):
            for number, which in enumerate(wanted):
                python = which if a.python else environment(which)
                runs.append(measured(python, Path(work) / f"{number}.json", ["--quick"] if a.quick else []))
                keep(a.keep, runs)
    except BaseException:
        print(f"\n{written(runs, given)}" if runs else "Nothing was finished.", flush=True)
        raise
    a.output.write_text(written(runs, given), encoding="utf-8")
    print(f"\nwritten: {a.output}")
    return 0


def keep(folder: Path | None, runs: Sequence[record.Run]) -> None:
    """Write the figures where they stay."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        for version, one in record.ordered(runs).items():
            record.save(one, folder / f"{version}.json")


if __name__ == "__main__":
    sys.exit(procs.main_guard(run))
