"""Errors that are the client's own class as well: who catches ``httpx.TimeoutException`` catches them too."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..errors import (
    BulkheadFullError,
    CircuitOpenError,
    DeadlineExceededError,
    NoBudgetError,
    RejectedError,
    SeawallError,
    TimeoutExceededError,
)

__all__ = ["Natives"]

REFUSALS = (CircuitOpenError, BulkheadFullError, NoBudgetError, RejectedError)
LATE = (DeadlineExceededError, TimeoutExceededError)


class Natives:
    """The errors of one client.

    Args:
        module: Where these stand, under the name ``natives``: by it errors are pickled.
        refused: The client's class for a request that never reached its target.
        late: Its class for one that took too long.
        timeouts: What its own limits raise.
        unsent: What it raises where the request certainly never left.
        own: What it raises where the trouble is its own: no connection free in its pool, a request that cannot be sent.
        request: The attribute of its classes that holds the request at hand; ``""``: they have none.
        empty: Other attributes that its classes would set themselves: they are ``None`` here.
    """

    __slots__ = ("_classes", "_empty", "_request", "own", "timeouts", "unsent")

    def __init__(
        self,
        module: str,
        *,
        refused: type[Exception],
        late: type[Exception],
        timeouts: tuple[type[BaseException], ...],
        unsent: tuple[type[BaseException], ...],
        own: tuple[type[BaseException], ...],
        request: str = "",
        empty: tuple[str, ...] = (),
    ) -> None:
        self._request, self._empty = request, empty
        self.timeouts, self.unsent, self.own = timeouts, unsent, own
        kinds = [(kind, refused) for kind in REFUSALS] + [(kind, late) for kind in LATE]
        self._classes = {kind.__name__: _joined(kind, native, module, request) for kind, native in kinds}

    def of(self, error: SeawallError, request: Any = None) -> SeawallError:
        """``error`` in the client's own class, with its traceback and notes; itself where there is none for it."""
        name = next((kind.__name__ for kind in type(error).__mro__ if kind.__name__ in self._classes), None)
        if name is None or isinstance(error, tuple(self._classes.values())):
            return error
        made = self.make(name, error.args, vars(error), request)
        made.__cause__, made.__suppress_context__ = error.__cause__, True
        return made.with_traceback(error.__traceback__)

    def make(self, name: str, args: tuple[Any, ...], state: dict[str, Any], request: Any = None) -> SeawallError:
        """An error of that name: for :meth:`of`, and out of a pickle."""
        error = self._classes[name].__new__(self._classes[name])
        error.args = args
        vars(error).update(dict.fromkeys(self._empty))
        if self._request:
            setattr(error, self._request, request)
        vars(error).update(state)
        return error


def _joined(kind: type[SeawallError], native: type[Exception], module: str, request: str) -> type[SeawallError]:
    def reduce(error: SeawallError) -> tuple[Any, ...]:
        state = {name: value for name, value in vars(error).items() if name != request}
        return _unpickled, (module, kind.__name__, error.args, state)

    members = {"__module__": module, "__doc__": kind.__doc__, "__reduce__": reduce, "__str__": _text(kind)}
    return type(kind.__name__, (kind, native), members)


def _text(kind: type[SeawallError]) -> Any:
    """What stands in it, as the library's own class says it: a client's may look for attributes of its own."""
    return kind.__str__ if issubclass(kind, RejectedError) else lambda error: str(error.args[0]) if error.args else ""


def _unpickled(module: str, name: str, args: tuple[Any, ...], state: dict[str, Any]) -> SeawallError:
    natives: Natives = import_module(module).natives
    return natives.make(name, args, state)
