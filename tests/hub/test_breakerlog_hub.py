"""The hub as it is run writes a line for each change of state, whole, once, in order, at once."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from seawall.faults.running import running_target
from seawall.policies.states import Mode
from tests.hub.bed import LOOPS, Caller, HubProcess, ask, hub_bed, hub_process

TX = {name: b'{"target": "%b", "amount": 5}' % name.encode() for name in ("CORE", "CLAIM")}
LINE = re.compile(r"([0-9T:.-]{23}[+-]\d\d:\d\d)\|([A-Z]+)\|(CLOSED|OPEN|HALF_OPEN)->(CLOSED|OPEN|HALF_OPEN)")


def changes(log: Path, name: str = "CORE") -> list[str]:
    """What the log says of a target so far; every line in it is whole."""
    text = log.read_text()
    assert text == "" or text.endswith("\n")
    lines = [LINE.fullmatch(line) for line in text.splitlines()]
    assert all(lines), text
    return [f"{line[3]}->{line[4]}" for line in lines if line is not None and line[2] == name]


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "what was waited for has not come"
        time.sleep(0.005)


@pytest.mark.req("HUB-6")
@pytest.mark.parametrize("loop", LOOPS)
def test_the_log_of_a_bad_day(loop: str, tmp_path: Path) -> None:
    """In the working directory unless told otherwise; five changes, five lines, with a time that says its offset."""
    log = tmp_path / "breaker.log"
    words = "--fail-threshold", "2", "--reset-timeout", "0.3"
    with running_target() as core, hub_process(tmp_path, f"--target=CORE={core.url}", *words, loop=loop) as hub:
        assert log.read_text() == ""  # there from the start: what cannot be written is said then
        began = datetime.now().astimezone()
        core.ctl(mode="fail")
        assert [ask(hub.port, "POST", "/tx", TX["CORE"]).code for _ in range(3)] == ["E500", "E500", "E904"]
        until(lambda: changes(log) == ["CLOSED->OPEN"])
        until(lambda: ask(hub.port, "POST", "/tx", TX["CORE"]).code == "E500")
        until(lambda: changes(log) == ["CLOSED->OPEN", "OPEN->HALF_OPEN", "HALF_OPEN->OPEN"])
        core.ctl(mode="normal")
        until(lambda: ask(hub.port, "POST", "/tx", TX["CORE"]).code == "0000")
        until(lambda: len(changes(log)) == 5)
        assert changes(log)[3:] == ["OPEN->HALF_OPEN", "HALF_OPEN->CLOSED"]
        times = [datetime.fromisoformat(line.split("|")[0]) for line in log.read_text().splitlines()]
        assert times == sorted(times)
        assert abs((times[0] - began).total_seconds()) < 60
        assert all(moment.tzinfo is not None for moment in times)
        hub.process.terminate()
        assert hub.wait() == 0
    assert len(changes(log)) == 5


@pytest.mark.req("HUB-6")
def test_under_many_callers_each_change_is_there_once_and_in_order(tmp_path: Path) -> None:
    """Two targets that flap, eight callers each: for each target every FROM is the TO before it."""
    log = tmp_path / "flaps.log"
    words = "--fail-threshold=1", "--reset-timeout=0.01", f"--breaker-log={log}"
    with running_target("CORE") as core, running_target("CLAIM") as claim:
        targets = f"--target=CORE={core.url}", f"--target=CLAIM={claim.url}"
        with hub_process(tmp_path, *targets, *words) as hub:
            over = threading.Event()

            def call(name: str) -> None:
                with Caller(hub.port) as caller:
                    while not over.is_set():
                        caller.ask("POST", "/tx", TX[name])

            threads = [threading.Thread(target=call, args=(name,), daemon=True) for name in ("CORE", "CLAIM") * 8]
            for thread in threads:
                thread.start()
            for number in range(20):
                for target in (core, claim):
                    target.ctl(mode="fail" if number % 2 else "normal")
                time.sleep(0.02)
            over.set()
            for thread in threads:
                thread.join(30)
            hub.process.terminate()
            assert hub.wait() == 0
    for name in ("CORE", "CLAIM"):
        told = [change.split("->") for change in changes(log, name)]
        assert len(told) > 10
        assert [old for old, _ in told] == ["CLOSED"] + [new for _, new in told[:-1]]
    assert not (tmp_path / "breaker.log").exists()


@pytest.mark.req("HUB-6")
@pytest.mark.parametrize("loop", LOOPS)
def test_the_log_says_exactly_what_the_breaker_did(loop: str) -> None:
    """Beside the breaker's own events, modes set by hand included, not one line more or less."""
    with running_target() as core, hub_bed(f"CORE={core.url},fail-threshold=1,reset-timeout=0.05", loop=loop) as bed:
        seen: list[str] = []
        bed.run(lambda hub: hub.backends["CORE"].target.listen(lambda event: seen.append(f"{event.old}->{event.new}")))
        for number in range(30):
            core.ctl(mode="fail" if number % 3 else "normal")
            ask(bed.port, "POST", "/tx", TX["CORE"])
            time.sleep(0.005)
        bed.run(lambda hub: hub.backends["CORE"].breaker.set_mode(Mode.FORCED_OPEN, "by hand"))
        bed.run(lambda hub: hub.backends["CORE"].breaker.set_mode(Mode.ENFORCE))
        assert bed.run(lambda hub: hub.breaker_log).flush(20)
        told = [line.split("|")[2] for line in bed.breaker_log.read_text().splitlines()]
        assert told == seen
        assert told[-2:] == ["ENFORCE->FORCED_OPEN", "FORCED_OPEN->ENFORCE"]
        assert len(told) > 4


