"""CPU per relayed request: the hub beside nginx, HAProxy, a plain aiohttp proxy and the target without a relay.

    python bench/relay.py
    python bench/relay.py --rounds 2 --seconds 1 -c hub,nginx
    python bench/relay.py --cmd 'other=other-proxy --listen 127.0.0.1:{port} --to http://127.0.0.1:{up}'

All run at once and idle until it is their turn. A round measures each once; the order turns round by round. The ratio
is taken inside a round and its median over the rounds is the figure: the machine's ups and downs hit both sides of it.
A sample disturbed by other processes is taken once more.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rig import commands, confs, load, procs, tools, verdict

HUB = ("{python} -m seawall hub --listen 127.0.0.1:{port} --admin off --breaker-log {work}/breaker.log "
       "--max-inflight 4096 --budget-ms 30000 --read 30 --connect 2 --drain-timeout 0 "
       "--default T --target T=http://127.0.0.1:{up}")
CONTENDERS = ("direct", "nginx", "haproxy", "aiohttp", "hub")
CONNECTIONS = 32


@dataclass(frozen=True)
class Case:
    """One kind of request."""

    path: str
    title: str
    script: str = ""


# The usual loader sends the same head again and again, which the hub recognises byte for byte. So the same GET is measured
# with an id and a trace that differ in each request, too: what most programs send lies between the two.
CASES = {"get1k": Case("/1k", "GET 1 KiB"), "post4k": Case("/post", "POST 4 KiB", load.POST_LUA),
         "getids": Case("/1k", "GET 1 KiB, ids in each head", load.IDS_LUA), "get64k": Case("/64k", "GET 64 KiB")}
# (case, measured against): what the release must hold, and what we would like. Others are told, not judged.
LIMITS = {("get1k", "nginx"): (1.8, 1.4), ("post4k", "nginx"): (1.8, 1.4), ("getids", "nginx"): (1.8, 1.4),
          ("get1k", "aiohttp"): (0.25, None)}


@dataclass(frozen=True)
class Sample:
    """One contender, one case, one round; times in seconds, CPU in microseconds per request."""

    name: str
    case: str
    round: int
    load: load.Load
    cpu: float
    user: float
    rss_kib: int
    foreign: float


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-c", "--contenders", default=",".join(CONTENDERS), help="which, separated by commas")
    p.add_argument("--cmd", action="append", default=[], metavar="NAME=COMMAND",
                   help="add a relay, or replace one: {port} {up} {work} {python} are filled in")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--seconds", type=int, default=3, help="length of one sample")
    p.add_argument("--get64k", action="store_true", help="measure GET 64 KiB too")
    p.add_argument("--cpus", metavar="LOAD,TARGET,RELAY", help="cores to use, or 'none'; chosen by itself")
    a = p.parse_args(argv)
    if a.rounds < 1 or a.seconds < 1:
        p.error("--rounds and --seconds must be at least 1")
    return a


def builders(given: list[str]) -> dict[str, Callable[[Path, int, int], list[str]]]:
    """Name to what makes its command from a work folder, its port and the target's port."""
    def filled(command: str) -> Callable[[Path, int, int], list[str]]:
        return lambda work, port, up: commands.fill(command, work=work, port=port, up=up)

    return {
        "direct": lambda work, port, _up: confs.nginx_target(work, port),
        "nginx": lambda work, port, up: confs.nginx_relay(work, port, {"": up}),
        "haproxy": lambda work, port, up: confs.haproxy_relay(work, port, {"": up}),
        "aiohttp": filled(f"{{python}} {commands.RIVALS / 'aiohttp_proxy.py'} {{port}} ={{up}}"),
        "hub": filled(HUB),
        **{name: filled(command) for name, command in commands.parse_commands(given).items()},
    }


def start_all(fleet: procs.Fleet, names: Sequence[str], given: list[str], cores: procs.Cores) -> list[procs.Running]:
    """Start the target and the contenders; those that do not answer are left out with a word."""
    up = procs.free_port()
    target = fleet.start("target", confs.nginx_target(fleet.folder("target"), up), up, cores.target)
    load.wait_ready(target)
    ready = []
    for name in names:
        port = procs.free_port()
        r = fleet.start(name, builders(given)[name](fleet.folder(name), port, up), port, cores.relay)
        try:
            load.wait_ready(r)
            ready.append(r)
        except procs.BenchError as e:
            print(f"# left out: {e}", file=sys.stderr)
            fleet.stop(r)
    return ready


class Measure:
    """Takes samples."""

    def __init__(self, fleet: procs.Fleet, seconds: int, cores: procs.Cores) -> None:
        self._fleet, self._seconds, self._core = fleet, seconds, cores.load
        self._work = fleet.work

    def wrk(self, r: procs.Running, case: Case, seconds: int) -> load.Load:
        """Load one contender."""
        lua = self._work / f"{case.path[1:]}.lua" if case.script else None
        if lua is not None:
            lua.write_text(case.script)
        try:
            return load.wrk(r.port, case.path, connections=CONNECTIONS, seconds=seconds, core=self._core, lua=lua)
        except procs.BenchError as e:
            raise procs.BenchError(f"{r.name}: {e}") from None

    def sample(self, r: procs.Running, key: str, turn: int) -> Sample:
        """One sample, a second one if others disturbed it; before the first of its kind a second of warming up."""
        if turn == 0:
            self.wrk(r, CASES[key], 1)
        return procs.calmest(lambda: self._once(r, key, turn), lambda s: s.foreign, tries=2)

    def _once(self, r: procs.Running, key: str, turn: int) -> Sample:
        watch, (user, system) = procs.Stopwatch(self._fleet), r.cpu()
        seen = self.wrk(r, CASES[key], self._seconds)
        (user1, system1), foreign = r.cpu(), watch.foreign()
        per = 1e6 / max(1, seen.requests)
        return Sample(r.name, key, turn, seen, (user1 - user + system1 - system) * per, (user1 - user) * per,
                      r.rss_kib(), foreign)


