"""A launch beside a neighbour of known pressure, from what tenants send to the curve that is printed."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cotenant.commands.report import main as report
from cotenant.report.fingerprints import fingerprints_grid
from cotenant.report.jobs import jobs_grid
from cotenant.report.renderers import as_csv, terminal
from cotenant.report.sense import sense_grid, sensitivities, sensitivities_of, words_of
from cotenant.report.suite_end import suite_grids
from cotenant.results.decoded import Decoded
from cotenant.results.pressure import pressures
from cotenant.results.record import Record
from cotenant.results.store import write_record
from report.making import BLOCK_MS, LEVELS, beside_dram, fields_of, launch, summary_of
from results.made import NOON, a_part, a_statement, observed


def curves(records: Sequence[Record]) -> list[Any]:
    return sensitivities(Decoded(fields_of(record)) for record in records)


def test_what_tenants_send_becomes_a_curve() -> None:
    records = beside_dram()
    assert [record.meters["pressure"]["unit"] for record in records] == ["GB", "GB"]
    assert records[1].statistics is None, "at level 0 it counts nothing: of all levels there is no one rate"
    (found,) = curves(records)
    assert (found.conditions.job, found.conditions.resource, found.doubts) == ("vae", "dram", ())
    points = found.curve.points
    assert [point.level for point in points] == [*LEVELS]
    assert [point.achieved for point in points] == pytest.approx([0, 2.5, 5, 7.5, 10])
    assert [point.kept for point in points] == pytest.approx([1, 1, 0.9, 0.8, 0.7], rel=0.01)
    # Of the first block three observations are skipped, and others lie inside.
    assert [point.n for point in points] == [4] * 5
    assert found.curve.hinge.knee == pytest.approx(2.5, abs=0.2)
    assert found.curve.hinge.slope == pytest.approx(0.04, abs=0.002)
    assert words_of(found).startswith("vae beside dram (v1): beyond 2.5")
    assert "it loses 4" in words_of(found)
    assert "% of its rate with each GB/s." in words_of(found)


def test_no_rate_of_theirs_stands_in_any_other_table() -> None:
    together, pressed = launch("vae", tenants=2), beside_dram()
    whole, alone = summary_of([*together, *pressed]), summary_of(pressed)
    assert [job.name for job in whole.jobs] == ["vae"]
    assert whole.jobs[0].rates == summary_of(together).jobs[0].rates
    assert (alone.jobs, len(alone.under_pressure)) == ((), 2)
    (note,) = alone.notes
    assert note == "2 records beside neighbours of known pressure: --table sense has their curves."
    assert jobs_grid(alone).rows == []
    failed = [pressed[0], replace(pressed[1], completed=False, outcome="failed", message="x")]
    lost = [replace(record, comparable=False) for record in failed]
    assert len(summary_of(lost).under_pressure) == 0, "beside one that died there is no curve"


def test_a_suite_ends_with_its_curve_and_a_file_has_every_digit() -> None:
    records = beside_dram()
    assert [len(grid.rows) for grid in suite_grids(summary_of(records))] == [0], "no table of tenants without a rate"
    first = sense_grid(sensitivities_of(records))
    assert first.fields[:5] == ("suite", "host", "job", "isolation", "resource")
    shown = "\n".join(line.plain for line in terminal(first, 120))
    assert "100 %" in shown
    rows = list(csv.DictReader(io.StringIO(as_csv(sense_grid(curves(beside_dram()))))))
    assert [row["level"] for row in rows] == ["0", "25", "50", "75", "100"]
    assert [(row["samples"], row["launches"], row["n"]) for row in rows] == [("rounds", "1", "4")] * 5
    assert (rows[0]["kept"], rows[0]["kept_low"]) == ("1.0", "")
    assert float(rows[4]["kept_high"]) < 1


def test_sentences_for_what_is_no_loss_and_no_curve() -> None:
    (flat,) = curves(beside_dram(kept=(1, 1, 1, 1, 1)))
    assert "no loss is shown up to 10.00 GB/s (no interval lies below 1)" in words_of(flat)
    (between,) = curves(beside_dram(kept=(1, 1, 0.9, 0.8, 1)))
    assert words_of(between) == (
        "vae beside dram (v1): a loss is shown at 50 %, 75 %; none at 100 % (10.00 GB/s): more launches settle it."
    )
    (few,) = curves(beside_dram(rounds=2))
    assert "(no interval, of fewer than three rounds)" in words_of(few)
    records = beside_dram()
    for block in records[0].meters["pressure"]["blocks"]:
        block["rate"] = None
    (none,) = curves(records)
    assert none.curve is None
    assert "no observation lay within a block of level 0" in words_of(none)
    assert sense_grid([none]).rows == []
    (three,) = curves([record for uid in range(3) for record in beside_dram(uid)])
    assert (three.curve.samples, three.curve.points[4].n) == ("launches", 3)


def test_a_fingerprint_is_what_a_job_keeps_and_what_it_leaves_a_probe() -> None:
    """A probe of 10 GB/s keeps 0.6 beside the neighbour at full level; beside vae, that neighbour gets 8 GB/s."""
    probe = beside_dram(kept=(1, 0.9, 0.8, 0.7, 0.6), job="probe_dram", items=5)
    records = [*beside_dram(full=8.0), *probe]
    vae, of_probe = curves(records)
    assert (vae.is_probe, of_probe.is_probe, of_probe.taken) == (False, True, None)
    assert vae.taken.kept == pytest.approx(0.8, rel=0.01)
    assert (vae.taken.level, vae.taken.amount) == (pytest.approx(50, rel=0.02), pytest.approx(5, rel=0.02))
    shown = [[cell.text for cell in row.cells.values()] for row in fingerprints_grid([vae, of_probe]).rows]
    assert [row[2:5] for row in shown] == [["vae", "v1", "keeps"], ["", "", "leaves"], ["", "", "like"]]
    assert [row[5] for row in shown] == ["0.700", f"{vae.taken.kept:.3f}", f"{vae.taken.level:.0f} %"]
    (first, *_) = csv.DictReader(io.StringIO(as_csv(sense_grid([vae]))))
    assert (float(first["leaves"]), float(first["like_level"])) == (vae.taken.kept, vae.taken.level)
    other = [replace(record, unique_id="another work") for record in beside_dram(1, full=6.0)]
    of_works = curves([*records[:2], *other, *probe])[:2]
    assert [each.taken.kept for each in of_works] == pytest.approx([0.8, 0.6], rel=0.01)
    assert fingerprints_grid(curves(beside_dram())).groups == [], "without a probe nobody knows what is left"
    blind = curves([*beside_dram(full=8.0), *beside_dram(kept=(1,) * 5, job="probe_dram", items=5)])
    assert "none seen" in "\n".join(line.plain for line in terminal(fingerprints_grid(blind), 120))


def test_a_pressure_that_was_not_reached_and_a_neighbour_that_died_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = beside_dram()
    for block in records[0].meters["pressure"]["blocks"]:
        block["achieved"] = min(block["achieved"], 4.0)
    assert words_of(curves(records)[0]).endswith("Not reached: 75 %, 100 %; the neighbour got no more than 4.000 GB/s.")
    died = [replace(record, comparable=False) for record in beside_dram(job="wlm")]
    died[1] = replace(died[1], completed=False, outcome="failed", message="It died.", statistics=None)
    for second, record in enumerate([*beside_dram(), *died]):
        write_record(tmp_path, record, NOON + timedelta(seconds=second))
    report(["--table", "sense", str(tmp_path)])
    printed = capsys.readouterr()
    assert "vae beside dram" in printed.out
    assert "wlm" not in printed.out, "of what stood beside a dead neighbour there is no curve"
    assert re.search(r"in\.wlm\+dram, repetition 0: .* failed", printed.err)


def test_a_launch_of_two_neighbours_of_pressure_or_of_one_level_has_no_curve() -> None:
    told = [
        a_statement(observations=observed([BLOCK_MS] * 2), part=a_part(observed={"levels": levels}))
        for levels in ([0, 5], [5, 0])
    ]
    assert pressures(told, ["a", "b"]) == [{}, {}]
    one = [told[0], a_statement()]
    one[0].part["observed"]["levels"] = [5, 5]
    assert pressures(one, ["a", "b"]) == [{}, {}]
    one[0].part["observed"]["levels"] = "nonsense"
    assert pressures(one, ["a", "b"]) == [{}, {}]
