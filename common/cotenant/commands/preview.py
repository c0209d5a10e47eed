"""Prints `--show` and `--dry`: the commands that would run, without running them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from cotenant.confidential import arguments_without, words_without
from cotenant.launch.planned import PlannedLaunch
from cotenant.launch.prepared import PreparedSuite
from cotenant.launch.start import Options
from cotenant.procfs import format_list
from cotenant.suite.cells import expand, fitting, swept
from cotenant.text import gib, many, noun

Document = dict[str, Any]


def show_lines(options: Options, tenants: int, ranks: int) -> Iterator[str]:
    """Yield a line per job: its name, group, number of cells, launches alone and command. Then a line per mix, with
    the cell of each tenant, or its pairs; or only the duet, if there is one.

    `ranks`: the number of ranks of a job that owns the machine.
    """
    for job in (swept(job, ranks) for job in options.jobs):
        every, cells = len(expand(job)), len(fitting(job, ranks))
        of_all = f" of {every}" if cells < every else ""
        alone = ""
        if options.baseline == "whole" and tenants > 1 and job.group == "student":
            alone = f" + {cells * tenants} alone"
        yield f"{job.stem:28} {job.group:8} {cells:3d} {noun(cells, 'cell'):5}{of_all}{alone}  {job.cmd}"
    for mix in options.mixes:
        met = [pair.name for pair in mix.apart] or mix.of_tenants(max(tenants, len(mix.labels)))
        yield f"{mix.name:28} {'pairs' if mix.pairs else 'mix':8} {', '.join(met)}"
    if (duet := options.duet) is not None:
        sides = (f"{side}: {shlex.join(words_without(words))}" for side, words in zip("AB", duet.sides, strict=True))
        yield f"{duet.name:28} {'duet':8} {'; '.join(sides)}"


def show_document(options: Options, ranks: int) -> Document:
    """Return the document that `--show --format json` prints."""
    cells = [
        {"job": job.stem, "group": job.group, "cells": len(fitting(job, ranks)), "cmd": job.cmd}
        for job in (swept(job, ranks) for job in options.jobs)
    ]
    of_mixes = [
        {"mix": mix.name, "cells": list(mix.labels), "pairs": [list(pair.labels) for pair in mix.apart]}
        for mix in options.mixes
    ]
    shown: Document = {"schema": "cotenant-show-1", "jobs": cells, "mixes": of_mixes}
    if (duet := options.duet) is not None:
        shown |= {"duet": duet.name, "sides": [words_without(side) for side in duet.sides]}
    return shown


def dry_lines(starts: Sequence[PlannedLaunch]) -> Iterator[str]:
    """Yield a line per launch, its tenants, and the first command of each cell: the others differ only in the seed."""
    for launch in starts:
        first = launch.specs[0].slice
        beside = f"user {first.tenant} alone" if launch.solo else many(len(launch.specs), "user")
        processors = many(len(first.processors), "processor") + _shared(launch)
        yield f"{launch.label}: {beside}, {processors} and {gib(first.memory_bytes)} each"
        for program in launch.different:
            yield f"  {shlex.join(words_without(launch.specs[launch.programs.index(program)].command))}"


def whole_dry_lines(starts: Iterable[PlannedLaunch], backend: str) -> Iterator[str]:
    """Yield each tenant's slice, its exact command, and the variables added to the caller's environment."""
    for launch in starts:
        for program, spec in zip(launch.programs, launch.specs, strict=True):
            slice_, size = spec.slice, program.size
            devices = ",".join(accelerator.uuid for accelerator in slice_.accelerators) or "none"
            beside = "alone" if launch.solo else f"of {len(launch.specs)}"
            cell = f": {program.cell.label}" if launch.mix else ""
            yield f"{launch.label}, user {slice_.tenant} {beside}{cell}"
            yield (
                f"  slice    processors {format_list(slice_.processors)}{_shared(launch)}  "
                f"nodes {format_list(slice_.nodes)}  memory {slice_.memory_bytes / 2**30:.2f} GiB  "
                f"accelerators {devices}  by {backend}"
            )
            if size:
                more = "".join(f" {flag} {value}" for flag, value in size.args)
                yield f"  sizes    {size.memory_class}: batch size {size.batch_size}{more}"
            yield f"  command  {shlex.join(words_without(spec.command))}"
            shown = arguments_without(spec.environment)
            yield from (f"  env      {name}={value}" for name, value in shown.items())
        yield from (f"  finding  {finding.sentence} {finding.remedy}".rstrip() for finding in launch.findings)


def _shared(launch: PlannedLaunch) -> str:
    return f" (shared by {launch.sharers})" if launch.sharers > 1 else ""


def dry_document(suite: PreparedSuite) -> Document:
    """Return the document of `--dry --format json`; lists of processors and nodes are in the kernel's format."""
    launches = [
        {
            "label": launch.label,
            "job": launch.mix or launch.cell.job.stem,
            "solo": launch.solo,
            "baseline": launch.baseline,
            "memory_class": launch.programs[0].size.memory_class if launch.programs[0].size else None,
            "tenants": [
                {
                    "tenant": spec.slice.tenant,
                    "cell": spec.cell,
                    "processors": format_list(spec.slice.processors),
                    "sharers": launch.sharers,
                    "nodes": format_list(spec.slice.nodes),
                    "memory_bytes": spec.slice.memory_bytes,
                    "accelerators": [accelerator.uuid for accelerator in spec.slice.accelerators],
                    "command": words_without(spec.command),
                    "environment": arguments_without(spec.environment),
                }
                for spec in launch.specs
            ],
        }
        for launch in suite.starts
    ]
    return {
        "schema": "cotenant-dry-1",
        "backend": suite.backend.name,
        "launches": launches,
        "left_out": list(suite.left_out),
        "repetitions": suite.options.repetitions,
    }
