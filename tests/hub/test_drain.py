"""SIGTERM: what is here, and what is on its way, is served to its end; then the hub ends and says what it had to cut."""

from __future__ import annotations

import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from seawall.faults.running import RunningTarget, running_target
from tests.hub.bed import LOOPS, Caller, HubProcess, ask, hub_process

TX = b'{"target": "CORE", "amount": 5}'
TERM, INT = signal.SIGTERM, signal.SIGINT


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "what was waited for has not come"
        time.sleep(0.005)


def refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except ConnectionRefusedError:
        return True
    return False


class Load:
    """A client that asks without a pause until it cannot connect any more.

    Attributes:
        answered: Requests that were answered, whole.
        lost: What happened to requests that were sent and not answered: there must be none.
    """

    def __init__(self, port: int, keep: bool) -> None:
        self.port, self.keep = port, keep
        self.answered = 0
        self.lost: list[str] = []
        self.last: list[str | None] = []
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        caller: Caller | None = None
        while True:
            try:
                caller = caller or Caller(self.port)
            except OSError:
                return
            if select.select([caller.sock], [], [], 0)[0]:  # ended while nothing was asked: then ask on a new connection
                caller.close()
                caller = None
                continue
            try:
                answer = caller.ask("POST", "/tx", TX)
            except (OSError, EOFError) as error:
                self.lost.append(f"{type(error).__name__}: {error} after {self.answered}")
                return
            self.answered += 1
            self.last = [str(answer.status), answer.code, answer.headers.get("connection")]
            if self.last[2] == "close" or not self.keep:
                caller.close()
                caller = None


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("keep", [True, False], ids=["kept connections", "a connection each"])
def test_under_load_no_request_is_lost(keep: bool, loop: str, tmp_path: Path) -> None:
    """Each that was sent has a whole answer; after that nobody can connect, and the exit code says that nothing was cut."""
    with running_target() as core, hub_process(tmp_path, f"--target=CORE={core.url},max-inflight=100", loop=loop) as hub:
        core.ctl(mode="slow", delay_ms=5)
        clients = [Load(hub.port, keep) for _ in range(12)]
        until(lambda: all(client.answered > 10 for client in clients))
        hub.signal(TERM)
        for client in clients:
            client.thread.join(30)
        assert hub.wait() == 0
        assert [client.lost for client in clients] == [[]] * 12
        assert {tuple(client.last) for client in clients} <= {("200", "0000", "close"), ("200", "0000", None)}
        if keep:
            assert any(client.last[2] == "close" for client in clients)
        assert sum(client.answered for client in clients) == core.stats()["calls"]


@pytest.mark.parametrize(("loop", "number"), [("asyncio", TERM), ("uvloop", INT), ("uvloop", TERM)])
def test_what_runs_is_answered_and_what_is_idle_ends(number: signal.Signals, loop: str, tmp_path: Path) -> None:
    """The running one gets its answer with ``Connection: close``; an idle client's connection ends; nobody new comes in."""
    with running_target() as core, hub_process(tmp_path, f"--target=CORE={core.url}", loop=loop) as hub:
        with Caller(hub.port) as idle, Caller(hub.port) as busy, Caller(hub.port) as silent:
            assert "connection" not in idle.ask("POST", "/tx", TX).headers
            core.ctl(mode="slow", delay_ms=700)
            busy.begin("POST", "/tx", TX)
            core.wait_for(in_flight=1)
            hub.signal(number)
            assert idle.ended()
            assert silent.ended()
            assert refused(hub.port)
            answer = busy.answer()
            assert (answer.code, answer.headers["connection"]) == ("0000", "close")
            assert busy.ended()
        assert hub.wait() == 0


