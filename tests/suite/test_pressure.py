"""`--pressure`: which neighbour it makes, beside whom, and what is refused."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from cotenant.commands.suite_flags import suite_parser
from cotenant.commands.suite_options import options_of
from cotenant.errors import CotenantError
from cotenant.launch.start import Options
from cotenant.suite.pressure import neighbour, pressable, why_unpressed
from machine.invented import machine


def options(*words: str, extra: tuple[str, ...] = ()) -> Options:
    given: argparse.Namespace = suite_parser("", "", "").parse_words(["--jobs", "cpu", *words])
    return options_of(given, extra, machine(8))


def flags(job: Any) -> dict[str, Any]:
    return {name: value for name, (value,) in job.args}


def test_each_chosen_job_stands_beside_each_neighbour_and_runs_nowhere_else() -> None:
    made = options("--name", "vae,wlm", "--pressure", "dram:50,0", "--pressure", "memory")
    assert made.jobs == ()
    assert [(mix.name, mix.labels) for mix in made.mixes] == [
        ("vae+dram", ("vae", "pressure_dram")),
        ("wlm+dram", ("wlm", "pressure_dram")),
        ("vae+memory", ("vae", "pressure_memory")),
        ("wlm+memory", ("wlm", "pressure_memory")),
    ]
    assert (made.users, made.baseline) == (2, "none")
    dram, memory = made.neighbours
    assert dram.cmd == "./pressure/dram/pytorch/run.sh"
    assert flags(dram) == {"--level": "0 50", "--number": 60, "--repeat": 8, "--skip": 0}
    assert flags(memory) == {"--level": "0 25 50 75 100", "--number": 15, "--repeat": 20, "--skip": 0}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--pressure", "drum"], "no pressure on 'drum'"),
        (["--pressure", "dram:"], "'' are no levels"),
        (["--pressure", "dram:0,x"], "'0,x' are no levels"),
        (["--pressure", "dram:25,50"], "relative to level 0"),
        (["--pressure", "dram:0"], "needs another level"),
        (["--pressure", "dram:0,101"], "different percentages, 0 to 100"),
        (["--pressure", "dram:200"], "different percentages, 0 to 100"),
        (["--pressure", "dram:-5,0"], "different percentages, 0 to 100"),
        (["--pressure", "dram:0,50,50"], "different percentages, 0 to 100"),
        (["--sense", "vae", "--users", "3"], "--sense: these launches are of two"),
        (["--sense", "vae", "--mix", "vae,wlm"], "--mix is one launch and --sense are several"),
        (["--sense", " "], "--sense names no job"),
        (["--sense", "vae", "--pressure", "dram:0,50"], "dram: what a job takes is read at level 100"),
        (["--sense", "vea"], "there is no job 'vea'"),
        (["--pressure", "dram", "--users", "3"], "--pressure: these launches are of two"),
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


def test_sense_is_every_curve_of_the_jobs_and_of_a_probe_of_each_resource() -> None:
    made = options("--sense", "vae,wlm", "--pressure", "dram:0,100", "--pressure", "cpu")
    assert [mix.labels for mix in made.mixes] == [
        (victim, pressure)
        for pressure, victims in (
            ("pressure_dram", ("probe_dram", "vae", "wlm")),
            ("pressure_cpu", ("probe_cpu", "vae", "wlm")),
        )
        for victim in victims
    ]
    assert (made.jobs, made.users, made.baseline) == ((), 2, "none")
    probe = next(job for job in made.neighbours if job.name == "probe_dram")
    assert flags(probe) == {"--level": "100", "--number": 4, "--repeat": 10, "--skip": 0}
    every = options("--sense", "vae", "--pairs", "vae,wlm")
    resources = {name.removeprefix("pressure_") for mix in every.mixes if "pressure" in (name := mix.labels[1])}
    assert resources == {"cpu", "llc", "dram", "disk", "memory"}
    assert [mix.name for mix in every.mixes[0].apart] == ["vae+vae", "vae+wlm", "wlm+wlm"]
    assert every.baseline == "blocks", "pairs are held against what each has alone"


def test_a_job_file_names_pairs_and_curves(tmp_path: Path) -> None:
    jobs = [{"name": name, "cmd": "./x.sh", "cgroup": "student"} for name in ("vae", "wlm", "loader")]
    entries = [
        {"name": "pairs", "pairs": ["vae", "wlm", "loader"]},
        {"name": "curves", "sense": ["vae"], "pressure": ["dram:0,100"], "block_s": 1},
    ]
    path = tmp_path / "lab.json"
    path.write_text(json.dumps([*jobs, *entries]))
    made = options("--jobs", str(path))
    assert [mix.name for mix in made.mixes] == ["pairs", "probe_dram+dram", "vae+dram"]
    assert (len(made.jobs), made.users, made.baseline) == (3, 2, "blocks")
    assert flags(made.neighbours[0])["--number"] == 20
    (pairs,) = options("--jobs", str(path), "--name", "pairs").mixes
    assert [mix.name for mix in pairs.apart] == ["vae+wlm", "vae+loader", "wlm+loader"]
    for wrong, sentence in (
        ({"name": "pairs", "pairs": ["vae"]}, "'pairs' names one job"),
        ({"name": "pairs", "pairs": ["vae", "wml"]}, "there is no job 'wml'"),
        ({"name": "curves", "sense": "vae"}, "'sense' is the string"),
        ({"name": "curves", "sense": ["vae"], "presure": ["dram"]}, "has no key 'presure'"),
        ({"sense": ["vae"]}, "the key 'name' is missing"),
        ({"name": "more", "sense": ["wlm"], "pressure": ["dram"]}, "two different jobs 'pressure_dram'"),
    ):
        path.write_text(json.dumps([*jobs, entries[1], wrong] if "more" in wrong.values() else [*jobs, wrong]))
        with pytest.raises(CotenantError) as refusal:
            options("--jobs", str(path))
        assert sentence in refusal.value.sentence
    path.write_text(json.dumps([*jobs, *entries]))
    with pytest.raises(CotenantError, match="pairs: these launches are of two"):
        options("--jobs", str(path), "--users", "4")


def test_a_level_may_be_given_once_and_a_resource_alone_has_five() -> None:
    assert flags(neighbour("llc")) == flags(neighbour("llc:100,75,50,25,0"))


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
        reason = why_unpressed(("vae", f"pressure_{resource}"), devices, in_memory)
        assert why in reason
        assert bool(why) == bool(reason)
    assert why_unpressed(("vae", "wlm"), [(), ()], True) == ""
