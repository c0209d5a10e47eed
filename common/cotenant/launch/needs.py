"""What each job of a suite lacks on this host: found before anything is started."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from cotenant.errors import CotenantError
from cotenant.finding import Finding
from cotenant.findings.facts import JobNeeds
from cotenant.isolation.choose import Chosen
from cotenant.launch.data import maker_of, named_inputs
from cotenant.launch.imports import missing_packages
from cotenant.launch.places import Places
from cotenant.launch.start import Options, Resolver, Start
from cotenant.machine.topology import Machine


def needs_of(options: Options, machine: Machine, chosen: Chosen) -> tuple[tuple[JobNeeds, ...], tuple[Start, ...]]:
    """Return what every chosen job lacks, and the starts of those that can be started."""
    needs: list[JobNeeds] = []
    every: list[Start] = []
    for job in options.jobs:
        try:
            starts = Resolver(dataclasses.replace(options, jobs=(job,)), machine, chosen).starts()
        except CotenantError as error:
            refusal = Finding("job_not_startable", "error", error.sentence, error.remedy)
            needs.append(JobNeeds(job.name, refusal))
            continue
        every += starts
        # In a container's image there are other packages than here.
        packages = () if options.singularity else missing_packages(starts[0].command)
        read, missing = _inputs(starts, options.places)
        made = maker_of(starts[0].command) is not None
        needs.append(JobNeeds(job.name, None, packages, missing, read, made))
    return tuple(needs), tuple(every)


def _inputs(starts: Iterable[Start], places: Places) -> tuple[int, tuple[Path, ...]]:
    """Return how many paths below the data directory the commands name, and those of them that do not exist."""
    named = sorted({path for start in starts for path in named_inputs(start, places)})
    return len(named), tuple(path for path in named if not path.exists())
