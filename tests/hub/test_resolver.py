"""One target's hanging resolver delays nobody else, and what is known keeps serving."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from seawall.hub.resolver import Addresses, Resolver, Waiter

WAIT = 30.0  # bound of every wait; far more than is needed

Answer = list[str] | Exception


def info(ip: str, port: int) -> tuple[Any, ...]:
    return (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (ip, port))


def known(*ips: str) -> Addresses:
    return tuple((socket.AF_INET, (ip, 80)) for ip in ips)


class Script:
    """A lookup that gives its answers one after another, the last for ever; `hang` makes it wait for the end."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.calls = 0
        self.threads: list[str] = []
        self.hang = False
        self.asked = threading.Event()
        self.release = threading.Event()

    def __call__(self, host: str, port: int, *, type: int) -> list[tuple[Any, ...]]:
        assert type == socket.SOCK_STREAM
        self.calls += 1
        self.threads.append(threading.current_thread().name)
        self.asked.set()
        if self.hang:
            assert self.release.wait(WAIT)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return [info(ip, port) for ip in answer]


def lookups() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("seawall-resolve")]


def settle() -> None:
    """Wait until no lookup is under way."""
    for thread in lookups():
        thread.join(WAIT)
        assert not thread.is_alive()


@pytest.fixture
def hanging() -> Iterator[Script]:
    script = Script(["10.0.0.1"])
    script.hang = True
    yield script
    script.release.set()
    settle()


async def first(resolver: Resolver) -> Addresses | OSError:
    answer: asyncio.Future[Addresses | OSError] = asyncio.get_running_loop().create_future()
    resolver.when_known(asyncio.get_running_loop(), answer.set_result)
    return await asyncio.wait_for(answer, WAIT)


@pytest.mark.fault("F53")
def test_a_hanging_resolver_delays_no_other_target(hanging: Script) -> None:
    """64 connects wait for CORE's name, more than any shared pool has threads; CLAIM is answered meanwhile."""
    core, claim = Resolver("core.test", 80, lookup=hanging), Resolver("claim.test", 80, lookup=Script(["10.0.0.2"]))

    async def run() -> None:
        loop = asyncio.get_running_loop()
        answers: list[Addresses | OSError] = []
        for _ in range(64):
            core.when_known(loop, answers.append)
        assert await first(claim) == known("10.0.0.2")
        assert (answers, hanging.calls, len(lookups())) == ([], 1, 1)
        assert all(thread.daemon for thread in lookups()), "would keep the program from ending"
        hanging.release.set()
        assert await first(core) == known("10.0.0.1")
        assert answers == [known("10.0.0.1")] * 64

    asyncio.run(run())
    assert hanging.threads == ["seawall-resolve core.test"]


@pytest.mark.parametrize(
    ("host", "family", "address"),
    [("127.0.0.1", socket.AF_INET, ("127.0.0.1", 80)), ("::1", socket.AF_INET6, ("::1", 80, 0, 0))],
)
def test_a_literal_is_answered_at_once_without_a_thread(host: str, family: int, address: tuple[Any, ...]) -> None:
    def never(*args: object, **options: object) -> list[tuple[Any, ...]]:
        raise AssertionError("asked for a literal")

    resolver = Resolver(host, 80, lookup=never)
    assert resolver.addresses(0.0) == ((family, address),)
    assert resolver.addresses(1e9) == ((family, address),)
    assert asyncio.run(first(resolver)) == ((family, address),)
    assert (lookups(), resolver.error) == ([], None)


def test_nothing_is_known_before_the_first_answer_and_one_lookup_runs(hanging: Script) -> None:
    resolver = Resolver("core.test", 80, lookup=hanging)
    assert [resolver.addresses(float(now)) for now in range(100)] == [None] * 100
    hanging.release.set()
    settle()
    assert resolver.addresses(0.0) == known("10.0.0.1")
    assert hanging.calls == 1


@pytest.mark.fault("F53")
def test_stale_addresses_serve_while_the_refresh_hangs() -> None:
    script = Script(["10.0.0.1"], ["10.0.0.9"])
    resolver = Resolver("core.test", 80, lookup=script, refresh=30.0)
    resolver.addresses(100.0)
    settle()
    try:
        script.hang = True
        assert resolver.addresses(129.9) == known("10.0.0.1")
        assert script.calls == 1
        script.asked.clear()
        assert [resolver.addresses(now) for now in (130.0, 200.0, 5000.0)] == [known("10.0.0.1")] * 3
        assert script.asked.wait(WAIT)
        assert asyncio.run(first(resolver)) == known("10.0.0.1")
        assert script.calls == 2
    finally:
        script.release.set()
        settle()
    assert resolver.addresses(130.0) == known("10.0.0.9")


