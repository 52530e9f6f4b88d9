"""Calls one after another under one budget: none gets more than what is left, and the whole ends with it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf

from seawall.deadline import Deadline
from seawall.headers import FORMS

from .call import CONNECT, call
from .called import Called, Interrupted
from .url import Url

__all__ = ["Told", "fan_out", "in_turn"]

BUDGET = FORMS[0]


def in_turn(
    urls: Iterable[Url], deadline: Deadline, *, connect: float = CONNECT, min_ms: float = 0.0
) -> Iterator[Called]:
    """Call each URL; its read limit is what is left at that moment.

    Args:
        urls: In this order.
        deadline: The end of it all.
        connect: Seconds to connect, cut to what is left (0.3).
        min_ms: With less than that left, in milliseconds, a call is not made.

    Raises:
        Interrupted: Ctrl-C, after the call it fell into was given out as far as it had come.
    """
    for url in urls:
        try:
            called = call(url, connect=connect, read=inf, deadline=deadline, min_ms=min_ms)
        except Interrupted as stop:
            yield stop.called
            raise
        yield called


@dataclass(frozen=True, slots=True)
class Told:
    """A call that was told what is left.

    Attributes:
        sent: Whole milliseconds in its ``X-Budget-Ms``; 0 where nothing was left, and so nothing sent.
        called: How it ended.
    """

    sent: int
    called: Called

    @property
    def received(self) -> int | None:
        """The budget that the target says it received: ``received`` in its JSON; ``None`` where it says nothing."""
        try:
            answer = json.loads(self.called.body)
        except ValueError:
            return None
        received = answer.get("received") if isinstance(answer, dict) else None
        return received if isinstance(received, int) and not isinstance(received, bool) else None


def fan_out(url: Url, number: int, deadline: Deadline, *, connect: float = CONNECT) -> Iterator[Told]:
    """Call one URL ``number`` times, and tell it each time in ``X-Budget-Ms`` what is left: whole ms, rounded down.

    Args:
        url: Of a service that takes the header for its own limit, such as ``/budget?ms=200`` of ``seawall partner``.
        number: How often.
        deadline: The end of it all.
        connect: Seconds to connect, cut to what is left (0.3).

    Raises:
        Interrupted: Ctrl-C, after the call it fell into was given out as far as it had come.
    """
    for _ in range(number):
        told = BUDGET.write(deadline.remaining())
        try:
            # With less than a millisecond left there is nothing to tell, and no call: min_ms.
            called = call(
                url, connect=connect, read=inf, deadline=deadline, min_ms=1.0, headers=[(BUDGET.name, told)]
            )
        except Interrupted as stop:
            yield Told(int(told), stop.called)
            raise
        yield Told(int(told) if called.phase != "no_budget" else 0, called)
