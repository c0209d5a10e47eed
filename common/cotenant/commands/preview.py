"""What would run, as lines of text: `--show` and `--dry`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from cotenant.launch.start import Start
from cotenant.procfs import format_list
from cotenant.suite.cells import expand, fitting
from cotenant.suite.jobfile import Job


def show_lines(jobs: Iterable[Job], tenants: int, solo: bool = False) -> Iterator[str]:
    """Yield a line per job: its name, group, how many cells run, command. With `solo` each tenant also runs alone."""
    for job in jobs:
        every, cells = len(expand(job)), len(fitting(job, tenants))
        of = f" of {every}" if cells < every else ""
        alone = f" + {cells * tenants} solo" if solo and tenants > 1 and job.group == "student" else ""
        yield f"{job.stem:28} {job.group:8} {cells:3d} cell{'s' if cells > 1 else ' '}{of}{alone}  {job.cmd}"


def dry_lines(starts: Iterable[Start], backend: str) -> Iterator[str]:
    """Yield each tenant's slice, exact command, and what its environment has beyond the caller's."""
    for start in starts:
        for order, added in zip(start.orders, start.added, strict=True):
            slice_ = order.slice
            devices = ",".join(accelerator.uuid for accelerator in slice_.accelerators) or "none"
            beside = "alone" if start.solo else f"of {len(start.orders)}"
            yield f"{start.label}, tenant {slice_.tenant} {beside}"
            yield (
                f"  slice    processors {format_list(slice_.processors)}  nodes {format_list(slice_.nodes)}  "
                f"memory {slice_.memory_bytes / 2**30:.2f} GiB  accelerators {devices}  by {backend}"
            )
            yield f"  command  {shlex.join(order.command)}"
            yield from (f"  env      {name}={value}" for name, value in added.items())
        yield from (f"  finding  {finding.sentence} {finding.remedy}".rstrip() for finding in start.findings)
