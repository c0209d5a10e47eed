"""Pairs predicted from curves, from records of a machine of known contention to the table and the page."""

from __future__ import annotations

import csv
import io
import itertools
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cotenant.commands.report import main as report
from cotenant.errors import CotenantError
from cotenant.report.page import page
from cotenant.report.prediction import prediction_grid, predictions
from cotenant.report.renderers import as_csv, terminal
from cotenant.report.sense import sensitivities
from cotenant.results.decoded import Decoded
from cotenant.results.record import Record
from cotenant.results.store import write_record
from report.making import LEVELS, UNSLICED, beside_dram, fields_of, summary_of
from report.test_mixes import baselines, mix
from results.made import NOON

LOST = {"vae": 0.3, "wlm": 0.1, "loader": 0.2}
TAKES = {"vae": 0.2, "wlm": 0.9, "loader": 0.5}
OF_PROBE = 0.4


def kept(victim: str, neighbour: str) -> float:
    return 1 - LOST[victim] * TAKES[neighbour]


def of_pairs(jobs: list[str]) -> list[Record]:
    found = baselines(*jobs)
    for number, (one, other) in enumerate(itertools.combinations_with_replacement(jobs, 2)):
        found += mix([(one, kept(one, other)), (other, kept(other, one))], second=number)
    return found


def of_curves(jobs: list[str], **place: Any) -> list[Record]:
    found = beside_dram(kept=[1 - OF_PROBE * level / 100 for level in LEVELS], job="probe_dram", items=5, **place)
    for job in jobs:
        shares = [1 - LOST[job] * level / 100 for level in LEVELS]
        found += beside_dram(kept=shares, job=job, full=10 * (1 - OF_PROBE * TAKES[job]), **place)
    return found


def found_in(records: list[Record]) -> list[Any]:
    return predictions(summary_of(records), sensitivities(Decoded(fields_of(record)) for record in records))


def test_predictions_stand_beside_measured_pairs_with_their_error() -> None:
    (found,) = found_in([*of_pairs([*LOST]), *of_curves([*LOST])])
    assert (found.resources, found.blind, found.fit.others) == (("dram",), (), 7)
    assert (found.fit.error < 0.01, found.fit.worst < 0.015, found.fit.constant > 0.03) == (True, True, True)
    rows = list(csv.DictReader(io.StringIO(as_csv(prediction_grid([found])))))
    assert len(rows) == 9
    for row in rows:
        assert float(row["predicted"]) == pytest.approx(kept(row["victim"], row["neighbour"]), rel=0.01)
        assert float(row["error"]) == pytest.approx(float(row["predicted"]) - float(row["measured"]))
    assert sum(int(row["fitted"]) for row in rows) == len(found.fit.of)
    shown = "\n".join(line.plain for line in terminal(prediction_grid([found]), 120))
    assert "On 7 other pairs predictions err by " in shown
    assert "Combined over dram" in shown


def test_a_pair_that_was_not_measured_stands_beside_those_that_were() -> None:
    """Three pairs of two jobs are measured; curves are of three jobs."""
    (found,) = found_in([*of_pairs(["vae", "wlm"]), *of_curves([*LOST])])
    unknown = [each for each in found.pairs if each.measured is None]
    assert len(unknown) == 5
    assert all(each.error is None for each in unknown)


def test_no_prediction_without_measured_pairs_and_none_without_a_probe(tmp_path: Path) -> None:
    assert found_in(of_curves([*LOST])) == []
    assert found_in([*of_pairs([*LOST]), *beside_dram()]) == []
    assert found_in([*of_pairs([*LOST]), *of_curves([*LOST], **UNSLICED)]) == [], "of pairs in slices curves in slices"
    for number, record in enumerate(of_curves(["vae"])):
        write_record(tmp_path, msgspec.structs.replace(record, run_id=number), NOON)
    with pytest.raises(CotenantError) as refusal:
        report(["--predict", str(tmp_path)])
    assert "it takes three pairs at least" in refusal.value.sentence
    with pytest.raises(CotenantError, match="not allowed with"):
        report(["--predict", "--table", "pairs", str(tmp_path)])


def test_the_page_draws_a_curve_a_resource_with_slices_and_without_in_one_picture() -> None:
    naive = of_curves(["vae"], **UNSLICED)
    html = page("Pressed", summary_of([*of_pairs([*LOST]), *of_curves([*LOST]), *naive]), {})
    section = html[html.index('id="pressure"') : html.index('id="results"')]
    assert re.findall(r"<h3>(\w+)</h3>", section)[:3] == [*LOST]
    pictures = re.findall(r"<svg.*?</svg>", section, re.DOTALL)
    assert len(pictures) == 3, "one resource; probes are no jobs"
    assert ["stroke-dasharray" in picture for picture in pictures] == [True, False, False], "without slices is dashed"
    assert all("GB/s of the neighbour" in picture for picture in pictures)
    assert 'id="prediction"' in section
    assert "fingerprints" in section