def ratios(samples: Sequence[Sample], case: str, name: str, base: str) -> list[float]:
    """CPU of ``name`` over CPU of ``base``, one for each round in which both were measured without errors."""
    good = {(s.name, s.round): s.cpu for s in samples if s.case == case and s.cpu > 0 and not s.load.errors}
    turns = sorted({turn for _, turn in good})
    return [good[name, t] / good[base, t] for t in turns if (name, t) in good and (base, t) in good]


def case_table(samples: Sequence[Sample], case: str, names: Sequence[str]) -> str:
    """The table of one case, cheapest first."""
    rows = []
    for name in names:
        mine = [s for s in samples if (s.name, s.case) == (name, case)]
        to = [ratios(samples, case, name, base) for base in ("nginx", "aiohttp")]
        cpu = verdict.median(s.cpu for s in mine) or 0.0
        rows.append((cpu, [
            name, verdict.num(verdict.median(s.load.rps for s in mine), 0),
            *(verdict.num(verdict.median(t), 2) for t in ([s.load.p50 * 1e3 for s in mine],
                                                          [s.load.p99 * 1e3 for s in mine])),
            f"{cpu:.1f} ({verdict.num(verdict.median(s.user for s in mine))})",
            verdict.num(max(s.rss_kib for s in mine) / 1024, 0),
            f"{verdict.num(verdict.median(to[0]), 2)} {verdict.middle_half(to[0])}".strip(),
            verdict.num(verdict.median(to[1]), 2), str(sum(s.load.errors for s in mine))]))
    head = ("relay", "req/s", "p50 ms", "p99 ms", "CPU µs/request (user)", "RSS MiB", "÷ nginx (middle half)",
            "÷ aiohttp", "errors")
    return verdict.table(head, (row for _, row in sorted(rows)))


def judge(samples: Sequence[Sample], case: str) -> list[verdict.Verdict]:
    """The hub against nginx and against aiohttp. A sample with errors does not count: they are cheap to give."""
    errors = sum(s.load.errors for s in samples if (s.name, s.case) == ("hub", case))
    why = f"{errors} requests of the hub failed" if errors else ""
    found = []
    for base in ("nginx", "aiohttp"):
        limit, goal = LIMITS.get((case, base), (None, None))
        value = verdict.median(ratios(samples, case, "hub", base))
        found.append(verdict.Verdict(f"hub / {base} {CASES[case].title}", value, limit, goal, why=why))
    return found


def measure(a: argparse.Namespace, names: Sequence[str], cases: Sequence[str]) -> list[Sample]:
    """Start all, take every sample, stop all."""
    cores, samples = procs.choose_cores(a.cpus), []
    print(f"{tools.machine_line()}; {cores}")
    with procs.Fleet() as fleet:
        ready = start_all(fleet, names, a.cmd, cores)
        taker = Measure(fleet, a.seconds, cores)
        for turn in range(a.rounds):
            for case in cases:
                for r in ready if turn % 2 == 0 else reversed(ready):
                    s = taker.sample(r, case, turn)
                    samples.append(s)
                    print(f"# round {turn + 1} {case} {r.name}: {s.load.rps:.0f}/s, CPU {s.cpu:.1f} µs, "
                          f"errors {s.load.errors}, others took {s.foreign:.2f} core", file=sys.stderr, flush=True)
    return samples


def run(argv: Sequence[str] | None = None) -> list[verdict.Verdict]:
    """Measure, print tables, and return the verdicts."""
    a = arguments(argv)
    tools.widen_path()
    tools.need("wrk")
    names = commands.choose(a.contenders, a.cmd, builders(a.cmd))
    cases = ["get1k", "post4k", "getids", *(["get64k"] if a.get64k else [])]
    with procs.bounded(60 + len(names) * (20 + len(cases) * (2 * a.rounds * (a.seconds + 2) + 3))):
        samples = measure(a, names, cases)
    verdicts = []
    for case in cases:
        measured = [n for n in names if any(s.name == n for s in samples)]
        print(f"\n### {CASES[case].title}, keep-alive, {CONNECTIONS} connections, rounds: {a.rounds} of {a.seconds} s\n")
        print(case_table(samples, case, measured) + "\n")
        verdicts += judge(samples, case) if "hub" in names else []
    if (foreign := verdict.median(s.foreign for s in samples)) is not None:
        print(f"Other processes took {foreign:.2f} of a core (median). Over 0.2 the figures are rough.\n")
    print("\n".join(map(str, verdicts)))
    return verdicts


if __name__ == "__main__":
    sys.exit(procs.main_guard(lambda: 0 if all(v.held for v in run()) else 1))
