"""A breaker as a ``with`` block: admitted like a call, and nothing is kept where counting will do.

All blocks entered in one epoch hold the same token, so it is enough to know how many of them are open: each lays one
element into ``_inside`` and takes one out when it is left, whichever. Only one epoch at a time is counted like this,
``_counted``. All other blocks (trials, and those of a new epoch while one of the old is still open) are *kept*: the token
stands in the thread's or task's own list, as for every other guard (:mod:`seawall.guard.blocks`).

Why none is taken for another. Who enters by counting lays in, *then* looks again whether its epoch is still counted. Who
changes the epoch first counts none, so that nobody enters, *then* looks whether anybody is inside, and if so puts the old
one back. One of the two sees the other. And who stands in a kept block keeps the next one too, so whoever finds a kept
block of its own when leaving is leaving that one, and whoever finds none was counted. Relied on: ``list.append`` and
``del list[-1]`` are one atomic step each, with the GIL and (by the list's own lock) without.

A generator can be closed in another context than it was entered in, and then does not find what was kept for it. An
``async with`` block, to which that happens most, is therefore always kept: there it is seen, and said (unless it is closed
in the context of somebody who stands in a block of the same breaker: that one is taken for it). A ``with`` block then
takes an element that somebody else has laid in. So an element too few is no error, and costs nobody anything.

It saves a ``ContextVar.set``, which costs as much as all the rest of a block together.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING

from ..deadline import remaining, used
from ..guard import Guarded
from ..guard.blocks import blocks, innermost, left_elsewhere, open_block
from ..guard.passage import no_budget, spent
from ..outcome import SUCCESS, Rules
from .reports import Reports
from .states import NONE, VOID, BreakerSettings, Epoch, Token

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Blocks"]


class Blocks(Reports, Guarded):
    """A circuit that can be entered and left."""

    __slots__ = ("_counted", "_inside", "_kept", "started_ticks")

    def __init__(self, settings: BreakerSettings, rules: Rules, clock: Callable[[], float], name: str) -> None:
        super().__init__(settings, rules, clock, name)
        self.started_ticks = count()
        self._counted: Epoch | None = None
        self._inside: list[None] = NONE  # an element for each open block that is counted
        self._kept: list[None] = NONE  # and for each that is kept

    def __enter__(self) -> Self:
        """Admit the block as one call; an exception out of it is judged like one out of a call."""
        if used and spent(0.0):
            raise no_budget(self.name, 0.0)
        epoch = self.fast
        if epoch is not None and epoch is self._counted and not (self._kept and open_block(self)):
            inside = self._inside
            inside.append(None)  # a list, once there is an epoch that is counted
            if epoch is self._counted:
                next(self.started_ticks)
                return self
            del inside[-1]
        self._enter_and_keep()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """End the call that the block is."""
        token: Token | None = self._counted
        if token is None or self._kept:
            token = self._leave()
        else:
            try:
                del self._inside[-1]
            except IndexError:
                pass  # somebody else has taken ours
        if error is not None:
            self.raised(token, error, None)
        elif token.noted:
            self.settle(token, SUCCESS)

    async def __aenter__(self) -> Self:
        """:meth:`__enter__`; kept, whatever the epoch."""
        if used and spent(0.0):
            raise no_budget(self.name, 0.0)
        self._enter_and_keep()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        """End the call that the block is."""
        token = self._leave_kept()
        if token is None:
            raise left_elsewhere()
        if error is not None:
            self.raised(token, error, None)
        elif token.noted:
            self.settle(token, SUCCESS)

    def _enter_and_keep(self) -> None:
        token = self.fast or self.ask(remaining() if used else None)
        with self._lock:
            if self._kept is NONE:
                self._inside, self._kept = [], []
            kept = self._kept
        kept.append(None)
        blocks.set([self, token, innermost(blocks.get())])
        next(self.started_ticks)
        if self.fast is not self._counted:
            with self._lock:
                old, self._counted = self._counted, None
                self._counted = old if self._inside else self.fast

    def _leave(self) -> Token:
        token = self._leave_kept()
        if token is None:
            with self._lock:  # whoever is changing the epoch has put it back by now, if anybody is inside
                token = self._counted
            try:
                del self._inside[-1]
            except (IndexError, TypeError):  # nothing was laid in, or there never was a block
                if token is None:
                    raise left_elsewhere() from None
        return token or VOID

    def _leave_kept(self) -> Token | None:
        block = open_block(self)
        if block is None:
            return None
        block[0] = None
        del self._kept[-1]
        token: Token = block[1]
        return token
