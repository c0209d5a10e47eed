"""Equal work has equal ids, and other work has others."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from cotenant.results.identity import NOT_WORK, unique_id
from results.made import ARGUMENTS

names = st.text(max_size=6)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | names
values = scalars | st.lists(st.integers(), max_size=3)
works = st.dictionaries(names.filter(lambda name: name not in NOT_WORK | {"data"}), values, min_size=1, max_size=5)
others = st.dictionaries(st.sampled_from(sorted(NOT_WORK)), values)


def test_it_stays_what_it_is() -> None:
    golden = "4b5a3e19f8b5cecb76af49c139feaf1be98e9d62796c231a98839985da12f9ed"
    assert unique_id("vae", "0123456789abcdef", ARGUMENTS) == golden


@given(works, others, others, st.randoms())
def test_equal_work_has_equal_ids(work: Any, one: Any, other: Any, random: Any) -> None:
    shuffled = list((work | other).items())
    random.shuffle(shuffled)
    assert unique_id("n", "v", work | one) == unique_id("n", "v", dict(shuffled))


@given(works, works)
def test_different_work_has_different_ids(one: dict[str, Any], other: dict[str, Any]) -> None:
    assume(repr(sorted(one.items())) != repr(sorted(other.items())))
    assert unique_id("n", "v", one) != unique_id("n", "v", other)


@given(works, names, names)
def test_another_benchmark_or_version_is_other_work(work: dict[str, Any], one: str, other: str) -> None:
    assume(one != other)
    assert len({unique_id(*pair, work) for pair in ((one, one), (one, other), (other, one), (other, other))}) == 4


def test_of_data_only_counts_whether_there_is_any() -> None:
    resident, here, there = (ARGUMENTS | {"data": data} for data in (None, "/here", "/there"))
    assert unique_id("n", "v", here) == unique_id("n", "v", there) != unique_id("n", "v", resident)


def test_unknown_work_is_equal_to_none() -> None:
    assert unique_id("n", "v", {}) == ""
