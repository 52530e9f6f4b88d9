"""The page of results: several runs, one an interpreter, side by side. Everything on it comes from the runs or words.py."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping

from rig import verdict

from peers import limits, report, words
from peers.record import Run
from peers.rows import ROWS

Runs = Mapping[str, Run]  # by the interpreter's version, "3.11" first


def page(runs: Runs, command: str) -> str:
    """The whole page in Markdown."""
    rough = "**Made with `--quick`: these figures mean nothing.**\n\n" if any(r.quick for r in runs.values()) else ""
    parts = [
        f"# Seawall beside its peers, measured\n\n{rough}`{command}` wrote this page; it is not edited by hand.",
        f"## What was measured with\n\n{conditions(runs)}",
        f"## How to read it\n\n{words.READING.strip()}",
        f"## What must hold\n\n{judged(runs)}",
        f"## Rivals' overhead in multiples of Seawall's\n\n{versus(runs)}",
        "## Row by row\n\n" + "\n\n".join(row_table(name, runs) for name in measured_rows(runs)),
        f"## Contention\n\nThroughput of N threads through one guard, in shares of the same threads' with the bare "
        f"function.\n\n{contention(runs)}",
        f"## Memory and creation\n\n{making(runs)}",
        f"## What is not like for like\n\n{words.UNLIKE.strip()}",
    ]
    if left := left_out(runs):
        parts.insert(-1, f"## Left out\n\n{left}")
    return "\n\n".join(parts) + "\n"


def measured_rows(runs: Runs) -> list[str]:
    """Those that at least one run has."""
    return [name for name in ROWS if any(name in run.rows for run in runs.values())]


def conditions(runs: Runs) -> str:
    """Interpreters, versions, dates."""
    tell: dict[str, Callable[[Run], str]] = {
        "interpreter": lambda r: r.python,
        "built": lambda r: r.build,
        "machine": lambda r: r.machine,
        "date": lambda r: r.date,
        "command": lambda r: f"`{r.command}`",
        "rounds": lambda r: f"{r.rounds} of {r.slice_ms:g} ms each",
        "other processes": lambda r: f"{statistics.median(r.foreign):.2f} of a core" if r.foreign else "-",
    }
    packages = dict.fromkeys(name for run in runs.values() for name in run.versions)
    lines = [[what, *(one(r) for r in runs.values())] for what, one in tell.items()]
    lines += [[name, *(r.versions.get(name, "-") for r in runs.values())] for name in packages]
    return verdict.table(["", *runs], lines)


def judged(runs: Runs) -> str:
    """Each limit with its figure on each interpreter."""
    found = {version: {v.what: v for v in limits.verdicts(run)} for version, run in runs.items()}
    lines = []
    for what in dict.fromkeys(what for each in found.values() for what in each):
        mine = {version: each[what] for version, each in found.items() if what in each}
        missed = [version for version, v in mine.items() if not v.held]
        cells = [figure(mine[version]) if version in mine else "-" for version in runs]
        outcome = f"missed on {', '.join(missed)}" if missed else "held"
        lines.append([what, limit(next(iter(mine.values()))), *cells, outcome])
    held = sum(line[-1] == "held" for line in lines)
    told = f"{held} of {limits.COUNT} held wherever they were judged; {limits.COUNT - len(lines)} could not be judged."
    return f"{told}\n\n" + verdict.table(["figure", "must be", *runs, ""], lines)


def figure(v: verdict.Verdict) -> str:
    """The number of a verdict."""
    return v.why or "not measured" if v.value is None or v.why else f"{v.value:.2f}"


def limit(v: verdict.Verdict) -> str:
    """The limit of a verdict."""
    return f"at least {v.least:g}" if isinstance(v, limits.AtLeast) else f"at most {v.limit:g}{v.unit}"


def versus(runs: Runs) -> str:
    """Each rival of each row, and the empty wrapper, in multiples of ours."""
    lines = []
    for name in measured_rows(runs):
        figures = [r.rows[name] for r in runs.values() if name in r.rows]
        rivals = dict.fromkeys(cand for f in figures for cand in ("wrapper", *report.others(f, limits.OURS)))
        for cand in rivals:
            times = [r.times(name, cand, limits.OURS) for r in runs.values()]
            if any(t is not None for t in times):
                least = limits.LEAST.get((name, cand))
                lines.append([f"`{name}`", "empty wrapper" if cand == "wrapper" else cand, *map(verdict.num, times),
                              "" if least is None else f"at least {least:g}"])
    return verdict.table(["row", "rival", *runs, "must be"], lines)


def row_table(name: str, runs: Runs) -> str:
    """One row: every candidate on every interpreter, in the order of the first."""
    figures = {version: run.rows[name] for version, run in runs.items() if name in run.rows}
    every = sorted({cand for f in figures.values() for cand in f},
                   key=lambda c: [f[c].xbare for f in figures.values() if c in f])
    wrapped = any("wrapper" in f for f in figures.values())
    head, lines = ["candidate"], [[f"**{c}**" if c.split(",")[0] == limits.OURS else c] for c in every]
    for version, f in figures.items():
        head += [f"{version}: x bare", "middle half"] + (["x wrapper"] if wrapped else [])
        for line, cand in zip(lines, every, strict=True):
            there = f.get(cand)
            line += [verdict.num(there and there.xbare, 2), f"{there.low:.2f}-{there.high:.2f}" if there else "-"]
            line += [verdict.num(there and there.xwrap, 2)] if wrapped else []
    return f"### `{name}`: {ROWS[name].doc}\n\n{verdict.table(head, lines)}"


def contention(runs: Runs) -> str:
    """A table for each interpreter."""
    parts = []
    for version, run in runs.items():
        if run.contention:
            first = next(iter(run.contention.values()))
            every = sorted({cand for f in run.contention.values() for cand in f}, key=lambda c: -first.get(c, 0.0))
            lines = [[cand, *(verdict.num(f.get(cand), 3) for f in run.contention.values())] for cand in every]
            parts.append(f"### Python {version}\n\n{verdict.table(['candidate', *run.contention], lines)}")
    return "\n\n".join(parts) or "Not measured."


def making(runs: Runs) -> str:
    """Bytes and microseconds of each."""
    made = {version: run.making for version, run in runs.items() if run.making}
    every = sorted({what for m in made.values() for what in m},
                   key=lambda w: [m[w]["bytes"] for m in made.values() if w in m])
    if not every:
        return "Not measured."
    lines = [[what, *(cell for m in made.values() for cell in (verdict.num(m.get(what, {}).get("bytes"), 0),
                                                              verdict.num(m.get(what, {}).get("create_us"), 2)))]
             for what in every]
    return verdict.table(["what", *(f"{version}: {unit}" for version in made for unit in ("bytes", "us"))], lines)


def left_out(runs: Runs) -> str:
    """Who is not on this page and why."""
    return "\n".join(f"- Python {version}: {line}" for version, run in runs.items() for line in absent(run))


def absent(run: Run) -> Iterable[str]:
    """One line a reason."""
    for kind in (run.missing, run.broken):
        for cand, why in dict.fromkeys((where.rsplit(": ", 1)[1], why) for where, why in kind.items()):
            rows = [where.rsplit(": ", 1)[0] for where, said in kind.items() if said == why and where.endswith(f": {cand}")]
            yield f"{cand} ({', '.join(rows)}): {why}"
