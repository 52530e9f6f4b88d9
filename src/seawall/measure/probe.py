"""Three shapes of failure side by side: refused at once, no connection, no answer. How long each takes is the lesson."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from seawall.faults.loopback import black_hole, refusing, silent

from .call import call
from .called import REFUSED, Called, Interrupted
from .url import Url

__all__ = ["CONNECT", "KINDS", "READ", "Probed", "probe"]

CONNECT, READ = 0.3, 1.0  # s; long enough to be told from a refusal on a busy machine, short enough to wait for
KINDS = ("refused", "connect_timeout", "read_timeout")
_PAST = 1000  # ms that the partner sleeps longer than it is waited for


@dataclass(frozen=True, slots=True)
class Probed:
    """One shape, measured.

    Attributes:
        kind: Which it was to be, one of :data:`KINDS`.
        target: What was called.
        called: How that ended.
    """

    kind: str
    target: str
    called: Called

    @property
    def shown(self) -> bool:
        """Whether it ended in the way its kind says."""
        match self.kind:
            case "refused":
                return self.called.error == REFUSED
            case "connect_timeout":
                return self.called.limit == "connect"
            case _:
                return self.called.limit == "read"


def probe(
    *, connect: float = CONNECT, read: float = READ, unreachable: Url | None = None, partner: Url | None = None
) -> Iterator[Probed]:
    """Measure the three shapes, one after another. As it is, all of it happens on loopback.

    Args:
        connect: Seconds until a connection must stand (0.3).
        read: Seconds without a byte (1).
        unreachable: An address that never answers; default: a listener on loopback whose queue is full.
        partner: A ``seawall partner``, whose ``/slow`` sleeps longer than ``read``; default: a silent listener on loopback.

    Raises:
        OSError: There is no port to be had on loopback, or its queue does not fill up.
    """
    slow = None if partner is None else partner.below(f"/slow?ms={read * 1000 + _PAST:.0f}")
    for kind, place, given in (
        ("refused", refusing(), None), ("connect_timeout", black_hole(), unreachable), ("read_timeout", silent(), slow),
    ):  # fmt: skip
        with _url(place, given) as url:
            target = url.authority if given is None or kind != "read_timeout" else url.text
            try:
                called = call(url, connect=connect, read=read)
            except Interrupted as stop:
                yield Probed(kind, target, stop.called)
                raise
        yield Probed(kind, target, called)


@contextmanager
def _url(place: AbstractContextManager[int], given: Url | None) -> Iterator[Url]:
    """What is given, else a port of loopback that exists for as long as the block lasts."""
    if given is not None:
        yield given
        return
    with place as port:
        yield Url.at("127.0.0.1", port)
