"""The two forms of a guard, and the fused one with star arguments; and callables of every kind that do as they are told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Protocol, TypeVar

import pytest

from seawall.guard import forms
from seawall.guard.kinds import ASYNC_GENERATOR, COROUTINE, FUNCTION, GENERATOR, Kind

F = TypeVar("F", bound=Callable[..., Any])


class Form(Protocol):
    """Puts the policies of a stack around a function."""

    def __call__(self, stack: Any, fn: F, /) -> F: ...


def star(stack: Any, fn: F, /) -> F:
    return forms.fused(stack, fn, star=True)


FORMS: dict[str, Form] = {"plain": forms.plain, "fused": forms.fused, "star": star}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
every_kind = pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.value)


def of_kind(kind: Kind, act: Callable[[], Any]) -> Callable[[], Any]:
    """A function of that kind: calling it and driving what it gives to the end is one ``act()``."""

    def function() -> Any:
        return act()

    async def coroutine() -> Any:
        return act()

    def generator() -> Iterator[Any]:
        yield act()

    async def async_generator() -> AsyncIterator[Any]:
        yield act()

    made: dict[Kind, Callable[[], Any]] = {
        FUNCTION: function, COROUTINE: coroutine, GENERATOR: generator, ASYNC_GENERATOR: async_generator,
    }  # fmt: skip
    return made[kind]


def without_a_loop(awaitable: Awaitable[Any]) -> Any:
    """Run what never really waits."""
    steps = awaitable.__await__()
    try:
        next(steps)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")


def driven(kind: Kind, value: Any) -> Any:
    """Drive what a function of that kind gave to its end, and return the result or first item."""

    async def drained() -> Any:
        items = [item async for item in value]
        return items[0]

    if kind is COROUTINE:
        return without_a_loop(value)
    if kind is GENERATOR:
        items = list(value)
        return items[0]
    return without_a_loop(drained()) if kind is ASYNC_GENERATOR else value
