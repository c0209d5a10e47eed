"""`--pressure`: which neighbour it makes, beside whom, and what is refused."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from cotenant.commands.suite_flags import options_of, suite_parser
from cotenant.errors import CotenantError
from cotenant.launch.start import Options
from cotenant.suite.pressure import neighbour
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
        (["--pressure", "dram:25,50"], "over what a job has beside level 0"),
        (["--pressure", "dram:0"], "needs another level"),
        (["--pressure", "dram:0,101"], "different percentages, 0 to 100"),
        (["--pressure", "dram:-5,0"], "over what a job has beside level 0"),
        (["--pressure", "dram:0,50,50"], "different percentages, 0 to 100"),
        (["--pressure", "dram", "--users", "3"], "--pressure is of two tenants"),
        (["--pressure", "dram", "--mix", "vae,wlm"], "both say who stands beside a job"),
        (["--name", "convnet_distributed", "--pressure", "dram"], "of the group 'all'"),
        (["--pressure", "dram", "--pressure", "dram:0,50"], "is the name of a mix and of another entry"),
    ],
)
def test_what_makes_no_curve_is_refused(words: list[str], sentence: str) -> None:
    usual = [] if "--name" in words or "--mix" in words else ["--name", "vae"]
    with pytest.raises(CotenantError) as refusal:
        options(*usual, *words)
    assert sentence in refusal.value.sentence
    assert refusal.value.remedy


def test_a_level_may_be_given_once_and_a_resource_alone_has_five() -> None:
    assert flags(neighbour("llc")) == flags(neighbour("llc:100,75,50,25,0"))
