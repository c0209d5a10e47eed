"""Work that differs from the reference suite's, read from a record's command."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.calling import write
from cotenant.checkout import CHECKOUT
from cotenant.commands.other_work import other_works
from cotenant.results.read import read_records
from cotenant.results.table import Rows
from cotenant.suite.cells import arguments, expand
from cotenant.suite.jobfile import load
from cotenant.suite.variables import VARIABLES
from report.making import launch

ENGINE = ("apptainer", "exec", "--bind", "/elsewhere", "/an.sif")


def differing(place: Path, extra: tuple[str, ...], before: tuple[str, ...] = ()) -> dict[str, str]:
    """The differences of the reference suite's own jobs, run with further arguments, on a host with other places."""
    variables = dict.fromkeys(VARIABLES, "/elsewhere")
    for job in load(CHECKOUT / "baselines.json").jobs:
        (cell,) = expand(job)
        program = str(CHECKOUT / "tasks" / job.cmd)
        command = [*before, program, *arguments(cell, variables, extra, seed=100)]
        write(place, launch(job.name, tenants=1, place={"command": command}))
    return other_works(Rows.all(read_records([place]).table))


@pytest.mark.parametrize("before", [(), ENGINE])
def test_the_reference_is_no_other_work_wherever_its_data_lies(tmp_path: Path, before: tuple[str, ...]) -> None:
    assert differing(tmp_path, (), before) == {}


def test_another_batch_is_named_however_it_was_written(tmp_path: Path) -> None:
    works = differing(tmp_path, ("--batch-size=64",))
    assert works["convnet_fp16"] == "--batch-size 64, not 128"
    assert "convnet" not in works, "64 is its own"
