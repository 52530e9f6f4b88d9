"""Tables for the terminal: one run, in Markdown."""

from __future__ import annotations

from rig import verdict

from peers import limits
from peers.record import Figure, Run
from peers.rows import BASELINES, ROWS


def row(name: str, figures: dict[str, Figure]) -> str:
    """One row's table, the cheapest first."""
    bare = figures["bare"].best
    lines = [(cand, verdict.num(f.xbare * bare), verdict.num(f.xbare, 2), f"{f.low:.2f}-{f.high:.2f}",
              verdict.num(f.xwrap, 2), verdict.num(f.over * bare))
             for cand, f in sorted(figures.items(), key=lambda item: item[1].xbare)]
    head = ("candidate", "ns", "x bare", "middle half", "x wrapper", "overhead ns")
    return f"\n### {name}: {ROWS[name].doc}\n\n{verdict.table(head, lines)}"


def contention(label: str, found: dict[str, float]) -> str:
    """One setting's table, the best first."""
    lines = [(cand, f"{share:.3f}") for cand, share in sorted(found.items(), key=lambda item: -item[1])]
    return f"\n### {label} through one breaker\n\n{verdict.table(('candidate', 'throughput / bare'), lines)}"


def making(run: Run) -> str:
    """Memory and creation, the lightest first."""
    lines = [(what, f"{found['bytes']:.0f}", f"{found['create_us']:.2f}")
             for what, found in sorted(run.making.items(), key=lambda item: item[1]["bytes"])]
    return f"\n### memory and time of creation\n\n{verdict.table(('what', 'bytes', 'us'), lines)}"


def others(figures: dict[str, Figure], mine: str) -> list[str]:
    """Who is compared with ``mine``: neither the baselines nor its own other forms."""
    family = mine.split(",")[0]
    return [cand for cand in figures if cand not in BASELINES and cand.split(",")[0] != family]


def versus(run: Run, mine: str) -> str:
    """How many times the overhead of ``mine`` each rival's is."""
    lines = []
    for name, figures in run.rows.items():
        if mine in figures:
            times = sorted((run.times(name, cand, mine) or 0.0, cand) for cand in others(figures, mine))
            wrapper = run.times(name, "wrapper", mine)
            lines.append((name, ", ".join(f"{cand} {value:.1f}" for value, cand in times) or "-", verdict.num(wrapper, 2)))
    if not lines:
        return f"\nNo row has a candidate {mine!r}."
    return (f"\n### overhead over the bare call, in multiples of that of {mine!r}\n\n"
            + verdict.table(("row", "rivals", "empty wrapper"), lines))


def closing(run: Run, mine: str, verdicts: list[verdict.Verdict]) -> str:
    """What stands at the end: the rivals in multiples of ours, the quiet of the machine, the verdicts."""
    parts = [versus(run, mine)] if run.rows else []
    if (foreign := verdict.median(run.foreign)) is not None:
        parts.append(f"\nOther processes took {foreign:.2f} of a core (median over the rows). Over 0.2 ratios are rough.")
    if verdicts:
        missed = sum(not v.held for v in verdicts)
        parts.append(f"\n### {len(verdicts)} of {limits.COUNT} limits judged, {missed} missed\n\n"
                     + "\n".join(f"- {v}" for v in verdicts))
    if run.quick:
        parts.append("\n--quick: it runs; the figures mean nothing.")
    return "\n".join(parts)


def listing() -> str:
    """Rows and their candidates."""
    lines = [f"{name}: {r.doc}\n    {'; '.join(r.cands)}" for name, r in ROWS.items()]
    return "\n".join([*lines, "contention, memory: judged and measured too, see --no-contention, --no-memory",
                      f"{limits.COUNT} limits"])
