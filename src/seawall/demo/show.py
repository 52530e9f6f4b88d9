"""What the demo shows: a table that is drawn over on a terminal, a line a second elsewhere; and the report at its end."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple, TextIO

from .traffic import Tally

__all__ = ["Done", "Screen", "report", "verdict"]

SIGNS = {"CLOSED": "o", "HALF_OPEN": "?", "OPEN": "X"}


class Done(NamedTuple):
    """A phase that is over: its name, and what each target's callers saw."""

    name: str
    tallies: dict[str, Tally]


class Screen:
    """The live view."""

    def __init__(self, out: TextIO, live: bool) -> None:
        self._out, self._live = out, live
        self._drawn = 0
        self._last_line = -1.0

    def say(self, text: str) -> None:
        """A line that stays."""
        self._clear()
        self._out.write(text + "\n")
        self._out.flush()

    def update(self, seconds: float, phase: str, states: dict[str, str], tallies: dict[str, Tally]) -> None:
        """How it stands now."""
        if self._live:
            self._draw(seconds, phase, states, tallies)
        elif seconds - self._last_line >= 1.0:
            self._last_line = seconds
            rows = (f"{name} {states.get(name, '?')}  {_codes(tally.codes)}" for name, tally in tallies.items())
            self.say(f"{seconds:5.1f} s  {phase:<18}  " + "  |  ".join(rows))

    def _draw(self, seconds: float, phase: str, states: dict[str, str], tallies: dict[str, Tally]) -> None:
        width = shutil.get_terminal_size().columns - 1
        lines = ["", f"  {seconds:4.0f} s   {phase}", ""]
        for name, tally in tallies.items():
            state = states.get(name, "?")
            p95 = tally.quantile(0.95) * 1000
            lines.append(f"  {SIGNS.get(state, ' ')} {name:<6} {state:<10} p95 {p95:7.1f} ms   {_codes(tally.codes)}")
        self._clear()
        self._out.write("".join(line[:width] + "\n" for line in lines))
        self._out.flush()
        self._drawn = len(lines)

    def _clear(self) -> None:
        if self._drawn:
            self._out.write(f"\x1b[{self._drawn}A\x1b[J")
            self._drawn = 0


def _codes(codes: Counter[str]) -> str:
    return ", ".join(f"{code} {n}" for code, n in sorted(codes.items())) or "-"


def report(phases: list[Done], breaker_log: str, say: Callable[[str], None]) -> None:
    """Codes for each target and phase, CLAIM's times beside its calm ones, the breaker log."""
    for name in phases[0].tallies:
        say(f"\n{name}: what its callers got")
        for phase in phases:
            say(f"  {phase.name:<18} {_codes(phase.tallies[name].codes)}")
    calm = phases[0].tallies["CLAIM"]
    say("\nCLAIM: how long its callers waited")
    say(f"  {'':<18} {'p50':>9} {'p95':>9}    of the calm p95")
    for phase in phases:
        tally = phase.tallies["CLAIM"]
        p50, p95 = tally.quantile(0.5) * 1000, tally.quantile(0.95) * 1000
        share = p95 / (calm.quantile(0.95) * 1000) if calm.quantile(0.95) else 0.0
        say(f"  {phase.name:<18} {p50:6.1f} ms {p95:6.1f} ms    {share:4.1f} x")
    say("\nbreaker.log")
    for line in breaker_log.splitlines():
        say(f"  {line}")


def verdict(phases: list[Done]) -> list[str]:
    """What CLAIM's callers noticed of CORE's death; nothing, if all is well."""
    calm = phases[0].tallies["CLAIM"].quantile(0.95)
    limit = max(3 * calm, calm + 0.05)
    faults = []
    for phase in phases:
        tally = phase.tallies["CLAIM"]
        bad = {code: n for code, n in tally.codes.items() if code != "0000" and not code.startswith("B")}
        if bad:
            faults.append(f"{phase.name}: CLAIM's callers got {_codes(Counter(bad))}")
        if tally.quantile(0.95) > limit:
            faults.append(
                f"{phase.name}: CLAIM's p95 was {tally.quantile(0.95) * 1000:.1f} ms, more than {limit * 1000:.1f} ms"
            )
    return faults
