"""F11: every error survives pickling and copying, with its attributes, its message and its notes."""

from __future__ import annotations

import copy
import pickle

import pytest

import seawall
from seawall import errors
from seawall.errors import RejectedError, SeawallError

pytestmark = pytest.mark.fault("F11")

KINDS = sorted({getattr(errors, name) for name in errors.__all__}, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_round_trip(kind: type[SeawallError], protocol: int) -> None:
    error = kind("CORE", "is open", "OPEN", 7.25) if issubclass(kind, RejectedError) else kind("it ended")
    error.add_note("3 attempts")
    for back in (pickle.loads(pickle.dumps(error, protocol)), copy.copy(error), copy.deepcopy(error)):
        assert type(back) is kind
        assert (str(back), back.args, back.__notes__) == (str(error), error.args, ["3 attempts"])
        if isinstance(back, RejectedError):
            assert (back.target, back.reason, back.state, back.retry_after) == ("CORE", "is open", "OPEN", 7.25)


def test_every_error_there_is_is_in_the_list() -> None:
    found, left = set(), [SeawallError]
    while left:
        kind = left.pop()
        found.add(kind)
        left.extend(kind.__subclasses__())
    ours = {kind for kind in found if kind.__module__.startswith("seawall")}
    # The adapters' are these in a client's class as well; their suite pickles them.
    assert {kind for kind in ours if not kind.__module__.startswith("seawall.adapters")} == set(KINDS)
    assert all(getattr(seawall, kind.__name__) is kind for kind in KINDS)
