"""A launch takes the place of older ones of its repetition, unless it failed and an older one completed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cotenant.launch.output import Output
from cotenant.results.journal import Launched
from cotenant.results.read import read_records
from cotenant.results.record import Record
from cotenant.results.superseded import SUPERSEDED, superseded
from report.test_duets import duet
from results.made import ISOLATION, a_lost_record, a_record
from results.tabled import launch

OLD, NEW, LATER = (f"2026-03-{day}T12:00:00+00:00" for day in (14, 15, 16))


def files(records: Sequence[Record], start: str) -> dict[str, Record]:
    """Name the records of a launch that began then."""
    return {f"{start[:10]}.{at}": replace(record, start_time=start) for at, record in enumerate(records)}


def lost() -> list[Record]:
    where: list[dict[str, Any]] = [{"tenant": tenant, "vcd": str(tenant)} for tenant in (0, 1)]
    return [a_record(where[0]), a_lost_record("failed", "no", where[1])]


def mixed(*outcomes: str) -> list[Record]:
    place = {"mix": "vae+wlm", "tenants": 2}
    made = zip(("vae", "wlm"), outcomes, strict=True)
    return [a_record({"name": name} | place, outcome=outcome) for name, outcome in made]


@pytest.mark.parametrize(
    ("older", "newer", "stays"),
    [
        (launch(), launch(), NEW),
        (launch(), lost(), OLD),
        (lost(), lost(), NEW),
        (lost(), launch(), NEW),
        (launch(tenants=2), launch(tenants=1), NEW),
        (mixed("completed", "completed"), mixed("failed", "completed"), OLD),
        (mixed("failed", "completed"), mixed("completed", "failed"), NEW),
        (duet(), duet(lost=1), OLD),
        (duet(lost=1), duet(), NEW),
    ],
)
def test_of_two_launches_of_a_repetition_one_counts(older: list[Record], newer: list[Record], stays: str) -> None:
    old, new = files(older, OLD), files(newer, NEW)
    assert superseded(new, old) == sorted(old if stays == NEW else new)
    assert superseded(new, {}) == superseded({}, old) == []


@pytest.mark.parametrize(
    "place",
    [
        {"uid": 1},
        {"name": "wlm"},
        {"suite": "cpu"},
        {"hostname": "node2"},
        {"isolation": replace(ISOLATION, backend="none")},
        {"solo": True},
        {"mix": "vae+wlm"},
    ],
)
def test_launches_of_other_repetitions_stay(place: dict[str, Any]) -> None:
    other = files(launch(**place), OLD)
    assert superseded(files(launch(), NEW), other) == []
    assert superseded(files(launch(**place), NEW), other) == sorted(other)


def test_tenants_alone_are_launches_of_their_own() -> None:
    alone = [a_record({"solo": True, "baseline": "whole", "tenant": tenant}) for tenant in (0, 1)]
    assert superseded(files(alone[:1], NEW), files(alone, OLD)) == ["2026-03-14.0"]
    quick = a_record({"solo": True, "baseline": "quick"})
    assert superseded(files([quick], NEW), files(alone, OLD)) == []


def kept(output: Output, records: Sequence[Record], start: str) -> str:
    """Write a launch as a suite does; return the sentence on records that do not count."""
    records = [replace(record, start_time=start) for record in records]
    of_launch = {"label": "vae", "outcomes": tuple(record.outcome for record in records), "host": "node1"}
    written = output.keep(records, datetime.fromisoformat(start))
    ended = Launched(suite="baselines", uid=0, time=start, records=written, **of_launch)
    output.journal(ended)
    return output.supersede(ended, records)


def test_in_a_directory_a_repetition_is_there_once(tmp_path: Path) -> None:
    with closing(Output(tmp_path)) as output:
        assert kept(output, launch(), OLD) == ""
        assert kept(output, launch("wlm"), OLD) == ""
        said = kept(output, lost(), NEW)
        counts = "it failed, and an earlier launch completed, which counts in its place (2 records, now *.superseded)."
        assert said == counts
        assert read_records([tmp_path]).frame["start_time"].unique().to_list() == [OLD]
        said = kept(output, launch(), LATER)
        assert said == "it counts in the place of an earlier launch (2 records, now *.superseded)."
        found = read_records([tmp_path])
        assert {*found.frame.select("name", "start_time").rows()} == {("wlm", OLD), ("vae", LATER)}
        assert (found.frame.height, found.skipped, found.table.unvouched) == (4, (), 0)
        assert sum(name.endswith(SUPERSEDED) for name in output.directory.names()) == 4


def test_records_not_written_by_a_launch_here_are_not_renamed(tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    with closing(Output(tmp_path / "output")) as output:
        kept(output, launch(), OLD)
        first, second = sorted(output.directory.path.glob("*.json"))
        first.rename(outside)
        first.symlink_to(outside)
        stranger = second.with_name(second.name.replace("D1", "D7"))
        stranger.write_bytes(second.read_bytes())
        assert "(1 record, now" in kept(output, launch(), NEW)
        assert (first.is_symlink(), stranger.exists(), second.exists(), outside.exists()) == (True, True, False, True)
