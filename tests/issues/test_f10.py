"""F10: each refusal is a fresh, hashable error: the traceback of the fifth is as short as that of the first."""

from __future__ import annotations

import traceback

import pytest

from seawall import Bulkhead, BulkheadFullError, CircuitOpenError, Target
from seawall.errors import RejectedError
from tests.clock import ManualClock
from tests.policies.play import opened

pytestmark = pytest.mark.fault("F10")


def refusal_of(target: Target, kind: type[RejectedError]) -> RejectedError:
    with pytest.raises(kind) as caught:
        target.call(lambda: None)
    return caught.value


@pytest.mark.parametrize("kind", [CircuitOpenError, BulkheadFullError])
def test_tracebacks_do_not_grow(kind: type[RejectedError], manual_clock: ManualClock) -> None:
    limit = Bulkhead(1)
    assert limit.try_acquire()
    breaker = opened(manual_clock) if kind is CircuitOpenError else None
    target = Target("CORE", breaker=breaker, bulkhead=limit)
    errors = [refusal_of(target, kind) for _ in range(5)]
    assert len({len(traceback.extract_tb(error.__traceback__)) for error in errors}) == 1
    assert len({id(error) for error in errors}) == len(set(errors)) == 5
    assert all(error.__context__ is None and error.__cause__ is None for error in errors)
