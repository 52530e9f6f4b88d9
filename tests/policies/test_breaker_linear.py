"""Two things done at once to a breaker end as if one had been done after the other, whatever the moment they meet.

One of them is stopped at each single point where threads can change places, while another thread does the other. Only a
failure that trips is, on purpose, two steps to a reader: counted, and then acted on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest

from seawall import CircuitBreaker, CircuitOpenError
from seawall.outcome import CUT, FAILURE
from tests.clock import ManualClock
from tests.points import at_each_point, untouched

LONGEST = 30.0  # s


class Knocking:
    """A lock that says when somebody has to wait for it: then the other one may go on."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.somebody_waits = threading.Event()

    def __enter__(self) -> None:
        if not self.lock.acquire(blocking=False):
            self.somebody_waits.set()
            assert self.lock.acquire(timeout=LONGEST)

    def __exit__(self, *error: object) -> None:
        self.lock.release()


class Scene:
    """A breaker in some state, tokens in hand, and all that can be seen of it afterwards."""

    def __init__(self, state: str) -> None:
        self.clock = ManualClock(100.0)
        self.breaker = CircuitBreaker(2, 10.0, self.clock, trial_lease=5.0, name="CORE")
        self.knocking = Knocking()
        assert self.breaker.failures == 0  # the first to ask has the lock made
        self.breaker._made_lock = self.knocking  # type: ignore[assignment]  # stands in for it
        self.tokens = [self.breaker.admit() for _ in range(3)]
        self.breaker.record_failure()
        if state == "about to be cut":
            self.breaker.settle(self.breaker.admit(), CUT, began=0.0)
        if state in ("half-open", "trial taken by hand", "lease over", "due"):
            self.breaker.record_failure()
            self.clock.set(110.0)
        if state == "half-open":
            self.tokens = [self.breaker.admit()]
        if state in ("trial taken by hand", "lease over"):
            assert self.breaker.allow()
        if state == "lease over":
            self.clock.set(115.0)
        self.told: list[tuple[str, str]] = []
        self.breaker.listen(lambda event: self.told.append((event.old, event.new)))
        self.said: dict[str, Any] = {}

    def do(self, name: str) -> None:
        try:
            self.said[name] = ACTS[name](self)
        except CircuitOpenError as error:
            self.said[name] = str(error)

    def seen(self) -> object:
        return sorted(self.said.items()), self.look(), self.told, self.breaker.fast is not None

    def look(self) -> tuple[object, ...]:
        """A snapshot, without the two that count calls and not changes: those go up a step before or after the change."""
        shot = self.breaker.snapshot()
        return shot.state, shot.mode, shot.failures, shot.retry_at, shot.retry_after, shot.trials, shot.opened, shot.reason


ACTS: dict[str, Callable[[Scene], object]] = {
    "fail": lambda scene: scene.breaker.settle(scene.tokens[0], FAILURE, "E901"),
    "cut": lambda scene: scene.breaker.settle(scene.tokens[2], CUT, began=0.0),
    "cut too": lambda scene: scene.breaker.settle(scene.tokens[1], CUT, began=1.0),
    "report success": lambda scene: scene.breaker.record_success(),
    "report failure": lambda scene: scene.breaker.record_failure("E903"),
    "allow": lambda scene: scene.breaker.allow(),
    "allow too": lambda scene: scene.breaker.allow(),
    "reset": lambda scene: scene.breaker.reset(),
    "force open": lambda scene: scene.breaker.set_mode("FORCED_OPEN"),
    "force closed": lambda scene: scene.breaker.set_mode("FORCED_CLOSED"),
    "disable": lambda scene: scene.breaker.set_mode("DISABLED"),
    "configure": lambda scene: scene.breaker.configure(scene.breaker.settings._replace(reset_timeout=50.0)),
    "look": lambda scene: scene.look(),
    "read failures": lambda scene: scene.breaker.failures,
    "read retry_after": lambda scene: scene.breaker.retry_after,
}

MEETINGS: dict[str, list[str]] = {
    "one failure": ["fail", "reset", "force open", "disable", "read failures"],
    "about to be cut": ["cut", "cut too", "configure", "look"],
    "due": ["allow", "allow too", "look", "read retry_after"],
    "half-open": ["fail", "reset", "disable", "force closed", "look", "read retry_after"],
    "trial taken by hand": ["report success", "report failure", "reset", "allow"],
    "lease over": ["allow", "report success", "configure", "force open"],
}


@pytest.mark.req("HUB-2")
@pytest.mark.fault("F03", "F50")
@pytest.mark.parametrize("state", MEETINGS)
def test_as_if_one_came_after_the_other(state: str) -> None:
    for first, second in permutations(MEETINGS[state], 2):
        allowed = [in_order(state, first, second), in_order(state, second, first)]

        def once(
            struck: Callable[[Callable[[], object]], None], first: str = first, second: str = second,
            allowed: list[object] = allowed,
        ) -> None:
            seen = met(state, struck, first, second)
            assert seen in allowed, f"{state}: {second!r} in the middle of {first!r}"

        at_each_point(once, meet)


def in_order(state: str, *names: str) -> object:
    scene = Scene(state)
    for name in names:
        scene.do(name)
    return scene.seen()


meeting: list[Callable[[], None]] = []  # what the other thread does at the point


def meet() -> None:
    with untouched():
        meeting.pop()()


def met(state: str, struck: Callable[[Callable[[], object]], None], first: str, second: str) -> object:
    scene = Scene(state)
    go_on = scene.knocking.somebody_waits
    others: list[threading.Thread] = []

    def run() -> None:
        scene.do(second)
        go_on.set()

    def strike() -> None:
        others.append(threading.Thread(target=run))
        others[0].start()
        assert go_on.wait(LONGEST)

    meeting[:] = [strike]
    struck(lambda: scene.do(first))
    for other in others:
        other.join(LONGEST)
    if not others:  # beyond the last point
        scene.do(second)
    return scene.seen()
