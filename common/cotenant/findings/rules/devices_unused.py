"""A launch that owns the machine and trained on fewer devices than there are, without having been told to."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from cotenant.findings.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record

FLAG = "--devices"


def check(record: Record) -> Finding | None:
    ranks, replicas = record.observed.get("world_size"), record.observed.get("replicas", 1)
    if record.group != "all" or not isinstance(ranks, int) or not isinstance(replicas, int):
        return None
    used = max(ranks, replicas)
    # What ran on the processor has a finding of its own, or was asked to.
    if used >= record.devices or record.observed.get("device") == "cpu" or _asked(record.command) == str(used):
        return None
    return Finding(
        "devices_unused",
        "warning",
        f"{record.devices} devices, and {'one was' if used == 1 else f'{used} were'} used.",
        "Start a rank per device (run_distributed.sh), without --users; to use fewer of them, hide the others "
        "(CUDA_VISIBLE_DEVICES).",
    )


def _asked(words: list[str]) -> str | None:
    """Return the last value of --devices among a command's words."""
    line = " ".join(words).replace(f"{FLAG}=", f"{FLAG} ").split()
    found = [value for name, value in itertools.pairwise(line) if name == FLAG]
    return found[-1] if found else None