def test_a_failure_is_kept_for_a_second_then_asked_again() -> None:
    script = Script(socket.gaierror(socket.EAI_AGAIN, "try again"), ["10.0.0.1"])
    resolver = Resolver("core.test", 80, lookup=script)
    good = known("10.0.0.1")
    table = [(0.0, None, 1), (0.99, None, 1), (1.0, None, 2), (1.01, good, 2), (30.9, good, 2)]
    for now, expected, calls in table:
        assert resolver.addresses(now) == expected
        settle()
        assert script.calls == calls
        assert (resolver.error is None) == (calls == 2)
    resolver.addresses(31.0)
    settle()
    assert script.calls == 3


def test_the_last_good_addresses_outlive_failures() -> None:
    script = Script(["10.0.0.1"], OSError("down"), OSError("down"), ["10.0.0.2"])
    resolver = Resolver("core.test", 80, lookup=script, refresh=30.0)
    for now, calls, failed in [(0.0, 1, False), (30.0, 2, True), (30.5, 2, True), (31.0, 3, True), (32.0, 4, False)]:
        resolver.addresses(now)
        settle()
        assert (script.calls, resolver.error is not None) == (calls, failed)
        assert resolver.addresses(now) == known("10.0.0.2" if calls == 4 else "10.0.0.1")


def test_who_waits_hears_of_the_failure_and_later_of_the_success() -> None:
    refused = socket.gaierror(socket.EAI_NONAME, "not known")
    script = Script(refused, ["10.0.0.1"])
    resolver = Resolver("core.test", 80, lookup=script)

    async def run() -> None:
        assert await first(resolver) is refused
        assert resolver.error is refused
        resolver.addresses(asyncio.get_running_loop().time() + 2.0)
        assert await first(resolver) == known("10.0.0.1")

    asyncio.run(run())


@pytest.mark.parametrize(
    "answer", [UnicodeError("label too long"), RuntimeError("broken"), []], ids=["unicode", "broken", "empty"]
)
def test_whatever_goes_wrong_is_an_os_error_that_names_the_host(answer: Answer) -> None:
    error = asyncio.run(first(Resolver("core.test", 80, lookup=Script(answer))))
    assert isinstance(error, OSError)
    assert "core.test" in str(error)


def test_what_cannot_be_a_name_fails_without_an_unhandled_error() -> None:
    assert isinstance(asyncio.run(first(Resolver("a" * 64 + ".test", 80))), OSError)


def test_no_thread_left_is_a_failed_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    resolver = Resolver("core.test", 80, lookup=Script(["10.0.0.1"]))
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert resolver.addresses(0.0) is None
    assert "can't start new thread" in str(resolver.error)
    monkeypatch.undo()
    resolver.addresses(1.0)
    settle()
    assert resolver.addresses(1.0) == known("10.0.0.1")


def test_addresses_come_in_order_without_repetitions() -> None:
    resolver = Resolver("core.test", 80, lookup=Script(["10.0.0.2", "10.0.0.1", "10.0.0.2"]))
    resolver.addresses(0.0)
    settle()
    assert resolver.addresses(0.0) == known("10.0.0.2", "10.0.0.1")


def test_the_callback_runs_once_and_never_from_within_the_call() -> None:
    resolver = Resolver("127.0.0.1", 80)

    async def run() -> None:
        answers: list[Addresses | OSError] = []
        resolver.when_known(asyncio.get_running_loop(), answers.append)
        assert answers == []
        await first(resolver)
        await first(resolver)
        assert answers == [known("127.0.0.1")]

    asyncio.run(run())


def test_a_cancelled_waiter_hears_nothing_and_is_not_held(hanging: Script) -> None:
    resolver = Resolver("core.test", 80, lookup=hanging)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        answers: list[Addresses | OSError] = []
        for _ in range(1000):
            resolver.when_known(loop, answers.append).cancel()
        assert len(resolver._waiters) == 1
        kept: list[Addresses | OSError] = []
        resolver.when_known(loop, kept.append)
        hanging.release.set()
        await first(resolver)
        assert (answers, kept) == ([], [known("10.0.0.1")])

    asyncio.run(run())


def test_a_closed_loop_is_ignored(hanging: Script) -> None:
    resolver = Resolver("core.test", 80, lookup=hanging)
    answers: list[Addresses | OSError] = []

    async def ask(callback: Callable[[Addresses | OSError], object]) -> Waiter:
        return resolver.when_known(asyncio.get_running_loop(), callback)

    waiter = asyncio.run(ask(answers.append))
    hanging.release.set()
    settle()
    assert (answers, waiter.cancelled) == ([], True)
    assert asyncio.run(first(resolver)) == known("10.0.0.1")
