"""How much of the observed time lies inside the load common to all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.stats.tenants import Span, common_load, overlap

spans = st.tuples(st.integers(0, 200), st.integers(0, 200)).map(lambda pair: (min(pair), max(pair)))
some_spans = st.lists(spans, min_size=1, max_size=6)


def test_common_load_is_from_the_latest_start_to_the_earliest_end() -> None:
    assert common_load([(0, 100), (5, 90), (3, 95)]) == (5, 90)
    assert common_load([(0, 10), (20, 30)]) == (20, 20)
    assert common_load([(3, 8)]) == (3, 8)


@pytest.mark.parametrize(
    ("common", "share"),
    [((0, 100), 1.0), ((15, 100), 0.75), ((0, 35), 0.75), ((15, 35), 0.5), ((20, 30), 0.0), ((13, 13), 0.0)],
)
def test_overlap_is_the_share_inside(common: Span, share: float) -> None:
    assert overlap([(10, 20), (30, 40)], common) == share


@given(some_spans, spans)
def test_overlap_counts_nanoseconds(observations: list[Span], common: Span) -> None:
    observed = [ns for start, end in observations for ns in range(start, end)]
    if not observed:
        with pytest.raises(ValueError, match="no observed time"):
            overlap(observations, common)
        return
    share = overlap(observations, common)
    assert share == sum(common[0] <= ns < common[1] for ns in observed) / len(observed)
    assert 0 <= share <= 1


@given(some_spans, spans)
def test_nobody_overlaps_more_than_the_others_were_there(loads: list[Span], observation: Span) -> None:
    common = common_load(loads)
    assert common[0] <= common[1]
    for load in loads:
        if common[0] < common[1]:
            assert load[0] <= common[0] < common[1] <= load[1]
        if observation[0] < observation[1]:
            assert overlap([observation], common) <= overlap([observation], load)


def test_an_observation_that_runs_backwards_is_refused() -> None:
    with pytest.raises(ValueError, match="from 9 to 3"):
        overlap([(0, 100), (9, 3)], (0, 100))
