"""F35: a function's own TimeoutError is not taken for the limit's, and its context variables are there in the thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
import socket
from collections.abc import Callable, Iterator
from contextvars import ContextVar

import pytest

from seawall import SeawallError, Timeout, TimeoutExceededError
from tests.policies.hung import Hung, hung

__all__ = ["hung"]
pytestmark = pytest.mark.fault("F35")

request_id: ContextVar[str] = ContextVar("request_id", default="none")


@pytest.mark.parametrize("kind", [
    TimeoutError, socket.timeout, asyncio.TimeoutError, concurrent.futures.TimeoutError, TimeoutExceededError,
])
def test_a_functions_own_timeout_error_is_untouched(kind: type[TimeoutError]) -> None:
    def call() -> None:
        raise error

    error = kind("theirs")
    limit = Timeout(30.0, name="ours")
    with pytest.raises(TimeoutError) as caught:
        limit(call)()
    assert caught.value is error
    assert (error.__cause__, error.__context__) == (None, None)
    assert limit.abandoned_total == 0


def test_the_limits_own_error_is_told_apart_by_its_type(hung: Hung) -> None:
    with pytest.raises(TimeoutExceededError) as caught:
        Timeout(0.01).call(hung)
    assert isinstance(caught.value, SeawallError)
    assert not isinstance(TimeoutError("theirs"), SeawallError)


@pytest.fixture
def in_a_request() -> Iterator[None]:
    token = request_id.set("r-17")
    yield
    request_id.reset(token)


@pytest.mark.usefixtures("in_a_request")
def test_context_variables_are_there_in_a_limited_call() -> None:
    limit = Timeout(30.0)

    @limit
    def call() -> tuple[str, str]:
        inner: Callable[[], str] = limit(request_id.get)
        return request_id.get(), inner()

    assert call() == ("r-17", "r-17")


@pytest.mark.usefixtures("in_a_request")
def test_each_call_has_a_copy_of_its_own() -> None:
    """What one sets reaches neither its caller nor the next call in the same thread."""
    limit = Timeout(30.0)
    limit.call(request_id.set, "overwritten")
    assert request_id.get() == limit.call(request_id.get) == "r-17"
