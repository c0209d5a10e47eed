"""Targets and systems: those that come with the suite, and those of anybody's file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cotenant.errors import CotenantError
from cotenant.results.targets import System, Target, read_systems, save_targets, system_of, targets_named

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
        ("job,target,perf_target,sd_target\nvae,0,1,1\n", "line 2: vae needs three positive numbers"),
        ("job,target,perf_target,sd_target\nvae,nan,1,1\n", "positive numbers"),
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


SYSTEMS = read_systems(Path(__file__).resolve().parents[2] / "targets/systems.json")


def test_the_shipped_systems_have_names_of_their_own() -> None:
    assert len({one.name for one in SYSTEMS}) == len(SYSTEMS)
    assert all(one.price is None for one in SYSTEMS)  # what a system costs is its buyer's to say
    assert all(one.watt is not None for one in SYSTEMS)


@pytest.mark.parametrize(
    ("gpu", "devices", "name"),
    [
        ("Tesla V100-PCIE-16GB", 1, "V100"),
        ("Tesla V100-SXM2-32GB", 8, "8x V100 SXM2"),
        ("NVIDIA A100 80GB PCIe", 1, "A100 PCIe 80GB"),
        ("NVIDIA H200", 1, "H200"),
        ("NVIDIA L40S", 1, "L40S"),
        ("NVIDIA L4", 1, "L4"),
        ("AMD Instinct MI300X", 1, "MI300X"),
    ],
)
def test_devices_find_their_system(gpu: str, devices: int, name: str) -> None:
    found = system_of(SYSTEMS, gpu, devices)
    assert found is not None
    assert found.name == name
    assert system_of(SYSTEMS, gpu, 3) is None


def test_own_descriptions(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text('[{"name": "mine", "gpu": "*", "devices": 2, "watt": 1000, "price": 9999.5}]')
    assert read_systems(path) == [System("mine", "*", 2, 1000, 9999.5)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "mine.json"),
        ("{}", "Expected `array`"),
        ('[{"name": "x"}]', r"missing required field `gpu` - at `\$\[0\]`"),
        ('[{"name": "x", "gpu": "*", "devices": 1, "what": 3}]', "unknown field `what`"),
        ('[{"name": "x", "gpu": "*", "devices": 1, "watt": 0}]', r"Expected `float` > 0.0 - at `\$\[0\].watt`"),
        ('[{"name": "x", "gpu": "*", "devices": -1}]', r"Expected `int` >= 0 - at `\$\[0\].devices`"),
    ],
)
def test_a_wrong_file_is_named_with_its_place(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "mine.json"
    path.write_text(text)
    with pytest.raises(CotenantError, match=sentence):
        read_systems(path)
    with pytest.raises(CotenantError, match="cannot be read"):
        read_systems(tmp_path / "none.json")
