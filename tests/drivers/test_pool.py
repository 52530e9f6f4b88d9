"""Each call under a limit has a thread to itself at once; threads are used again, end, and keep no process from ending."""

from __future__ import annotations

import gc
import operator
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator

import pytest

from seawall import NoThreadError, Timeout, TimeoutExceededError
from seawall.drivers import pool
from tests.drivers.permit import Permit, short_idle
from tests.forks import in_forked_child
from tests.lines import until
from tests.policies.hung import Hung, hung

__all__ = ["hung", "short_idle"]

forks = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    # 3.12 and newer warn of just what is tested here.
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]


def workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("seawall-")]


# -- threads
def test_calls_one_after_another_use_one_thread() -> None:
    limit = Timeout(30.0)
    threads = {limit.call(threading.current_thread) for _ in range(50)}
    [thread] = threads
    assert thread.daemon
    assert thread.name.startswith("seawall-")


@pytest.mark.fault("F34")
def test_no_call_waits_for_a_thread(hung: Hung) -> None:
    """Forty hang at once, and the next one runs."""
    limit = Timeout(30.0)
    callers = [threading.Thread(target=limit.call, args=(hung,)) for _ in range(40)]
    for caller in callers:
        caller.start()
    until(lambda: hung.inside == 40)
    assert limit.call(str, 7) == "7"
    hung.let_go()
    for caller in callers:
        caller.join(30)
    assert limit.abandoned_total == 0


@pytest.mark.usefixtures("short_idle")
def test_threads_with_nothing_to_do_end() -> None:
    limit = Timeout(30.0)
    meeting = threading.Barrier(5)
    callers = [threading.Thread(target=limit.call, args=(meeting.wait, 30)) for _ in range(5)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(30)
    mine = limit.call(threading.current_thread)
    until(lambda: not mine.is_alive() and not pool._pool.idle)


@pytest.mark.usefixtures("fast_switching")
def test_a_thread_that_is_taken_in_the_moment_it_ends_makes_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE", 0.0005)
    monkeypatch.setattr(pool._pool, "idle", {})
    limit = Timeout(30.0)

    def calls() -> None:
        for number in range(300):
            results.append(limit.call(operator.sub, number, number))
            if number % 3 == 0:
                time.sleep(0.0005)

    results: list[int] = []
    callers = [threading.Thread(target=calls) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert results == [0] * 1200
    until(lambda: not pool._pool.idle)


def test_one_that_has_just_ended_is_passed_over() -> None:
    ended = pool._Worker()
    ended.free.clear()
    pool._pool.idle[ended] = None
    assert Timeout(30.0).call(str, 7) == "7"
    assert ended not in pool._pool.idle


def test_where_no_thread_can_be_started_the_call_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoThread:
        def __init__(self, **_: object) -> None:
            pass

        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(pool, "Thread", NoThread)
    monkeypatch.setattr(pool._pool, "idle", {})
    limit, permit = Timeout(30.0, name="CORE"), Permit()
    with pytest.raises(NoThreadError) as caught:
        permit.call(limit, pytest.fail)
    assert str(caught.value) == "CORE was not called: no thread to run it in (can't start new thread)"
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert (permit.free, limit.abandoned_total) == (["caller"], 0)


# -- nothing is kept
class Thing:
    """Can be referred to weakly."""


@pytest.fixture
def no_collector() -> Iterator[None]:
    """What forms a cycle stays."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
def test_when_a_call_has_returned_nothing_of_it_is_kept() -> None:
    thing, answer = Thing(), Thing()
    refs = [weakref.ref(thing), weakref.ref(answer)]
    answers = [answer]
    del answer
    result = Timeout(30.0).call(lambda _: answers.pop(), thing)
    assert result is refs[1]()
    del thing, result
    assert [ref() for ref in refs] == [None, None]


@pytest.mark.usefixtures("no_collector")
def test_an_error_is_in_no_cycle() -> None:
    def fail(thing: Thing) -> None:
        raise OSError

    thing = Thing()
    ref = weakref.ref(thing)
    try:
        Timeout(30.0).call(fail, thing)
    except OSError as error:
        held = error
    del thing
    assert ref() is not None  # by the traceback, as without a limit
    del held
    assert ref() is None


@pytest.mark.usefixtures("no_collector")
def test_what_an_abandoned_call_returns_is_dropped_when_it_returns() -> None:
    def call() -> Thing:
        gate.wait(30)
        thing = Thing()
        refs.append(weakref.ref(thing))
        return thing

    gate = threading.Event()
    refs: list[weakref.ref[Thing]] = []
    limit = Timeout(0.01)
    with pytest.raises(TimeoutExceededError) as caught:
        limit.call(call)
    gate.set()
    until(lambda: refs and refs[0]() is None)
    assert caught.value.__traceback__ is not None  # it is kept, and does not keep it


# -- processes
@pytest.mark.fault("F49")
@pytest.mark.parametrize("_", [pytest.param(None, marks=forks, id="")])
def test_a_child_starts_without_threads_and_with_nothing_abandoned(_: None, hung: Hung) -> None:
    limit, permit = Timeout(0.02, max_abandoned=1), Permit()
    patient = Timeout(30.0)
    with pytest.raises(TimeoutExceededError):
        permit.call(limit, hung)
    patient.call(str, 7)
    assert pool._pool.idle

    def child() -> None:
        assert (limit.abandoned, limit.abandoned_total) == (0, 1)
        assert not pool._pool.idle
        assert patient.call(threading.current_thread) is patient.call(threading.current_thread)
        with pytest.raises(TimeoutExceededError):
            limit.call(threading.Event().wait, 60)
        with pytest.raises(NoThreadError):
            limit.call(str)

    in_forked_child(child)
    assert (limit.abandoned, limit.abandoned_total, permit.free) == (1, 1, [])
    hung.let_go()
    until(lambda: not limit.abandoned)
    assert permit.free == ["late"]


@pytest.mark.fault("F49")
@pytest.mark.parametrize("_", [pytest.param(None, marks=forks, id="")])
def test_a_call_that_forks_ends_in_both(_: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the child its thread is the only one, and ends with it: so does the child."""
    monkeypatch.setattr(pool, "IDLE", 3600.0)
    pid = Timeout(30.0).call(os.fork)
    ended = (0, 0)

    def has_ended() -> bool:
        nonlocal ended
        ended = os.waitpid(pid, os.WNOHANG)
        return ended[0] == pid

    until(has_ended)
    assert ended == (pid, 0)
    Timeout(30.0).call(in_forked_child, lambda: Timeout(30.0).call(str, 7))


def in_a_program(code: str) -> str:
    """What ``code`` prints in a process of its own, which has to end by itself."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60,
                          check=False, env={"PYTHONPATH": "src"})
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_call_that_hangs_does_not_keep_the_process_from_ending() -> None:
    assert in_a_program(
        "import atexit, time, seawall\n"
        "limit = seawall.Timeout(30.0)\n"
        "atexit.register(lambda: print(limit.call(str, 'the end')))\n"
        "try: seawall.Timeout(0.01).call(time.sleep, 600)\n"
        "except seawall.TimeoutExceededError as error: print(error)\n"
        "limit.call(int)\n"
    ) == "no answer within 0.01 s\nthe end\n"


def test_a_limit_in_threads_imports_no_event_loop_and_no_other_pool() -> None:
    program = "import sys, seawall; seawall.Timeout(30.0)(lambda: 7)(); print({'asyncio', 'concurrent'} & set(sys.modules))"
    assert in_a_program(program) == "set()\n"
