"""What 2,000 requests that wait for a hung target cost, and what the neighbours of that target feel.

    python bench/hang.py
    python bench/hang.py --repeat 1 -n 500 -c hub,nginx

A relay has two targets: HANG takes requests and never answers, OK answers 1 KiB at once. One repetition starts the
relay afresh (its memory has never been larger), measures OK calm, lets the requests wait on HANG, and measures again.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rig import commands, confs, load, procs, tools, verdict

HUB = ("{python} -m seawall hub --listen 127.0.0.1:{port} --admin 127.0.0.1:{admin} --breaker-log {work}/breaker.log "
       "--max-inflight {limit} --budget-ms 120000 --read 120 --connect 2 --drain-timeout 0 "
       "--target HANG=http://127.0.0.1:{hang} --target OK=http://127.0.0.1:{ok}")
CONTENDERS = ("nginx", "haproxy", "aiohttp", "hub")
MAX_KIB, MAX_P99 = 8.0, 1.5
WARM, IDLE_SECONDS = 300, 3.0


@dataclass(frozen=True)
class Ports:
    """Where everything listens."""

    port: int
    admin: int
    hang: int
    ok: int


@dataclass(frozen=True)
class Scene:
    """One repetition. KiB per waiting request, shares of a core, seconds, numbers of tasks (``None``: not told)."""

    name: str
    kib: float
    rss_kib: int
    cpu: float
    calm: list[float]
    during: list[float]
    tasks: tuple[int | None, int | None]
    foreign: float
    failure: str

    @property
    def p99_ratio(self) -> float:
        """The other target's p99 while requests wait, over its calm p99."""
        return verdict.quantile(self.during, 0.99) / verdict.quantile(self.calm, 0.99)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-c", "--contenders", default=",".join(CONTENDERS), help="which, separated by commas")
    p.add_argument("--cmd", action="append", default=[], metavar="NAME=COMMAND",
                   help="add a relay, or replace one: {port} {admin} {hang} {ok} {limit} {work} {python} are filled "
                        "in; {up} is one target that hangs for paths with /hang in them")
    p.add_argument("-n", type=int, default=2000, help="requests that wait")
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--probes", type=int, default=2000, help="measured requests to the other target, calm and again")
    p.add_argument("--cpus", metavar="LOAD,TARGET,RELAY", help="cores to use, or 'none'; chosen by itself")
    a = p.parse_args(argv)
    if a.n < 1 or a.repeat < 1 or a.probes < 100:
        p.error("-n and --repeat must be at least 1, --probes at least 100 (a p99 needs them)")
    return a


def builders(given: list[str], n: int) -> dict[str, Callable[[Path, Ports], list[str]]]:
    """Name to what makes its command."""
    def filled(command: str) -> Callable[[Path, Ports], list[str]]:
        return lambda work, p: commands.fill(command, work=work, port=p.port, admin=p.admin, hang=p.hang, ok=p.ok,
                                             up=p.hang, limit=n + 100)

    return {
        "nginx": lambda work, p: confs.nginx_relay(work, p.port, {"HANG": p.hang, "OK": p.ok}),
        "haproxy": lambda work, p: confs.haproxy_relay(work, p.port, {"HANG": p.hang, "OK": p.ok}),
        "aiohttp": filled(f"{{python}} {commands.RIVALS / 'aiohttp_proxy.py'} {{port}} HANG={{hang}} OK={{ok}}"),
        "hub": filled(HUB),
        **{name: filled(command) for name, command in commands.parse_commands(given).items()},
    }


def tasks(admin: int) -> int | None:
    """The hub's number of asyncio tasks, from its admin port; ``None`` where a relay has none to tell."""
    answer = load.get_json(admin, "/api/v1/snapshot")
    value = answer.get("hub", {}).get("tasks") if isinstance(answer, dict) else None
    return value if isinstance(value, int) else None


def wait_hung(hang: int, n: int, limit: float = 15.0) -> int:
    """Wait until ``n`` requests have reached the hung target; how many have."""
    end, seen = time.monotonic() + limit, 0
    while seen < n and time.monotonic() < end:
        time.sleep(0.1)
        seen = int(load.get(hang, "/waiting")[1])
    return seen


def idle_cpu(r: procs.Running) -> float:
    """Share of a core it takes while nothing happens but waiting."""
    began, used = time.monotonic(), sum(r.cpu())
    time.sleep(IDLE_SECONDS)
    return (sum(r.cpu()) - used) / (time.monotonic() - began)


def probed(fleet: procs.Fleet, probe: load.Probe, count: int) -> tuple[list[float], float]:
    """Times of ``count`` requests, and the cores others used meanwhile; up to three tries for a quiet one."""
    def once() -> tuple[list[float], float]:
        watch = procs.Stopwatch(fleet)
        return probe.many(count), watch.foreign()

    return procs.calmest(once, lambda found: found[1], tries=3)


def measure(fleet: procs.Fleet, r: procs.Running, ports: Ports, n: int, probes: int) -> Scene:
    """Calm, then with ``n`` requests waiting."""
    failure = ""
    with closing(load.Probe(r.port, "/OK/1k")) as probe:
        probe.many(WARM)
        calm, foreign = probed(fleet, probe, probes)
        tasks0, rss0 = tasks(ports.admin), r.rss_kib()
        with closing(load.Waiting(r.port, "/HANG/hang", n)) as waiting:
            waited = wait_hung(ports.hang, n)
            time.sleep(1)
            rss1, cpu = r.rss_kib(), idle_cpu(r)
            try:
                during, foreign1 = probed(fleet, probe, probes)
            except OSError as e:
                during, foreign1, failure = calm, 0.0, f"the other target failed meanwhile: {e}"
            tasks1, early = tasks(ports.admin), waiting.answered()
    if waited < n or early:
        failure = failure or f"of {n} requests {waited} reached the hung target and {early} were answered early"
    return Scene(r.name, (rss1 - rss0) / n, rss1, cpu, calm, during, (tasks0, tasks1), max(foreign, foreign1), failure)


