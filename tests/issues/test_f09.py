"""F09: generators, partials and objects with ``async __call__`` are guarded, or refused at decoration; never let by unseen.

tests/guard/test_guard.py has every kind of callable in every form.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import pytest

from seawall import CircuitBreaker
from tests.aio import run_async
from tests.guard.both import Form, every_form

pytestmark = pytest.mark.fault("F09")


def items() -> Iterator[int]:
    yield 1
    raise ConnectionError


async def aitems() -> AsyncIterator[int]:
    yield 1
    raise ConnectionError


async def fails() -> None:
    raise ConnectionError


class Client:
    async def __call__(self) -> None:
        raise ConnectionError


async def drain(stream: AsyncIterator[int]) -> list[int]:
    return [item async for item in stream]


@every_form
@pytest.mark.parametrize(("fn", "drive"), [
    (items, list), (partial(items), list), (aitems, lambda stream: run_async(drain(stream))),
    (partial(fails), run_async), (Client(), run_async), (partial(Client()), run_async),
])
def test_its_failure_is_counted(fn: Any, drive: Any, form: Form) -> None:
    breaker = CircuitBreaker(2)
    with pytest.raises(ConnectionError):
        drive(form(breaker, fn)())
    assert (breaker.failures, breaker.started) == (1, 1)


@pytest.mark.parametrize("subject", [staticmethod(fails), Client, "fails", CircuitBreaker])
@every_form
def test_or_it_is_refused_at_decoration(subject: Any, form: Form) -> None:
    with pytest.raises(TypeError, match="cannot guard"):
        form(CircuitBreaker(), subject)
