"""F13: an exception class with a metaclass of its own is still a class, not a predicate that is always true."""

from __future__ import annotations

from abc import ABCMeta

import pytest

from seawall import CircuitBreaker

pytestmark = pytest.mark.fault("F13")


class AbstractError(Exception, metaclass=ABCMeta):
    """What an interface raises."""


class ConcreteError(AbstractError):
    """What stands behind it."""


def call(error: Exception) -> None:
    raise error


@pytest.mark.parametrize("rules", [{"ignores": AbstractError}, {"ignores": [AbstractError]}])
def test_ignored_are_its_instances_only(rules: dict[str, type[BaseException]]) -> None:
    breaker = CircuitBreaker(1, **rules)  # type: ignore[arg-type]  # keywords taken from a table
    with pytest.raises(ConcreteError):
        breaker.call(call, ConcreteError())
    assert breaker.state == "CLOSED"
    with pytest.raises(ConnectionError):
        breaker.call(call, ConnectionError())
    assert breaker.state == "OPEN"


def test_counted_are_its_instances_only() -> None:
    breaker = CircuitBreaker(1, counts_as_failure=AbstractError)
    with pytest.raises(ConnectionError):
        breaker.call(call, ConnectionError())
    assert breaker.state == "CLOSED"
    with pytest.raises(ConcreteError):
        breaker.call(call, ConcreteError())
    assert breaker.state == "OPEN"