@pytest.mark.req("HUB-6")
@pytest.mark.fault("F57")
def test_a_log_that_was_rotated_goes_on_in_its_new_file(tmp_path: Path) -> None:
    log = tmp_path / "breaker.log"
    words = "--fail-threshold=1", "--reset-timeout=0.1"
    with running_target() as core, hub_process(tmp_path, f"--target=CORE={core.url}", *words) as hub:
        core.ctl(mode="fail")
        ask(hub.port, "POST", "/tx", TX["CORE"])
        until(lambda: changes(log) == ["CLOSED->OPEN"])
        log.rename(tmp_path / "breaker.log.1")
        core.ctl(mode="normal")
        until(lambda: ask(hub.port, "POST", "/tx", TX["CORE"]).code == "0000")
        until(lambda: log.exists() and changes(log) == ["OPEN->HALF_OPEN", "HALF_OPEN->CLOSED"])
        assert changes(tmp_path / "breaker.log.1") == ["CLOSED->OPEN"]


@pytest.mark.req("HUB-6")
@pytest.mark.fault("F57")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_costs_lines_and_nothing_else(tmp_path: Path) -> None:
    """The circuit opens as ever; it is said once, on standard error."""
    os.symlink("/dev/full", tmp_path / "breaker.log")
    words = "--fail-threshold=1", "--reset-timeout=0.05"
    with running_target() as core, hub_process(tmp_path, f"--target=CORE={core.url}", *words) as hub:
        for number in range(20):
            core.ctl(mode="fail" if number % 2 else "normal")
            assert ask(hub.port, "POST", "/tx", TX["CORE"]).code in ("0000", "E500", "E904")
            time.sleep(0.01)
        hub.process.terminate()
        assert hub.wait() == 0
        assert hub.said().count("are being lost") == 1


def start(directory: Path, *words: str) -> HubProcess:
    """A hub that is not expected to come up."""
    process = HubProcess(["--admin", "off", *words], "uvloop", directory)
    try:
        process.process.wait(60)
    finally:
        process.end()
    return process


@pytest.mark.req("HUB-6")
def test_a_log_that_cannot_be_written_is_said_at_start(tmp_path: Path) -> None:
    """Exit code 2, the reason and what to do; nothing has listened."""
    words = "--listen=127.0.0.1:0", "--target=CORE=http://127.0.0.1:9", "--breaker-log=nowhere/breaker.log"
    hub = start(tmp_path, *words)
    assert hub.wait() == 2
    assert hub.said().splitlines()[0].startswith("error: cannot write the log nowhere/breaker.log")
    assert "hint: create its directory first, or name another file" in hub.said()
    assert hub.lines == []


def test_a_port_that_is_taken_is_said_at_start(tmp_path: Path) -> None:
    """Exit code 69."""
    with running_target() as core:
        hub = start(tmp_path, f"--listen=127.0.0.1:{core.port}", f"--target=CORE={core.url}")
    assert hub.wait() == 69
    assert f"error: cannot listen on 127.0.0.1:{core.port}" in hub.said()


@pytest.mark.parametrize("flag", ["--listen", "--admin"])
def test_of_two_places_only_the_one_that_is_taken_is_said(flag: str, tmp_path: Path) -> None:
    with running_target() as core:
        taken = f"127.0.0.1:{core.port}"
        places = {"--listen": "127.0.0.1:0", "--admin": "127.0.0.1:0"} | {flag: taken}
        words = [f"{name}={place}" for name, place in places.items()]
        hub = start(tmp_path, f"--target=CORE={core.url}", *words)
    assert hub.wait() == 69
    assert hub.said().splitlines()[0] == f"error: cannot listen on {taken} (address already in use)"
    assert hub.lines == []
