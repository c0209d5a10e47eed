"""`--pressure`: the neighbours that it makes, the jobs beside them, and words that it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cotenant.errors import CotenantError
from cotenant.launch.start import Options
from cotenant.suite.pressure import level_of, pressable, why_unpressed
from launch import resolving

DRAM = ("pressure_dram_50", "pressure_dram_100")


def options(*words: str) -> Options:
    return resolving.options("--jobs", "cpu", *words)


def flags(job: Any) -> dict[str, Any]:
    return {name: value for name, (value,) in job.args}


def test_each_chosen_job_is_paired_with_each_level_of_each_neighbour_and_runs_nowhere_else() -> None:
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


def test_what_is_taken_at_rest_too_is_pairs_of_their_own() -> None:
    """A neighbour keeps its memory even while it is held."""
    made = options("--name", "vae", "--pressure", "memory:50,100")
    made_of = [(mix.name, mix.pairs) for mix in made.mixes]
    assert made_of == [("vae+pressure_memory_50", ()), ("vae+pressure_memory_100", ())]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--pressure", "dram:"], "'' are no levels"),
        (["--pressure", "dram:0"], "level 0 is a neighbour at rest"),
        (["--pressure", "dram", "--baseline", "none"], "a curve is what it keeps of that"),
        (["--pressure", "dram:0,101"], "different percentages, 1 to 100"),
        (["--pressure", "dram:-5,0"], "different percentages, 1 to 100"),
        (["--pressure", "dram:0,50,50"], "different percentages, 1 to 100"),
        (["--sense", "vae", "--users", "3"], "--sense: these launches are of two"),
        (["--sense", "vae", "--mix", "vae,wlm"], "--mix is one launch and --sense are several"),
        (["--sense", " "], "--sense names no job"),
        (["--pressure", "dram", "--mix", "vae,wlm"], "both say who stands beside a job"),
        (["--name", "convnet_distributed", "--pressure", "dram"], "of the group 'all'"),
        (["--pressure", "dram", "--pressure", "dram:0,50"], "is the name of a mix and of another entry"),
    ],
)
def test_what_makes_no_curve_is_refused(words: list[str], sentence: str) -> None:
    usual = [] if {"--name", "--mix", "--sense"}.intersection(words) else ["--name", "vae"]
    with pytest.raises(CotenantError) as refusal:
        options(*usual, *words)
    assert sentence in refusal.value.sentence
    assert refusal.value.remedy


def test_sense_is_every_curve_of_the_jobs() -> None:
    made = options("--sense", "vae,wlm", "--pressure", "dram:100", "--pressure", "cpu")
    assert [mix.labels for mix in made.mixes] == [
        ("vae", "wlm", "pressure_dram_100"),
        ("vae", "wlm", *(f"pressure_cpu_{level}" for level in (25, 50, 75, 100))),
    ]
    assert (made.jobs, made.users, made.baseline) == ((), 2, "blocks")
    every = options("--sense", "vae", "--pairs", "vae,wlm")
    found = {known[0] for mix in every.mixes for label in mix.labels if (known := level_of(label)) is not None}
    assert found == {"cpu", "llc", "dram", "disk", "memory"}
    assert [mix.name for mix in every.mixes[0].apart] == ["vae+vae", "vae+wlm", "wlm+wlm"]


def test_a_neighbour_is_known_by_its_name_alone() -> None:
    assert level_of("pressure_dram_50") == ("dram", 50)
    for other in ("vae", "pressure_dram", "pressure_drum_50", "my_pressure_dram_50", "pressure_dram_50x"):
        assert level_of(other) is None


def test_a_job_file_names_pairs_and_curves(tmp_path: Path) -> None:
    jobs = [{"name": name, "cmd": "./x.sh", "cgroup": "student"} for name in ("vae", "wlm", "loader")]
    entries = [
        {"name": "pairs", "pairs": ["vae", "wlm", "loader"]},
        {"name": "curves", "sense": ["vae"], "pressure": ["dram:0,100"]},
    ]
    path = tmp_path / "lab.json"
    path.write_text(json.dumps([*jobs, *entries]))
    made = options("--jobs", str(path))
    assert [mix.name for mix in made.mixes] == ["pairs", "curves_dram"]
    assert (len(made.jobs), made.users, made.baseline) == (3, 2, "blocks")
    assert made.mixes[1].labels == ("vae", "pressure_dram_100")
    (pairs,) = options("--jobs", str(path), "--name", "pairs").mixes
    assert [mix.name for mix in pairs.apart] == ["vae+wlm", "vae+loader", "wlm+loader"]
    for wrong, sentence in (
        ({"name": "pairs", "pairs": ["vae"]}, "'pairs' names one job"),
        ({"name": "pairs", "pairs": ["vae", "wml"]}, "there is no job 'wml'"),
        ({"name": "curves", "sense": "vae"}, "'sense' is the string"),
        ({"name": "curves", "sense": ["vae"], "presure": ["dram"]}, "has no key 'presure'"),
        ({"sense": ["vae"]}, "the key 'name' is missing"),
        ({"name": "more", "sense": ["vae"], "pressure": ["dram"]}, "is the name of a mix and of another entry"),
        ({"name": "curves", "sense": ["vae"], "block_s": 1}, "has no key 'block_s'"),
    ):
        path.write_text(json.dumps([*jobs, entries[1], wrong] if "more" in wrong.values() else [*jobs, wrong]))
        with pytest.raises(CotenantError) as refusal:
            options("--jobs", str(path))
        assert sentence in refusal.value.sentence
    path.write_text(json.dumps([*jobs, *entries]))
    with pytest.raises(CotenantError, match="pairs: these launches are of two"):
        options("--jobs", str(path), "--users", "4")


def test_tenants_press_on_what_they_share() -> None:
    hosts = ("cpu", "llc", "dram", "disk", "memory")
    assert [pressable(devices) for devices in (0, 1, 2)] == [
        hosts,
        (*hosts, "pcie", "sm", "hbm", "l2", "launch"),
        (*hosts, "pcie"),
    ]
    for resource, devices, in_memory, why in (
        ("disk", [(), ()], True, "no disk is pressed"),
        ("disk", [(), ()], False, ""),
        ("dram", [(), ()], True, ""),
        ("hbm", [(), ()], False, "no device to be pressed"),
        ("pcie", [(), ()], False, "no device to be pressed"),
        ("hbm", [(0,), (1,)], False, "CUDA_VISIBLE_DEVICES=0"),
        ("pcie", [(0,), (1,)], False, ""),
        ("hbm", [(0,), (0,)], False, ""),
    ):
        reason = why_unpressed(("vae", f"pressure_{resource}_100"), devices, in_memory)
        assert why in reason
        assert bool(why) == bool(reason)
    assert why_unpressed(("vae", "wlm"), [(), ()], True) == ""
