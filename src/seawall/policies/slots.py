"""What a bulkhead hands out: slots, tickets, and its settings and snapshot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias, final

from ..amounts import is_amount
from ..errors import ConfigError

__all__ = ["FRESH", "USED", "BulkheadSettings", "BulkheadSnapshot", "ByHand", "Holder", "Slots", "Ticket"]

FRESH, USED = None, True
Slots: TypeAlias = "list[bool | None]"


class Holder(Protocol):
    """What a slot is given to. ``held`` is where it goes back to, ``None`` while there is none."""

    held: Slots | None


@final
class Ticket:
    """A place in the line.

    Who waits sets ``wake``, then looks at ``granted``; who grants sets ``granted``, then looks at ``wake``.
    """

    __slots__ = ("budget", "granted", "holder", "left", "wake")

    def __init__(self, holder: Holder, budget: float | None = None) -> None:
        self.holder = holder
        self.budget = budget
        self.granted = False
        self.left = False
        self.wake: Callable[[], object] | None = None


@final
class ByHand:
    """Holds a slot taken by ``acquire()`` until the waiting is over; from then on it is the caller's to release."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held: Slots | None = None


class BulkheadSettings(NamedTuple):
    """The numbers of a bulkhead; see :class:`Bulkhead`."""

    max_concurrent: int
    max_queue: int | None
    max_wait: float | None

    def checked(self) -> BulkheadSettings:
        """These settings, or :class:`~seawall.ConfigError` naming every fault at once."""
        faults = []
        if type(self.max_concurrent) is not int or self.max_concurrent < 1:
            faults.append(f"max_concurrent is the number of calls at once, 1 or more, not {self.max_concurrent!r}")
        if self.max_queue is not None and (type(self.max_queue) is not int or self.max_queue < 0):
            faults.append(f"max_queue is 0 (refuse at once) or more, or None (no bound), not {self.max_queue!r}")
        if self.max_wait is not None and not is_amount(self.max_wait):
            faults.append(f"max_wait is in seconds, 0 or more, or None (no bound), not {self.max_wait!r}")
        if faults:
            raise ConfigError("; ".join(faults))
        return self


@dataclass(frozen=True, slots=True)
class BulkheadSnapshot:
    """Exact at rest; while calls run, each number is exact for some moment during the reading."""

    name: str
    max_concurrent: int
    max_queue: int | None
    started: int
    in_flight: int
    waiting: int
    completed: int
    rejected: int
    peak_active: int
    admitted_waiters: int
