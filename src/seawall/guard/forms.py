"""The two forms of a guard around a function. They behave the same; the plain one is the specification.

``SEAWALL_PLAIN=1`` in the environment forces the plain form: to step through a guard in a debugger, or to find out
whether a fault is in the generated code.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import update_wrapper
from types import FunctionType
from typing import Any, TypeVar, cast

from .fused import fuse
from .kinds import kind_of
from .plain import PLAIN

__all__ = ["FORCED_PLAIN", "dressed", "fused", "guard", "plain"]

F = TypeVar("F", bound=Callable[..., Any])

FORCED_PLAIN = os.environ.get("SEAWALL_PLAIN", "") not in ("", "0")


def guard(stack: Any, fn: F) -> F:
    """The policies of ``stack`` around ``fn``, in the form in force."""
    return plain(stack, fn) if FORCED_PLAIN else fused(stack, fn)


def fused(stack: Any, fn: F, *, star: bool = False) -> F:
    """The generated form; ``star``: with ``*args, **kwargs`` in any case."""
    return dressed(fuse(stack, fn, kind_of(fn), star), fn)


def plain(stack: Any, fn: F) -> F:
    """The plain form."""
    return dressed(PLAIN[kind_of(fn)](stack, fn), fn)


def dressed(guarded: Callable[..., Any], fn: F) -> F:
    """``guarded`` with the name, docstring and signature of ``fn``."""
    if isinstance(fn, FunctionType):
        return cast("F", update_wrapper(guarded, fn))
    # A callable object's dictionary is its own affair; and a proxy may have anything under these names.
    fits = [name for name, kind in _NAMES.items() if isinstance(getattr(fn, name, None), kind)]
    return cast("F", update_wrapper(guarded, fn, fits, ()))


_NAMES = {
    "__module__": str, "__name__": str, "__qualname__": str, "__doc__": str,
    "__annotations__": dict, "__type_params__": tuple,
}  # fmt: skip
