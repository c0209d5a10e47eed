"""Launches beside neighbours of known pressure, from their records to the printed curve."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from commands.calling import Capture, call, write
from cotenant.report.jobs import jobs_view
from cotenant.report.pressure import PressureCurve, curve_text, pressure_curves, pressure_view
from cotenant.report.suite_end import suite_views
from cotenant.results.record import Record
from report.making import LEVELS, UNSLICED, beside_dram, launch, rows_of, solo, summary_of, text_of


def curves(records: Sequence[Record]) -> Sequence[PressureCurve]:
    return pressure_curves(summary_of(records))


def shares(of: PressureCurve) -> list[float]:
    return [point.kept.value for point in of.curve.points]


def test_pairs_of_a_job_and_each_neighbour_level_form_a_curve() -> None:
    (found,) = curves(beside_dram())
    points = found.curve.points
    assert [point.level for point in points] == [*LEVELS]
    assert [point.achieved for point in points] == pytest.approx([2.5, 5, 7.5, 10])
    assert shares(found) == pytest.approx([1, 0.9, 0.8, 0.7])
    assert [(point.kept.n, point.kept.over) for point in points] == [(20, "rounds")] * 4
    assert found.curve.hinge.knee == pytest.approx(2.5, abs=0.2)
    assert found.curve.hinge.slope == pytest.approx(0.04, abs=0.002)
    assert curve_text(found) == ("vae beside dram (v1): beyond 2.500 GB/s it loses 4 % of its rate with each GB/s.")


def test_what_is_kept_is_over_launches_where_there_are_three() -> None:
    (three,) = curves([record for uid in range(3) for record in beside_dram(uid)])
    assert [(point.kept.n, point.kept.over) for point in three.curve.points] == [(3, "launches")] * 4
    (two,) = curves([record for uid in range(2) for record in beside_dram(uid)])
    assert [point.kept.interval for point in two.curve.points] == [None] * 4


def test_without_blocks_shares_come_from_solo_launches() -> None:
    pressed = [replace(record, kept=None) for record in beside_dram()]
    alone = solo("vae", tenants=1, mean_ms=27000.0)
    (found,) = curves([*pressed, *alone])
    assert shares(found) == pytest.approx([0.9] * 4, rel=0.02)
    (unsliced,) = curves(beside_dram(**UNSLICED))
    assert unsliced.isolation == "none"
    assert shares(unsliced) == pytest.approx([1, 0.9, 0.8, 0.7])
    both = curves([*beside_dram(), *beside_dram(1, **UNSLICED)])
    assert [each.isolation for each in both] == ["v1", "none"]


def test_levels_under_another_torch_version_are_another_curve() -> None:
    old, new = ({"torch": {"version": version}} for version in ("2.3", "2.4"))
    records = beside_dram()
    newer = [replace(record, start_time="2027-01-01T00:00:00+00:00", machine=new) for record in records[:2]]
    found = curves([*newer, *(replace(record, machine=old) for record in records[2:])])
    assert [[point.level for point in each.points] for each in found] == [[50, 75, 100], [25]]
    begin = [curve_text(each).partition(": ")[0] for each in found]
    assert begin == [f"vae beside dram (v1; software {version})" for version in ("2.3", "2.4")]


def test_no_rate_of_theirs_stands_in_any_other_table() -> None:
    together, pressed = launch("vae", tenants=2), beside_dram()
    whole, alone = summary_of([*together, *pressed]), summary_of(pressed)
    assert [job.name for job in whole.jobs] == ["vae"]
    assert whole.jobs[0].rates == summary_of(together).jobs[0].rates
    assert (alone.jobs, len(alone.records), len(alone.pressed)) == ((), 0, 8)
    (note,) = alone.notes
    assert note == "8 records beside neighbours of known pressure: --table pressure has their curves."
    assert jobs_view(alone).frame.is_empty()
    failed = [pressed[0], replace(pressed[1], completed=False, outcome="failed", message="x")]
    lost = [replace(record, comparable=False) for record in failed]
    assert summary_of(lost).pressed == (), "beside one that died there is no curve"


def test_a_suite_ends_with_its_curve_and_a_file_has_every_digit() -> None:
    records = beside_dram()
    (table,) = (view for view in suite_views(summary_of(records)) if len(view.rows))
    assert [row["level"] for row in rows_of(table)] == [str(level) for level in LEVELS]
    first = pressure_view(curves(records))
    assert [*first.fields][:5] == ["suite", "host", "job", "isolation", "resource"]
    assert "100 %" in text_of(first, width=120)
    rows = rows_of(first)
    seen = [(int(row["level"]), row["kept_over"], row["kept_n"]) for row in rows]
    assert seen == [(level, "rounds", "20") for level in LEVELS]
    assert float(rows[3]["kept"]) == 0.7
    assert float(rows[3]["kept_high"]) < 1


def test_sentences_for_what_is_no_loss_and_no_curve() -> None:
    (flat,) = curves(beside_dram(kept=(1, 1, 1, 1)))
    assert "no loss is shown up to 10.00 GB/s (no interval lies below 1)" in curve_text(flat)
    (between,) = curves(beside_dram(kept=(1, 0.9, 0.8, 1)))
    assert curve_text(between) == (
        "vae beside dram (v1): a loss is shown at 50 %, 75 %; none at 100 % (10.00 GB/s): more launches settle it."
    )
    (few,) = curves(beside_dram(rounds=2))
    assert "(there is no interval yet)" in curve_text(few)
    (none,) = curves([replace(record, kept=None) for record in beside_dram()])
    assert none.curve is None
    assert "nothing is known of it at any level" in curve_text(none)
    assert len(pressure_view([none]).frame) == 0


def test_unreached_pressure_and_dead_neighbours_are_named(tmp_path: Path, capsys: Capture) -> None:
    low, high = beside_dram()[:2], beside_dram(full=4.0)[6:]
    assert curve_text(curves([*low, *high])[0]).endswith(
        "Not reached: 100 %; the neighbour got no more than 4.000 GB/s."
    )
    died = [replace(record, comparable=False) for record in beside_dram(job="wlm")]
    died[1] = replace(died[1], completed=False, outcome="failed", message="It died.", statistics=None)
    _, printed, errors = call(capsys, "report", write(tmp_path, [*beside_dram(), *died]), "--table", "pressure")
    assert "vae beside dram" in printed
    assert "wlm" not in printed, "of what stood beside a dead neighbour there is no curve"
    assert re.search(r"in\.wlm\+pressure_dram_25, repetition 0: .* failed", errors)
