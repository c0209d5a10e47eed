"""Jobs beside neighbours of known pressure, through the real runner: pairs in the records, a curve from them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def ran(base: Path, *words: str) -> str:
    ended = subprocess.run(
        [sys.executable, ROOT / "run.py", *words],
        env=os.environ | {"BASE": str(base), "PYTHONPATH": str(ROOT / "common")},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.slow
def test_a_launch_yields_a_curve_and_the_records_of_its_pairs(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    words = ["--jobs", "cpu", "--name", "vae", "--pressure", "cpu:50,100", "--isolation", "none", "--budget", "20"]
    ran(tmp_path, *words, "--outdir", out)
    records: dict[str, Any] = {}
    for path in Path(out).glob("*.json"):
        if not path.name.endswith(".resolved.json"):
            record = json.loads(path.read_text())
            records[record["name"]] = record
    pairs = [f"vae+pressure_cpu_{level}" for level in (50, 100)]
    assert records.keys() == {f"{label}.in.{pair}" for pair in pairs for label in pair.split("+")}
    for record in records.values():
        assert record["kept"]["n"] >= 6
        assert record["blocks"]["residents"] == 3
        assert {row["kind"] for row in record["observations"] if row["kept"]} == {"all", "only"}
        assert not [found for found in record["findings"] if found["severity"] == "error"]
    half, full = (records[f"pressure_cpu_{level}.in.vae+pressure_cpu_{level}"] for level in (50, 100))
    assert 0.3 < half["statistics"]["median"] / full["statistics"]["median"] < 0.8
    document = json.loads(ran(tmp_path, "report", out, "--table", "sense", "--format", "json"))
    (curve,) = document["curves"]
    assert [point["level"] for point in curve["curve"]["points"]] == [50, 100]
    assert all(point["kept"]["interval"] for point in curve["curve"]["points"])
    assert 0 < curve["leaves"]["value"] < 2
    assert json.loads(ran(tmp_path, "report", out, "--format", "json"))["jobs"] == []


@pytest.mark.slow
def test_sense_yields_fingerprints_and_with_pairs_a_prediction(tmp_path: Path) -> None:
    jobs = json.loads((ROOT / "profiles/cpu.json").read_text())
    chosen = [job for job in jobs if job["name"] in ("vae", "toy_reg")]
    entries = [
        {"name": "pairs", "pairs": ["vae", "toy_reg"]},
        {"name": "curves", "sense": ["vae", "toy_reg"], "pressure": ["cpu:100"]},
    ]
    (tmp_path / "lab.json").write_text(json.dumps([*chosen, *entries]))
    out = str(tmp_path / "out")
    printed = ran(tmp_path, "--jobs", str(tmp_path / "lab.json"), "--budget", "10", "--outdir", out)
    assert "fingerprints" in printed
    sense = json.loads(ran(tmp_path, "report", out, "--table", "sense", "--format", "json"))
    assert {curve["conditions"]["job"] for curve in sense["curves"]} == {"vae", "toy_reg"}
    assert all(0 < curve["leaves"]["value"] < 10 for curve in sense["curves"])
    (found,) = json.loads(ran(tmp_path, "report", out, "--predict", "--format", "json"))["predictions"]
    pairs = {(pair["victim"], pair["neighbour"]) for pair in found["pairs"] if pair["measured"] is not None}
    assert pairs <= {(victim, other) for victim in ("vae", "toy_reg") for other in ("vae", "toy_reg")}
