"""What the adapters' tests share: a server, and a wall with one patient target."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from seawall import CircuitBreaker, Wall
from tests.adapters.served import Served, serving


@pytest.fixture
def served() -> Iterator[Served]:
    with serving() as server:
        yield server


@pytest.fixture
def wall() -> Wall:
    wall = Wall()
    wall.target("CORE", breaker=CircuitBreaker(9))
    return wall
