"""What the middlewares of web frameworks share: an app, and how the budget of a request is read."""

from __future__ import annotations

from typing import Any

from ..errors import ConfigError
from ..headers import BudgetHeaders

__all__ = ["Around"]


class Around:
    """Something around ``app`` that reads budgets by ``wire``.

    Args:
        app: The application.
        wire: Reads the budget. Default: made of the three settings that follow.
        max_ms: The most a caller may ask for, in milliseconds. Default: no limit.
        default_ms: Until an answer has to begin where the caller says nothing, in milliseconds. Default: no limit.
        trust: Whether callers are believed.

    Raises:
        ConfigError: ``wire`` together with other settings, or a setting that cannot work.
        TypeError: ``wire`` is no ``BudgetHeaders``.
    """

    __slots__ = ("app", "wire")

    def __init__(
        self,
        app: Any,
        *,
        wire: BudgetHeaders | None = None,
        max_ms: float | None = None,
        default_ms: float | None = None,
        trust: bool = True,
    ) -> None:
        if wire is None:
            wire = BudgetHeaders(max_ms=max_ms, default_ms=default_ms, trust=trust)
        elif not isinstance(wire, BudgetHeaders):
            raise TypeError(f"wire= takes a seawall.BudgetHeaders(...), not {wire!r}")
        elif max_ms is not None or default_ms is not None or trust is not True:
            raise ConfigError("max_ms, default_ms and trust are said to BudgetHeaders(...) where there is a wire=")
        self.app, self.wire = app, wire

    def __repr__(self) -> str:
        return f"<Middleware around {self.app!r}, {self.wire!r}>"
