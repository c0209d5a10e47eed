"""Reading is strict, and takes every record that a launch can write, and those of earlier versions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cotenant.decoding import MOST
from cotenant.results.read import read_records
from cotenant.results.record import Observed, encode_record, portable, restored
from cotenant.results.record_files import record_in
from cotenant.results.told import TenantPart
from results.made import T0_NS, a_lost_record, a_part, a_record
from results.tabled import row_of, rows_of

ODD: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-MOST, 2 * MOST - 1) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = [name for name in TenantPart.__struct_fields__ if name != "findings"]
PARTS = st.dictionaries(st.sampled_from(FIELDS), ODD, max_size=3) | st.fixed_dictionaries(
    {"arguments": st.dictionaries(st.sampled_from(["batch_size", "devices", "data", "x"]), ODD)}
)
WHOLES = st.sampled_from([1, 10**3, 10**9, 10**18]) | st.integers(1, 10**18)
ITEMS = st.sampled_from([0, 1e-30, 1, 1e18, MOST - 1, 1e300]) | st.floats(0, 1e19) | st.integers(0, MOST - 1)


@st.composite
def observations(draw: st.DrawFn) -> list[Observed]:
    """Return observations as the socket takes them: times within 63 bits, any number of items."""
    made, start_ns = [], draw(st.sampled_from([0, T0_NS]))
    for took_ns, items in draw(st.lists(st.tuples(WHOLES, ITEMS), max_size=8)):
        if start_ns + took_ns < MOST:
            made.append(Observed(start_ns, start_ns + took_ns, items, draw(st.integers(-MOST, MOST - 1))))
            start_ns += took_ns
    return made


@settings(max_examples=100, deadline=None)
@given(observations(), PARTS, st.sampled_from(["completed", "failed"]))
def test_whatever_a_tenant_sends_its_record_is_read(made: list[Observed], part: dict[str, Any], outcome: str) -> None:
    told = {"observations": made, "skip": 0, "part": portable(a_part() | part)}
    record = a_record(told=told, common={"rendezvous": None}, outcome=outcome)
    read = record_in(json.loads(encode_record(record)), "x.json")
    (row,) = rows_of([record])
    assert row == row_of(json.loads(encode_record(record)), "") | {"in_file": None}
    assert (read.ours, row["completed"]) == (True, outcome == "completed")
    starts = [one.start_ns for one in restored(encode_record(record)).observations]
    assert starts == [one.start_ns for one in made]


def test_records_of_earlier_versions_are_read(tmp_path: Path) -> None:
    """Their version is the same: fields that came later have defaults, and the adapter knows three that have none."""
    for number, record in enumerate((a_record(), a_lost_record("timeout", "Too slow."))):
        fields = json.loads(encode_record(record))
        for name in ("suite_start_time", "asked", "given", "blocks", "duet", "share", "run_words", "sharers", "mix"):
            del fields[name]
        for row in fields["observations"]:
            del row["round"], row["block"], row["kind"], row["kept"]
        fields["isolation"]["cache"] = "cold"  # a field that went
        (tmp_path / f"{number}.json").write_text(json.dumps(fields))
    found = read_records([tmp_path])
    assert found.skipped == ()
    now = rows_of([a_record(), a_lost_record("timeout", "Too slow.")])
    apart = {"path": None, "in_file": None, "suite_start_time": None}
    assert [row | apart for row in found.frame.to_dicts()] == [row | apart for row in now]


def test_kept_was_once_counted_in_rounds() -> None:
    fields = json.loads(encode_record(a_record()))
    kept = {"value": 0.9, "interval": [0.8, 0.95], "rounds": 12}
    row = row_of(fields | {"kept": kept})
    assert (row["kept"], row["kept_rounds"]) == (0.9, 12)
