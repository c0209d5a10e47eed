"""Families of models, each cell for a few seconds; a run that was cut off goes on behind its last cell."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase

from cotenant.suite.jobfile import load
from device.book import CHECKS, PASS, Skip
from device.part import ROOT, Given
from device.suite import launched
from device.task import errors, rate
from device.tasks import keep_record

PROFILE = ROOT / "profiles" / "lambda.json"
CELL_S, BUDGET_S = 12.0, 2


def run(given: Given) -> None:
    if not PROFILE.exists():
        raise Skip("There are no families yet: they come with profiles/lambda.json.")
    names = [job.name for job in load(PROFILE).jobs]
    chosen = [name for name in names if not given.families or belongs(name, given.families)]
    if not chosen:
        known = ", ".join(sorted({name.rpartition("_")[0] or name for name in names}))
        given.check("families", False, f"There is none of {', '.join(given.families)}. There are {known}.")
        return
    given.need_device()
    done = {row["check"] for row in given.book.rows(given.part, CHECKS) if row["verdict"] == PASS}
    for name in chosen:
        if name in done:
            continue
        with given.looking_at(name):
            given.need_time(CELL_S)
            flags = ["--name", name, "--users", "1", "--isolation", "none", "--budget", f"{BUDGET_S}s"]
            jobs = json.loads(PROFILE.read_text())
            (record, *_) = launched(given.scratch / name, jobs, flags, given.left_s)
            keep_record(given.book, name, record)
            wrong = errors(record) or [record["message"]] * (record["outcome"] != "completed")
            given.row("families", cell=name, outcome=record["outcome"], rate=rate(record), unit=record.get("unit"))
            given.check(name, not wrong, wrong[0] if wrong else f"{rate(record) or 0:.4g} {record.get('unit')}/s.")


def belongs(name: str, families: tuple[str, ...]) -> bool:
    """Tell whether a cell `resnet50_bf16` is of one of these families."""
    return any(name == family or fnmatchcase(name, f"{family}_*") for family in families)