@pytest.mark.parametrize("loop", LOOPS)
def test_requests_sent_while_it_drains_on_kept_connections_are_served(loop: str, tmp_path: Path) -> None:
    """A request that had begun, and one sent ahead, are whole requests; each answer says that it is the last."""
    with running_target() as core, hub_process(tmp_path, f"--target=CORE={core.url}", loop=loop) as hub:
        with Caller(hub.port) as half, Caller(hub.port) as holder:
            core.ctl(mode="slow", delay_ms=600)
            holder.begin("POST", "/tx", TX)
            half.send(b"POST /tx HTTP/1.1\r\nHost: a\r\nContent-Le")
            core.wait_for(in_flight=1)
            hub.signal(TERM)
            until(lambda: refused(hub.port))
            core.ctl(mode="normal")
            half.send(b"ngth: %d\r\n\r\n%b" % (len(TX), TX))
            answer = half.answer()
            assert (answer.code, answer.headers["connection"]) == ("0000", "close")
            assert holder.answer().code == "0000"
        assert hub.wait() == 0


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("path", ["/tx", "/CORE/x"])
def test_what_does_not_end_in_time_is_cut_and_counted(path: str, loop: str, tmp_path: Path) -> None:
    """E908 after ``--drain-timeout``; exit code 1, and a line that says how many."""
    words = "--drain-timeout=0.3", "--read=60", "--budget-ms=60000"
    with running_target() as core, hub_process(tmp_path, f"--target=CORE={core.url}", *words, loop=loop) as hub:
        core.ctl(mode="hang")
        with Caller(hub.port) as one, Caller(hub.port) as two, Caller(hub.port) as three:
            one.begin("POST", path, TX)
            two.begin("POST", path, TX)
            three.begin("POST", "/tx", None, {"Content-Length": "100"})
            core.wait_for(in_flight=2)
            hub.signal(TERM)
            for caller in (one, two, three):
                answer = caller.answer()
                assert (answer.status, answer.code, answer.headers["connection"]) == (503, "E908", "close")
                assert caller.ended()
        assert hub.wait() == 1
        assert "drained; 3 requests did not end within 0.3 s and were cut" in hub.lines


def hung(core: RunningTarget, hub: HubProcess, caller: Caller) -> None:
    core.ctl(mode="hang")
    caller.begin("POST", "/tx", TX)
    core.wait_for(in_flight=1)


@pytest.mark.parametrize(("loop", "second"), [("asyncio", TERM), ("uvloop", INT)])
def test_a_second_signal_ends_it_at_once(second: signal.Signals, loop: str, tmp_path: Path) -> None:
    """Whoever sends it has waited enough: exit code 1, long before the drain timeout."""
    words = "--drain-timeout=3000", "--read=600", "--budget-ms=600000"
    with running_target() as core, hub_process(tmp_path, f"--target=CORE={core.url}", *words, loop=loop) as hub:
        with Caller(hub.port) as caller:
            hung(core, hub, caller)
            hub.signal(TERM)
            until(lambda: refused(hub.port))
            hub.signal(second)
            assert caller.ended()
        assert hub.wait() == 1
        assert "ended at once by a second signal" in hub.lines
        core.wait_for(in_flight=0)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_drain_delay_goes_on_as_before_but_says_that_it_is_not_ready(loop: str, tmp_path: Path) -> None:
    """So that whoever balances the load can look elsewhere first: new clients come in, connections stay."""
    words = "--drain-delay=2", "--health-path=/healthz"
    with running_target() as core, hub_process(tmp_path, f"--target=CORE={core.url}", *words, loop=loop) as hub:
        with Caller(hub.port) as kept:
            health = kept.ask("GET", "/healthz")
            assert (health.status, health.json()) == (200, {"ready": True})
            hub.signal(TERM)
            until(lambda: kept.ask("GET", "/healthz").status == 503)
            answers = [kept.ask("POST", "/tx", TX), ask(hub.port, "POST", "/tx", TX), kept.ask("GET", "/healthz")]
            assert [answer.status for answer in answers] == [200, 200, 503]
            assert answers[2].json() == {"ready": False}
            assert all("connection" not in answer.headers for answer in answers)
            assert kept.ended()
        assert hub.wait() == 0
        assert refused(hub.port)


def test_a_signal_with_nobody_there_ends_it_with_zero(tmp_path: Path) -> None:
    with hub_process(tmp_path, "--target=CORE=http://127.0.0.1:9") as hub:
        hub.signal(TERM)
        assert hub.wait() == 0
        assert hub.said() == ""
