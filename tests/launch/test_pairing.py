"""Pairs in one launch: walks in which each meets once, and groups that memory holds."""

from __future__ import annotations

import random
from collections import Counter
from itertools import chain, combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from cotenant.launch.pairing import groups_of, trails

GRAPHS = st.integers(2, 12).flatmap(
    lambda count: st.tuples(
        st.just(count), st.sets(st.sampled_from([*combinations(range(count), 2)]), min_size=1).map(sorted)
    )
)


@given(GRAPHS, st.integers())
def test_walks_take_each_pair_once_and_begin_where_one_has_to(graph: tuple[int, list[tuple[int, int]]], seed: int) -> None:
    _, pairs = graph
    walks = [*trails(pairs, random.Random(seed))]
    met = [tuple(sorted(step)) for walk in walks for step in pairwise(walk)]
    assert sorted(met) == pairs
    odd = {tenant for tenant, count in Counter(chain.from_iterable(pairs)).items() if count % 2}
    assert odd <= {end for walk in walks for end in (walk[0], walk[-1])}
    # Others begin and end in one place.
    assert sum(walk[0] != walk[-1] for walk in walks) == len(odd) / 2


@given(GRAPHS, st.lists(st.integers(0, 100), min_size=12, max_size=12), st.integers(0, 400))
def test_each_pair_is_in_one_group_and_each_group_fits_but_for_a_pair_that_never_does(
    graph: tuple[int, list[tuple[int, int]]], needs: list[int], room: int
) -> None:
    count, pairs = graph
    groups = groups_of(pairs, needs[:count], room)
    assert sorted(chain.from_iterable(groups)) == pairs
    for group in groups:
        there = {*chain.from_iterable(group)}
        assert sum(needs[tenant] for tenant in there) <= room or len(group) == 1


def test_what_fits_at_once_is_one_group_and_what_does_not_is_few() -> None:
    pairs = [*combinations(range(8), 2)]
    assert groups_of(pairs, [10] * 8, 80) == [tuple(pairs)]
    # Four of eight at once are six pairs: five launches are the least, and 28 pairs by themselves would be 28.
    assert 5 <= len(groups_of(pairs, [10] * 8, 40)) <= 8
    # A hungry one is beside few at a time, and the others still meet in one.
    groups = groups_of(pairs, [60, *[10] * 7], 80)
    assert max(map(len, groups)) == 21
    assert sum(0 in chain.from_iterable(group) for group in groups) == 4
