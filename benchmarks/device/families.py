"""Families of models, each cell two seconds in a fork of one process; a run that was cut off goes on where it was."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from device.book import CHECKS, PASS, SKIP, Skip
from device.jobs import Job
from device.part import ROOT, Given
from device.task import How, TaskError, measured, preload
from device.tasks import columns, judge, keep_record

PROFILES = ("lambda", "modern")
CELL_S, SMALL_CELL_S = 8.0, 3.0
"""What a cell takes with its start and its end, as far as one knows before."""
BUDGET_S, SMALL_BUDGET_S = 2.0, 0.3
LIMIT_S = 60.0
OF_A_RUN = ("--repeat", "--number", "--skip", "--report", "--cuda")
"""Flags of a profile that this run has its own values of."""


def run(given: Given) -> None:
    given.need_torch()
    preload()
    cells = known_cells(given)
    if not cells:
        raise Skip(f"There are no families: {' and '.join(PROFILES)} are no profiles here.")
    chosen = [name for name in cells if not given.families or belongs(name, given.families)]
    if not chosen:
        known = ", ".join(dict.fromkeys(name.rpartition("_")[0] or name for name in cells))
        given.check("families", False, f"There is none of {', '.join(given.families)}. There are {known}.")
        return
    done = {row["check"] for row in given.book.rows(given.part, CHECKS) if row["verdict"] == PASS}
    for name in chosen:
        if name not in done:
            with given.looking_at(name):
                given.need_time(SMALL_CELL_S if given.quick else CELL_S)
                measure(given, name, cells[name])


def known_cells(given: Given) -> dict[str, Any]:
    """Return the cells of every profile of families by their names; on a processor those that it trains."""
    from cotenant.suite.cells import expand, without_unsupported
    from cotenant.suite.jobfile import load

    cells = {}
    for path in (ROOT / "profiles" / f"{profile}.json" for profile in PROFILES):
        jobs = load(path).jobs if path.exists() else ()
        for job in without_unsupported(jobs, has_devices=given.kind != "cpu"):
            # Others have a process for each device.
            cells |= {cell.label: cell for cell in expand(job) if job.group == "student"}
    return cells


def measure(given: Given, name: str, cell: Any) -> None:
    job = job_of(given, cell)
    how = How.of(given, BUDGET_S, SMALL_BUDGET_S, LIMIT_S)
    try:
        record = measured(job.main, job.flags, how)
    except TaskError as error:
        given.row("families", cell=name, outcome="no record", reason=str(error))
        given.check(name, False, str(error))
        return
    keep_record(given.book, name, record)
    verdict, sentence = judge(job, record)
    given.row("families", cell=name, batch_size=record["batch_size"], **columns(record))
    if verdict == SKIP:
        given.skip(name, sentence)
    else:
        given.check(name, verdict == PASS, sentence)


def job_of(given: Given, cell: Any) -> Job:
    """Return a cell as a job of this run, its batch size by this device's memory. Raises Skip where that has none."""
    from cotenant.suite.cells import BATCH_SIZE, arguments, asks_for_sizes, precision_of, with_arguments
    from cotenant.suite.sizes import FILE, load_sizes, memory_class

    cell = replace(cell, args=tuple(pair for pair in cell.args if pair[0] not in OF_A_RUN))
    variables, precision = {"OUTPUT_DIRECTORY": str(given.scratch)}, precision_of(cell)
    if asks_for_sizes(cell):
        name = memory_class(given.machine.get("memory_bytes") if given.kind != "cpu" else None)
        table = load_sizes(ROOT / "profiles" / FILE)
        size = name and table.size_of(cell.job.family or cell.job.name, precision, name)
        if not size:
            raise Skip("The table of batch sizes has none that fits this device's memory.")
        further = [pair for pair in size.args if pair[0] not in OF_A_RUN]
        cell = with_arguments(cell, further)
        variables |= {BATCH_SIZE: str(size.batch_size), "MEMORY_CLASS": size.memory_class}
    task = str(Path(cell.job.cmd).parents[1])
    return Job(task, tuple(arguments(cell, variables)), precision=precision)


def belongs(name: str, families: tuple[str, ...]) -> bool:
    """Tell whether a cell `resnet50_bf16` is of one of these families."""
    return any(name == family or fnmatchcase(name, f"{family}_*") for family in families)