def scene(fleet: procs.Fleet, name: str, a: argparse.Namespace, ports: Ports, core: str | None) -> Scene | None:
    """Start one relay, measure it, stop it; ``None`` when it does not work, with a word why."""
    argv = builders(a.cmd, a.n)[name](fleet.folder(name), ports)
    r = fleet.start(name, argv, ports.port, core)
    try:
        load.wait_ready(r, "/OK/1k")
        return measure(fleet, r, ports, a.n, a.probes)
    except (procs.BenchError, OSError) as e:
        if isinstance(e, procs.TimeLimitError):
            raise
        print(f"# left out: {name}: {e}", file=sys.stderr)
        return None
    finally:
        fleet.stop(r)


def all_scenes(a: argparse.Namespace, names: Sequence[str]) -> list[Scene]:
    """Every repetition of every relay, interleaved."""
    cores, found, broken = procs.choose_cores(a.cpus), [], set()
    print(f"{tools.machine_line()}; {cores}")
    with procs.Fleet() as fleet, procs.on_core(cores.load):
        hang, ok = procs.free_port(), procs.free_port()
        hung = commands.fill("{python} {rivals}/hung_target.py {port}", rivals=commands.RIVALS, port=hang)
        fleet.start("hung", hung, hang, cores.target)
        fleet.start("ok", confs.nginx_target(fleet.folder("ok"), ok), ok, cores.target)
        for target in fleet.running:
            load.wait_ready(target)
        for turn in range(a.repeat):
            for name in (x for x in names if x not in broken):
                ports = Ports(procs.free_port(), procs.free_port(), hang, ok)
                s = scene(fleet, name, a, ports, cores.relay)
                if s is None:
                    broken.add(name)
                    continue
                found.append(s)
                print(f"# repetition {turn + 1} {name}: {s.kib:.1f} KiB each, CPU {s.cpu:.1%}, "
                      f"p99 x {s.p99_ratio:.2f}, others took {s.foreign:.2f} core {s.failure}",
                      file=sys.stderr, flush=True)
    return found


def row(name: str, mine: Sequence[Scene]) -> list[str]:
    """One relay's line of the table."""
    def ms(part: str, share: float) -> str:
        return verdict.num(statistics.median(verdict.quantile(getattr(s, part), share) for s in mine) * 1e3, 2)

    counts = {s.tasks for s in mine if s.tasks[0] is not None}
    return [name, verdict.num(statistics.median(s.kib for s in mine)),
            verdict.num(max(s.rss_kib for s in mine) / 1024, 0), f"{statistics.median(s.cpu for s in mine):.1%}",
            f"{ms('calm', 0.5)} / {ms('calm', 0.99)}", f"{ms('during', 0.5)} / {ms('during', 0.99)}",
            verdict.num(statistics.median(s.p99_ratio for s in mine), 2),
            "; ".join(sorted(f"{before} → {after}" for before, after in counts)) or "-"]


def judge(mine: Sequence[Scene], n: int) -> list[verdict.Verdict]:
    """The hub's figures against their limits."""
    why = next((s.failure for s in mine if s.failure), "")
    grown = [b - a for a, b in (s.tasks for s in mine) if a is not None and b is not None]
    tasks_why = why or ("" if grown else "no hub.tasks at /api/v1/snapshot of the admin port")
    return [
        verdict.Verdict(f"hub memory per waiting request ({n:,} waiting)", verdict.median(s.kib for s in mine), MAX_KIB,
                        unit=" KiB", why=why),
        verdict.Verdict("hub CPU while they wait", verdict.median(s.cpu * 100 for s in mine), unit=" % of a core",
                        why=why),
        verdict.Verdict("hub asyncio tasks more than when calm", verdict.median(map(float, grown)), 0, why=tasks_why),
        verdict.Verdict("hub p99 of the other target / its calm p99", verdict.median(s.p99_ratio for s in mine),
                        MAX_P99, why=why),
    ]


def run(argv: Sequence[str] | None = None) -> list[verdict.Verdict]:
    """Measure, print the table, and return the verdicts."""
    a = arguments(argv)
    tools.widen_path()
    names = commands.choose(a.contenders, a.cmd, builders(a.cmd, a.n))
    procs.want_files(2 * a.n + 500)
    gc.freeze()
    with procs.bounded(60 + a.repeat * len(names) * (60 + a.probes * 0.06)):
        scenes = all_scenes(a, names)
    print(f"\n### {a.n:,} requests waiting for a hung target, medians of {a.repeat}\n")
    head = ("relay", "KiB per waiting request", "RSS MiB", "CPU of a core", "other target calm, p50 / p99 ms",
            "meanwhile, p50 / p99 ms", "p99 ratio", "tasks")
    groups = {n: [s for s in scenes if s.name == n] for n in names}
    print(verdict.table(head, (row(n, mine) for n, mine in groups.items() if mine)) + "\n")
    if (foreign := verdict.median(s.foreign for s in scenes)) is not None:
        print(f"Other processes took {foreign:.2f} of a core (median). Over 0.1 the p99s mean little.\n")
    verdicts = judge(groups["hub"], a.n) if "hub" in groups else []
    print("\n".join(map(str, verdicts)))
    return verdicts


if __name__ == "__main__":
    sys.exit(procs.main_guard(lambda: 0 if all(v.held for v in run()) else 1))
