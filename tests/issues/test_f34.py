"""F34: hung calls under a time limit never make another one time out without having run: it runs, or is refused at once."""

from __future__ import annotations

import contextlib

import pytest

from seawall import NoThreadError, RejectedError, Timeout, TimeoutExceededError
from tests.lines import until
from tests.policies.hung import Hung, hung

__all__ = ["hung"]
pytestmark = pytest.mark.fault("F34")


def hang(limit: Timeout, hung: Hung, calls: int) -> None:
    """So many calls run into the limit and do not return."""
    for _ in range(calls):
        with pytest.raises(TimeoutExceededError):
            limit.call(hung)
    until(lambda: hung.inside == calls)
    assert (limit.abandoned, limit.abandoned_total) == (calls, calls)


def test_four_hung_calls_then_a_fast_one_which_runs(hung: Hung) -> None:
    limit = Timeout(0.05)
    hang(limit, hung, 4)
    ran: list[None] = []
    with contextlib.suppress(TimeoutExceededError):  # a loaded machine may be late with it, but it runs
        limit.call(ran.append, None)
    until(lambda: ran)


def test_as_many_as_allowed_then_a_fast_one_which_is_refused_and_says_why(hung: Hung) -> None:
    limit = Timeout(0.05, name="CORE", max_abandoned=4)
    hang(limit, hung, 4)
    ran: list[None] = []
    with pytest.raises(NoThreadError, match=r"^CORE was not called: 4 calls .* still running, 4 allowed; set a timeout"):
        limit.call(ran.append, None)
    assert issubclass(NoThreadError, RejectedError)
    assert not issubclass(NoThreadError, TimeoutError)
    hung.let_go()
    until(lambda: not limit.abandoned)
    assert not ran
    with contextlib.suppress(TimeoutExceededError):
        limit.call(ran.append, None)
    until(lambda: ran)
