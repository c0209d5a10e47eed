"""Pairs predicted from curves, from records of a machine of known contention to the table and the page."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from commands.calling import refusal, write
from cotenant.commands.report import main as report
from cotenant.report.page import page
from cotenant.report.prediction import prediction_grid, predictions
from cotenant.report.sense import sensitivities
from cotenant.results.record import Record
from report.making import LEVELS, UNSLICED, beside_dram, rows_of, summary_of, text_of
from report.test_mixes import pairs

LOST = {"vae": 0.3, "wlm": 0.1, "loader": 0.2}
TAKES = {"vae": 0.2, "wlm": 0.9, "loader": 0.5}
OF_NEIGHBOUR = 0.4


def kept(victim: str, neighbour: str) -> float:
    return 1 - LOST[victim] - TAKES[neighbour] / 3


def of_curves(jobs: list[str], **place: Any) -> list[Record]:
    records = []
    for job in jobs:
        shares = [1 - LOST[job] * level / 100 for level in LEVELS]
        records += beside_dram(kept=shares, job=job, leaves=1 - OF_NEIGHBOUR * TAKES[job], **place)
    return records


def found_in(records: list[Record]) -> list[Any]:
    summary = summary_of(records)
    return predictions(summary, sensitivities(summary))


def test_predictions_stand_beside_measured_pairs_with_their_error() -> None:
    (found,) = found_in([*pairs(keeps=kept), *of_curves([*LOST])])
    assert (found.fit.error < 0.06 < found.fit.constant, len(found.pairs)) == (True, 9)
    for row in rows_of(prediction_grid([found])):
        assert float(row["predicted"]) == pytest.approx(kept(row["victim"], row["neighbour"]), abs=0.2)
        assert float(row["error"]) == pytest.approx(float(row["predicted"]) - float(row["measured"]))
    assert "On launches left out predictions err by " in text_of(prediction_grid([found]), width=120)


def test_a_pair_that_was_not_measured_stands_beside_those_that_were() -> None:
    """All pairs of three jobs are measured but one; curves are not needed."""
    (found,) = found_in(pairs("vae+loader", keeps=kept))
    unknown = {(each.victim, each.neighbour, each.error) for each in found.pairs if each.measured is None}
    assert unknown == {("vae", "loader", None), ("loader", "vae", None)}


def test_where_one_number_says_as_much_a_sentence_says_that_there_is_nothing_to_predict() -> None:
    (found,) = found_in(pairs(keeps=lambda *pair: random.Random(f"chance {pair}").uniform(0.8, 1)))
    assert found.pairs == ()
    assert "There is nothing to predict" in text_of(prediction_grid([found]), width=120)


def test_no_prediction_without_measured_pairs(tmp_path: Path) -> None:
    assert found_in(of_curves([*LOST])) == []
    place = str(write(tmp_path, of_curves(["vae"])))
    assert "it takes three measured pairs at least" in refusal(report, ["--predict", place])
    assert "not allowed with" in refusal(report, ["--predict", "--table", "pairs", place])


def test_the_page_draws_a_curve_a_resource_with_slices_and_without_in_one_picture() -> None:
    naive = of_curves(["vae"], **UNSLICED)
    html = page("Pressed", summary_of([*pairs(keeps=kept), *of_curves([*LOST]), *naive]), {})
    section = html[html.index('id="pressure"') : html.index('id="results"')]
    assert re.findall(r"<h3>(\w+)</h3>", section)[:3] == [*LOST]
    pictures = re.findall(r"<svg.*?</svg>", section, re.DOTALL)
    assert len(pictures) == 3, "one resource"
    assert ["stroke-dasharray" in picture for picture in pictures] == [True, False, False], "without slices is dashed"
    assert all("GB/s of the neighbour" in picture for picture in pictures)
    assert 'id="prediction"' in section
    assert "fingerprints" in section
