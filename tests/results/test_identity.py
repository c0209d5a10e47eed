"""Equal work has equal ids, other work has others, and a record has the efficiency of its devices."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cotenant.findings.rules import with_findings
from cotenant.results.identity import NOT_WORK, unique_id, with_efficiency
from cotenant.results.record import Record
from results.made import ARGUMENTS, a_lost_record, a_part, a_record, observed, rules

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


@given(works, st.data(), values)
def test_changed_added_or_removed_arguments_are_other_work(work: Any, data: st.DataObject, value: Any) -> None:
    name = data.draw(st.sampled_from(sorted(work)))
    assume(repr(value) != repr(work[name]))
    less = {each: work[each] for each in work if each != name}
    ids = {unique_id("n", "v", each) for each in (work, work | {name: value}, less, work | {f"{name}-more": value})}
    assert len(ids) == 4


@given(works, names, names)
def test_another_benchmark_or_version_is_other_work(work: dict[str, Any], one: str, other: str) -> None:
    assume(one != other)
    assert len({unique_id(*pair, work) for pair in ((one, one), (one, other), (other, one), (other, other))}) == 4


def test_identity_distinguishes_only_data_and_no_data() -> None:
    resident, here, there = (ARGUMENTS | {"data": data} for data in (None, "/here", "/there"))
    assert unique_id("n", "v", here) == unique_id("n", "v", there) != unique_id("n", "v", resident)
    assert unique_id("n", "v", {}) == ""


def point(
    devices: int, rate: float, arguments: dict[str, Any] | None = None, place: dict[str, Any] | None = None, **more: Any
) -> Record:
    """A launch of the whole machine over `devices` devices, at this rate."""
    part = a_part(
        arguments=ARGUMENTS | {"devices": devices, "batch_size": 128} | (arguments or {}),
        observed={"dtype": "fp32", "world_size": devices},
    )
    return a_record(
        place={"name": f"scaling.c{devices}", "group": "all", "tenants": 1, "vcd": "0,1"} | (place or {}),
        told={"observations": observed([1000.0] * 25, items=rate), "part": part},
        **more,
    )


def efficiency(record: Record, *earlier: Record) -> float | None:
    """Return the efficiency among a record's meters; None if the record is unchanged."""
    measured = with_efficiency(record, earlier)
    return None if measured is record else round(measured.meters["scaling"]["efficiency"], 6)


def test_work_over_several_numbers_of_devices_is_one_work() -> None:
    assert efficiency(point(2, 190), point(1, 100)) == 0.95
    for argument in ({"seed": 7}, {"report": "elsewhere"}, {"repeat": 9}):
        assert efficiency(point(2, 190, arguments=argument), point(1, 100)) == 0.95
    for argument in ({"batch_size": 64}, {"network": "resnet18"}):
        assert efficiency(point(2, 190, arguments=argument), point(1, 100)) is None


def test_what_does_not_count_is_no_point() -> None:
    student, other = (point(1, 100, place=place) for place in ({"group": "student"}, {"name": "other.c1"}))
    invalid, failed = point(1, 100, comparable=False), point(1, 100, outcome="failed")
    lost = a_lost_record("failed", "x", {"name": "scaling.c1", "group": "all"})
    for singles in ([student], [other], [invalid], [failed], [lost], [], [point(4, 300)]):
        assert efficiency(point(2, 190), *singles) is None
    for record in (point(1, 100), lost):
        assert efficiency(record, point(1, 100)) is None


def test_more_than_linear_scaling_is_a_finding() -> None:
    measured = with_efficiency(point(4, 300), [point(2, 190), point(1, 100), point(1, 98), point(1, 104)])
    scaling = {"devices": 4, "rate_of_one": pytest.approx(100), "efficiency": pytest.approx(0.75)}
    assert measured.meters["scaling"] == scaling
    assert rules(measured) == {}
    (better,) = with_findings([point(8, 840.8)], [point(1, 100)])
    assert rules(better)["scaling"].sentence.startswith("8 devices ran 8.41 times as fast as one")
