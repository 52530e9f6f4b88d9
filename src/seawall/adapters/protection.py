"""Which target a request is for, what the target is told, and whether the request may be sent again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple, TypeAlias

from ..amounts import is_amount
from ..errors import ConfigError
from ..headers import BudgetHeaders
from ..plan import IDEMPOTENT
from ..target import Target
from ..wall import Wall

__all__ = ["Protection", "Wish", "wall"]

wall = Wall()
"""Holds the targets of adapters that were given no wall: one for the process, so sync and async clients share circuits."""

TOLD = BudgetHeaders()  # what a callee is told unless something else is said
ORIGINS = 1024  # remembered; who crawls the net fills no memory with them
DEFAULT_PORTS = {"http": 80, "https": 443}

Naming: TypeAlias = "str | Mapping[str, str] | Callable[[str], str | None] | None"


class Wish(NamedTuple):
    """What one request asks for.

    Attributes:
        target: Name of its target; ``None``: as its host is called.
        idempotent: Whether doing its work twice does no harm; ``None``: as its method is, by RFC 9110.
    """

    target: str | None = None
    idempotent: bool | None = None


class Protection:
    """How the requests of one client are protected.

    Args:
        wall: Holds the targets. Default: :data:`seawall.adapters.wall`, one for the process.
        target: The name of the target: one for all requests, or a mapping of hosts (``"core.internal"``,
            ``"core.internal:8443"``) to names, or a function of the host that returns a name. Hosts without a name are
            targets by themselves. A target that the wall does not know yet is made with the wall's defaults: declare it
            before, by ``wall.target(...)``, to give it numbers of its own.
        headers: What the callee is told about the time that is left; ``None``: nothing. Default: ``X-Budget-Ms``.
        idempotent: Whether every request may be sent again. Default: those whose method is idempotent by RFC 9110, those
            with an ``Idempotency-Key``, and what certainly never left.
        total: Seconds that one attempt may take, from its admission to the last byte of its body; the target's own
            :class:`~seawall.Timeout` holds as well. Default: only that.
        first: Seconds until the first byte of the body. Default: as ``total``.
        gap: With ``total``: seconds between two parts of the body, once it has begun. Default: the client's own limit.

    Raises:
        ConfigError: ``total``, ``first`` or ``gap`` is no number of seconds, or ``gap`` stands without ``total``.

    Attributes:
        known: Targets by origin, :data:`ORIGINS` at the most.
    """

    __slots__ = ("_naming", "first", "gap", "idempotent", "known", "total", "wall", "wire")

    def __init__(
        self,
        wall: Wall | None = None,
        *,
        target: Naming = None,
        headers: BudgetHeaders | None = TOLD,
        idempotent: bool = False,
        total: float | None = None,
        first: float | None = None,
        gap: float | None = None,
    ) -> None:
        for word, value in (("total", total), ("first", first), ("gap", gap)):
            if value is not None and (not is_amount(value) or value == 0):
                raise ConfigError(f"{word} is in seconds, more than 0 and finite, not {value!r}")
        if gap is not None and total is None:
            raise ConfigError("gap= holds together with total=: say how long the whole may take")
        if wall is not None and not isinstance(wall, Wall):
            raise TypeError(f"the targets are held by a Wall, made by seawall.Wall(), not by {wall!r}")
        if not (target is None or isinstance(target, (str, Mapping)) or callable(target)):
            raise TypeError(f"target= takes a name, a mapping of hosts to names, or a function of the host, not {target!r}")
        self.wall = globals()["wall"] if wall is None else wall
        self.wire, self.idempotent, self.total, self.first, self.gap = headers, idempotent, total, first, gap
        self._naming = target
        self.known: dict[Hashable, Target] = {}

    @classmethod
    def of(cls, wall: Wall | Protection | None, options: dict[str, Any]) -> Protection:
        """What stands for ``wall`` and ``options`` in an adapter's arguments: ``wall`` may be a protection made before."""
        if not isinstance(wall, Protection):
            return cls(wall, **options)
        if options:
            raise TypeError(f"{', '.join(options)}: say it to the Protection(...) that is given instead of a wall")
        return wall

    def find(
        self, scheme: str, host: str, port: int | None, wish: Wish | None = None, origin: Hashable = None
    ) -> Target:
        """The target of a request to that origin; under ``origin``, if a client has another key for it, in ``known``."""
        if wish is not None and wish.target is not None:
            return self.wall.target(wish.target)
        origin = origin or (scheme, host, port)
        target = self.known.get(origin)
        if target is None:
            if len(self.known) >= ORIGINS:
                self.known.clear()
            target = self.known[origin] = self.wall.target(self._name(scheme, host, port))
        return target

    def _name(self, scheme: str, host: str, port: int | None) -> str:
        place = host if port is None or port == DEFAULT_PORTS.get(scheme) else f"{host}:{port}"
        naming = self._naming
        if isinstance(naming, str):
            return naming
        if isinstance(naming, Mapping):
            return naming.get(place) or naming.get(host) or place
        return place if naming is None else naming(place) or place

    def may_repeat(self, method: str, key: object, wish: Wish | None = None) -> bool:
        """Whether a request of that method, with that ``Idempotency-Key`` or ``None``, does no harm a second time."""
        if wish is not None and wish.idempotent is not None:
            return wish.idempotent
        return self.idempotent or key is not None or method.upper() in IDEMPOTENT

    def first_of(self, request: Any) -> float | None:
        """Seconds until the first byte of the answer's body to ``request``; ``None``: no limit of its own."""
        return self.first

    def told(self, left: float, given: Mapping[str, Any]) -> dict[str, str]:
        """The headers that tell the callee what is left: never more than the request says already.

        Args:
            left: Seconds left for the attempt.
            given: The headers of the request.
        """
        wire = self.wire
        if wire is None:
            return {}
        for name in wire.sends:
            if name in given:
                asked = wire.read({name: given[name]})
                if asked is not None and asked < left:
                    left = asked
        return wire.outgoing(left)
