"""Targets: those that come with the suite, and those of anybody's file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cotenant.errors import CotenantError
from cotenant.results.targets import Target, save_targets, targets_named

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "targets"


@pytest.mark.parametrize("model", ["V100", "MI50", "RTX", "v100"])
def test_every_shipped_file_has_every_job_of_the_reference_suite(model: str) -> None:
    jobs = [job["name"] for job in json.loads((ROOT / "baselines.json").read_text())]
    targets = targets_named(model, SHIPPED)
    assert list(targets) == [*jobs, "scaling"]
    assert targets["loader"].most_spread == 0.1
    assert targets["scaling"] == Target(1.0, 0.85, 0.02)


def test_published_numbers() -> None:
    assert targets_named("V100", SHIPPED)["toy_reg"].rate == 300000
    assert targets_named("MI50", SHIPPED)["dcgan_all"].rate == 261.60
    assert targets_named("RTX", SHIPPED)["atari"].rate == 5


def test_what_is_saved_is_read_back(tmp_path: Path) -> None:
    made = {"vae": Target(4711.25, 0.5, 0.05), "a,b": Target(1.0, 0.9, 0.1)}
    save_targets(tmp_path / "mine.csv", made)
    assert targets_named(str(tmp_path / "mine.csv"), SHIPPED) == made


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("job,rate\n", "does not begin with job,target,perf_target,sd_target"),
        ("", "does not begin"),
        ("job,target,perf_target,sd_target\nvae,1\n", "line 2"),
        ("job,target,perf_target,sd_target\nvae,x,1,1\n", "line 2"),
        ("job,target,perf_target,sd_target\nvae,0,1,1\n", "have to be positive"),
        ("job,target,perf_target,sd_target\nvae,nan,1,1\n", "have to be positive"),
        ("job,target,perf_target,sd_target\nvae,1,1,1\n\nvae,1,1,1\n", "twice"),
        ("\x00\ufffe", "does not begin"),
    ],
)
def test_a_broken_file_is_an_error_with_its_line(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(CotenantError, match=sentence):
        targets_named(str(path), SHIPPED)


def test_an_unknown_model_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(CotenantError, match="Did you mean 'V100'"):
        targets_named("V10", SHIPPED)
    with pytest.raises(CotenantError, match="Known: MI50, RTX, V100"):
        targets_named("abacus", SHIPPED)
    with pytest.raises(CotenantError, match="There is no file"):
        targets_named(str(tmp_path / "none.csv"), SHIPPED)
