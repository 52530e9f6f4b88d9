"""Every latency is counted, and a quantile is off by no more than the histogram says."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.hub.histogram import ABSOLUTE_ERROR, EDGES, MAX_SECONDS, RELATIVE_ERROR, Histogram

seconds = st.one_of(
    st.floats(0.0, MAX_SECONDS),
    st.floats(0.0, 1e-3),
    st.integers(0, 10_000_000).map(lambda us: us / 1e6),
    st.sampled_from(EDGES),
)
values = st.lists(seconds, min_size=1, max_size=200)


def filled(recorded: list[float]) -> Histogram:
    histogram = Histogram()
    for value in recorded:
        histogram.record(value)
    return histogram


@given(values, st.floats(0.0, 1.0))
@settings(deadline=None, derandomize=True)
def test_a_quantile_is_within_the_stated_error_of_the_sorted_list(recorded: list[float], q: float) -> None:
    true = sorted(recorded)[max(1, math.ceil(q * len(recorded))) - 1]
    assert abs(filled(recorded).quantile(q) - true) <= max(true * RELATIVE_ERROR, ABSOLUTE_ERROR) * (1 + 1e-9)


@given(values)
@settings(deadline=None, derandomize=True)
def test_count_and_total_are_exact(recorded: list[float]) -> None:
    histogram = filled(recorded)
    assert histogram.count == len(recorded)
    assert histogram.total == pytest.approx(math.fsum(recorded))


@given(values, st.lists(seconds, min_size=1, max_size=10))
@settings(deadline=None, derandomize=True)
def test_a_value_is_never_counted_below_its_bound_and_at_most_a_bucket_late(
    recorded: list[float], bounds: list[float]
) -> None:
    counted = filled(recorded).cumulative(tuple(bounds))
    for bound, found in zip(bounds, counted, strict=True):
        surely = min(bound * 16 / 17, bound - 1e-6) if bound < 16e-6 else bound * 16 / 17
        assert sum(value <= surely for value in recorded) <= found <= sum(value <= bound for value in recorded)


def test_bounds_on_an_edge_are_exact_and_the_last_ones_count_all() -> None:
    histogram = filled([EDGES[100], EDGES[100] * 1.0001, 7200.0])
    bounds = (EDGES[99], EDGES[100], EDGES[101], MAX_SECONDS, math.inf)
    assert histogram.cumulative(bounds) == [0, 1, 2, 3, 3]


@pytest.mark.parametrize(
    ("value", "counted_as"),
    [(-1.0, 0.0), (-math.inf, 0.0), (math.nan, 0.0), (3600.1, 3600.0), (1e300, 3600.0), (math.inf, 3600.0)],
)
def test_values_outside_the_range_are_clamped(value: float, counted_as: float) -> None:
    histogram = filled([value])
    assert (histogram.count, histogram.total) == (1, counted_as)
    assert histogram.quantile(0.5) == pytest.approx(counted_as, rel=RELATIVE_ERROR, abs=ABSOLUTE_ERROR)


def test_merging_equals_recording_everything_in_one() -> None:
    one, other, both = filled([0.001, 0.2]), filled([0.3, 5.0, 0.001]), filled([0.001, 0.2, 0.3, 5.0, 0.001])
    one.merge(other)
    assert one.cumulative(EDGES) == both.cumulative(EDGES)
    assert one.total == pytest.approx(both.total)
    assert other.count == 3


def test_a_copy_is_cut_loose_and_reset_forgets() -> None:
    histogram = filled([0.5, 0.5])
    copy = histogram.copy()
    histogram.record(0.5)
    assert (copy.count, copy.total, histogram.count) == (2, 1.0, 3)
    histogram.reset()
    assert (histogram.count, histogram.total, histogram.quantile(0.99)) == (0, 0.0, 0.0)
    assert copy.count == 2


@pytest.mark.parametrize("q", [-0.01, 1.01, math.nan])
def test_an_impossible_quantile_is_refused(q: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        filled([1.0]).quantile(q)


def test_buckets_rise_and_are_at_most_a_sixteenth_wide() -> None:
    assert all(high > low for low, high in pairwise(EDGES))
    assert all(high - low <= max(low / 16, 1e-6) * (1 + 1e-9) for low, high in pairwise(EDGES))
    assert EDGES[-1] == MAX_SECONDS
