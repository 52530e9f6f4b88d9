"""Whatever is done, in whatever order, the fused form answers, counts and tells what the plain form does.

The plain form is the specification. Each history is played to a target of its own for each form; what every step
answered, the whole snapshot after it and all events told have to be equal.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.guard import forms
from seawall.guard.kinds import ASYNC_GENERATOR, COROUTINE, FUNCTION, GENERATOR, Kind
from tests.guard.both import Form, star
from tests.guard.histories import Step, World, histories

pytestmark = pytest.mark.req("LIB-1")

HISTORIES = {FUNCTION: 800, COROUTINE: 500, GENERATOR: 500, ASYNC_GENERATOR: 100}
WITH_WRONG_ARGUMENTS = {FUNCTION: 200, COROUTINE: 100, GENERATOR: 100, ASYNC_GENERATOR: 50}
SETUPS = st.sampled_from(["bh", "bh", "b", "h"])


def played(form: Form, kind: Kind, setup: str, history: tuple[Step, ...]) -> list[Any]:
    world = World(form, kind, setup)
    world.play(history)
    return world.finish()


def compared(kind: Kind, others: list[Form], examples: int, wrong: bool) -> int:
    """Play ``examples`` histories to the plain form and to ``others``; how many there were."""
    count = 0

    @settings(max_examples=examples)
    @given(histories(kind, wrong), SETUPS)
    def compare(history: tuple[Step, ...], setup: str) -> None:
        nonlocal count
        count += 1
        wanted = played(forms.plain, kind, setup, history)
        for other in others:
            for step, (ours, theirs) in enumerate(zip(played(other, kind, setup, history), wanted, strict=True)):
                assert ours == theirs, f"record {step}"

    compare()
    return count


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.value)
def test_the_fused_form_is_the_plain_form(kind: Kind) -> None:
    count = compared(kind, [forms.fused, star], HISTORIES[kind], wrong=False)
    print(f"histories of a {kind.value}: {count}")  # shown by -s
    assert count >= HISTORIES[kind]


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.value)
def test_the_star_form_is_the_plain_form_for_wrong_arguments_too(kind: Kind) -> None:
    count = compared(kind, [star], WITH_WRONG_ARGUMENTS[kind], wrong=True)
    print(f"histories of a {kind.value}: {count}")  # shown by -s
    assert count >= WITH_WRONG_ARGUMENTS[kind]
