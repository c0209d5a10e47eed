"""Jobs beside neighbours of known pressure, through the real runner: pairs in the records, a curve from them."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

from commands.calling import Capture, call
from tenants.suites import ROOT, Suites, errors

TWO = ("vae", "toy_reg")


def reported(suites: Suites, capsys: Capture, *words: str) -> dict[str, Any]:
    status, printed, errors = call(capsys, "report", suites.output, *words, "--format", "json")
    assert status == 0, errors
    document: dict[str, Any] = json.loads(printed)
    return document


@pytest.mark.slow
def test_a_launch_yields_a_curve_and_the_records_of_its_pairs(loose: Suites, capsys: Capture) -> None:
    words = ("--jobs", "cpu", "--name", "vae", "--pressure", "cpu:50,100", "--budget", 20)
    loose.run(None, *words, limit_s=500, status=0)
    records = {record["name"]: record for record in loose.records()}
    pairs = [f"vae+pressure_cpu_{level}" for level in (50, 100)]
    assert records.keys() == {f"{label}.in.{pair}" for pair in pairs for label in pair.split("+")}
    for record in records.values():
        assert record["kept"]["n"] >= 6
        assert record["blocks"]["residents"] == 3
        assert {row["kind"] for row in record["observations"] if row["kept"]} == {"all", "only"}
        assert not errors(record)
    half, full = (records[f"pressure_cpu_{level}.in.vae+pressure_cpu_{level}"] for level in (50, 100))
    assert 0.3 < half["statistics"]["median"] / full["statistics"]["median"] < 0.8
    (curve,) = reported(loose, capsys, "--table", "sense")["curves"]
    assert [point["level"] for point in curve["curve"]["points"]] == [50, 100]
    assert all(point["kept"]["interval"] for point in curve["curve"]["points"])
    assert 0 < curve["leaves"]["value"] < 2
    assert reported(loose, capsys)["jobs"] == []


@pytest.mark.slow
def test_sense_yields_fingerprints_and_with_pairs_a_prediction(loose: Suites, capsys: Capture) -> None:
    """A prediction that one number for all pairs would be as good as has none of them."""
    jobs = json.loads((ROOT / "profiles/cpu.json").read_text())
    entries = [{"name": "pairs", "pairs": [*TWO]}, {"name": "curves", "sense": [*TWO], "pressure": ["cpu:100"]}]
    path = loose.jobs([*(job for job in jobs if job["name"] in TWO), *entries])
    ended = loose.run(None, "--jobs", path, "--budget", 10, "--isolation", "auto", limit_s=500, status=0)
    assert "fingerprints" in ended.stdout
    curves = reported(loose, capsys, "--table", "sense")["curves"]
    assert {curve["conditions"]["job"] for curve in curves} == {*TWO}
    assert all(0 < curve["leaves"]["value"] < 10 for curve in curves)
    (found,) = reported(loose, capsys, "--predict")["predictions"]
    pairs = {(pair["victim"], pair["neighbour"]) for pair in found["pairs"] if pair["measured"] is not None}
    errs_less = found["fit"]["error"] < found["fit"]["constant"]
    assert pairs == ({*product(TWO, TWO)} if errs_less else set())
