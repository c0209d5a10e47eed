"""A job beside a neighbour of known pressure, through the real runner: blocks in the records, a curve from them."""

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
def test_a_launch_yields_a_curve_and_no_launch_of_the_job(tmp_path: Path) -> None:
    words = ["--jobs", "cpu", "--name", "vae", "--pressure", "cpu:0,100", "--isolation", "none", "--outdir"]
    ran(tmp_path, *words, str(tmp_path / "out"), "--", "--number", "5", "--repeat", "10")
    records: dict[str, Any] = {}
    for path in (tmp_path / "out").glob("*.json"):
        if not path.name.endswith(".resolved.json"):
            record = json.loads(path.read_text())
            records[record["name"]] = record
    assert records.keys() == {"vae.in.vae+cpu", "pressure_cpu.in.vae+cpu"}
    job, neighbour = records["vae.in.vae+cpu"], records["pressure_cpu.in.vae+cpu"]
    levels = neighbour["observed"]["levels"]
    assert sorted(levels[:2]) == [0, 100]
    assert len(levels) == len(neighbour["observations"]) >= 8
    assert neighbour["asked"]["number"] == 60, "what a person gives to benchmarks is not for the neighbour"
    blocks = job["meters"]["pressure"]["blocks"]
    assert [block["level"] for block in blocks] == levels
    for block in blocks:
        assert (block["achieved"] > 0) == (block["level"] > 0)
    assert sum(block["observations"] for block in blocks) <= len(job["observations"]) - job["skip"]
    document = json.loads(ran(tmp_path, "report", str(tmp_path / "out"), "--table", "sense", "--format", "json"))
    (curve,) = document["curves"]
    assert [point["level"] for point in curve["curve"]["points"]] == [0, 100]
    assert curve["curve"]["points"][1]["n"] >= 3
    assert json.loads(ran(tmp_path, "report", str(tmp_path / "out"), "--format", "json"))["jobs"] == []


@pytest.mark.slow
def test_sense_yields_a_fingerprint_and_with_pairs_a_prediction(tmp_path: Path) -> None:
    jobs = json.loads((ROOT / "profiles/cpu.json").read_text())
    chosen = [job for job in jobs if job["name"] in ("vae", "toy_reg")]
    for job in chosen:
        job["args"] |= {"--repeat": 6, "--number": 3}
    entries = [
        {"name": "pairs", "pairs": ["vae", "toy_reg"]},
        {"name": "curves", "sense": ["vae", "toy_reg"], "pressure": ["cpu:0,100"], "block_s": 1},
    ]
    (tmp_path / "lab.json").write_text(json.dumps([*chosen, *entries]))
    out = str(tmp_path / "out")
    printed = ran(tmp_path, "--jobs", str(tmp_path / "lab.json"), "--baseline", "quick", "--outdir", out)
    assert "fingerprints" in printed
    assert "pairs of lab" in printed
    sense = json.loads(ran(tmp_path, "report", out, "--table", "sense", "--format", "json"))
    taken = {curve["conditions"]["job"]: curve["taken"] for curve in sense["curves"]}
    assert taken["probe_cpu"] is None
    assert all(0 < taken[job]["probe"]["value"] < 10 for job in ("vae", "toy_reg"))
    (found,) = json.loads(ran(tmp_path, "report", out, "--predict", "--format", "json"))["predictions"]
    pairs = {(pair["victim"], pair["neighbour"]) for pair in found["pairs"] if pair["measured"] is not None}
    assert pairs == {(victim, other) for victim in ("vae", "toy_reg") for other in ("vae", "toy_reg")}
