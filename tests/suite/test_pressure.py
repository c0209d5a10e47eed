"""`--pressure`: the neighbours that it makes, the jobs beside them, and words that it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cotenant.errors import CotenantError
from cotenant.launch.start import Options
from cotenant.suite.pressure import level_of, why_unpressed
from launch import resolving

DRAM = ("pressure_dram_50", "pressure_dram_100")


def options(*words: str) -> Options:
    return resolving.options("--jobs", "cpu", *words)


def flags(job: Any) -> dict[str, Any]:
    return {name: value for name, (value,) in job.args}


def test_each_job_is_paired_with_each_level_of_each_neighbour() -> None:
    made = options("--name", "vae,wlm", "--pressure", "dram:50,0,100", "--pressure", "cpu:10")
    assert made.jobs == ()
    assert [(mix.name, mix.labels, mix.pairs) for mix in made.mixes] == [
        ("pressure_dram", ("vae", "wlm", *DRAM), ((0, 2), (0, 3), (1, 2), (1, 3))),
        ("pressure_cpu", ("vae", "wlm", "pressure_cpu_10"), ((0, 2), (1, 2))),
    ]
    assert [pair.name for pair in made.mixes[1].apart] == ["vae+pressure_cpu_10", "wlm+pressure_cpu_10"]
    assert (made.users, made.baseline) == (2, "blocks")
    assert [job.name for job in made.neighbours] == [*DRAM, "pressure_cpu_10"]
    assert made.neighbours[0].cmd == "./pressure/dram/pytorch/run.sh"
    assert flags(made.neighbours[0]) == {"--level": 50}
    assert options("--name", "vae", "--pressure", "dram", "--isolation", "none").baseline == "blocks"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--pressure", "dram:"], "'' are no levels"),
        (["--pressure", "dram:0"], "level 0 is a neighbour at rest"),
        (["--pressure", "dram", "--baseline", "none"], "a curve is relative to that rate"),
        (["--pressure", "dram:0,101"], "different percentages, 1 to 100"),
        (["--pressure", "dram:-5,0"], "different percentages, 1 to 100"),
        (["--pressure", "dram:0,50,50"], "different percentages, 1 to 100"),
        (["--pressure", "dram", "--users", "3"], "--pressure: these launches have two"),
        (["--pressure", "pcie:50"], "--pressure pcie was removed"),
        (["--pairs", "vae,wlm", "--mix", "vae,wlm"], "--mix is one launch and --pairs are several"),
        (["--pairs", " "], "--pairs names no job"),
        (["--pressure", "dram", "--mix", "vae,wlm"], "both choose a job's neighbours"),
        (["--name", "convnet_distributed", "--pressure", "dram"], "of the group 'all'"),
        (["--pressure", "dram", "--pressure", "dram:0,50"], "is the name of a mix and of another entry"),
    ],
)
def test_what_makes_no_curve_is_refused(words: list[str], sentence: str) -> None:
    usual = [] if {"--name", "--mix", "--pairs"}.intersection(words) else ["--name", "vae"]
    with pytest.raises(CotenantError) as refusal:
        options(*usual, *words)
    assert sentence in refusal.value.sentence
    assert refusal.value.remedy


def test_a_neighbour_is_known_by_its_name_alone() -> None:
    assert level_of("pressure_dram_50") == ("dram", 50)
    for other in ("vae", "pressure_dram", "pressure_drum_50", "my_pressure_dram_50", "pressure_dram_50x"):
        assert level_of(other) is None


def test_a_job_file_names_pairs(tmp_path: Path) -> None:
    jobs = [{"name": name, "cmd": "./x.sh", "cgroup": "student"} for name in ("vae", "wlm", "loader")]
    entry = {"name": "pairs", "pairs": ["vae", "wlm", "loader"]}
    path = tmp_path / "lab.json"
    path.write_text(json.dumps([*jobs, entry]))
    made = options("--jobs", str(path))
    assert [mix.name for mix in made.mixes] == ["pairs"]
    assert (len(made.jobs), made.users, made.baseline) == (3, 2, "blocks")
    (pairs,) = options("--jobs", str(path), "--name", "pairs").mixes
    assert [mix.name for mix in pairs.apart] == ["vae+wlm", "vae+loader", "wlm+loader"]
    with pytest.raises(CotenantError, match="pairs: these launches have two"):
        options("--jobs", str(path), "--users", "4")
    for wrong, sentence in (
        ({"name": "pairs", "pairs": ["vae"]}, "'pairs' names one job"),
        ({"name": "pairs", "pairs": "vae"}, "'pairs' is the string"),
        ({"name": "pairs", "pairs": ["vae", "wml"]}, "there is no job 'wml'"),
        ({"name": "pairs", "pairs": ["vae", "wlm"], "timout": 1}, "has no key 'timout'"),
        ({"pairs": ["vae", "wlm"]}, "the key 'name' is missing"),
        ({"name": "curves", "sense": ["vae"]}, "the key 'sense' was removed"),
    ):
        path.write_text(json.dumps([*jobs, wrong]))
        with pytest.raises(CotenantError) as refusal:
            options("--jobs", str(path))
        assert sentence in refusal.value.sentence


def test_tenants_press_on_what_they_share() -> None:
    for resource, devices, in_memory, why in (
        ("disk", [(), ()], True, "no disk is pressed"),
        ("disk", [(), ()], False, ""),
        ("dram", [(), ()], True, ""),
        ("hbm", [(), ()], False, "no device to be pressed"),
        ("hbm", [(0,), (1,)], False, "CUDA_VISIBLE_DEVICES=0"),
        ("hbm", [(0,), (0,)], False, ""),
    ):
        reason = why_unpressed(("vae", f"pressure_{resource}_100"), devices, in_memory)
        assert why in reason
        assert bool(why) == bool(reason)
    assert why_unpressed(("vae", "wlm"), [(), ()], True) == ""
