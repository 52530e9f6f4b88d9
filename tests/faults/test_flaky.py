"""Failures by chance: reproducible for each key, and of more keys than are kept the oldest begins anew."""

from __future__ import annotations

import pytest

from seawall.faults.partner_paths import Flaky
from seawall.faults.query import BadParameter, Query


@pytest.mark.req("BUDGET-1")
def test_of_more_keys_than_are_kept_the_one_not_asked_for_longest_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Flaky, "MOST_KEYS", 2)
    flaky = Flaky(1)
    assert [flaky.count(key) for key in ("a", "b", "a", "c", "a", "b")] == [1, 1, 2, 1, 3, 1]


@pytest.mark.req("BUDGET-1")
def test_chance_hangs_on_seed_key_and_number_alone() -> None:
    drawn = {(seed, key, n): Flaky(seed).chance(key, n) for seed in (1, 2) for key in ("", "1", "a") for n in (1, 2, 11)}
    assert len(set(drawn.values())) == len(drawn)
    assert all(0 <= chance < 1 for chance in drawn.values())
    assert Flaky(1).chance("a", 1) == drawn[1, "a", 1]


def test_more_parameters_than_anybody_needs_are_refused() -> None:
    with pytest.raises(BadParameter, match="more than 20"):
        Query("&".join(f"p{i}=1" for i in range(21)))


@pytest.mark.parametrize("text", ["nan", "-0.1", "1.1", "inf", "", "x"])
def test_a_share_is_a_number_from_0_to_1(text: str) -> None:
    with pytest.raises(BadParameter, match="a share from 0 to 1"):
        Query(f"rate={text}").share("rate")
