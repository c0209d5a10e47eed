"""A tenant that trained on fewer devices than its slice has, without having been told to."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record

FLAG = "--devices"


def check(record: Record) -> Finding | None:
    there, used = len(record.isolation.planned.get("accelerators", [])), record.devices
    # What ran on the processor has a finding of its own, or was asked to.
    if used >= there or record.observed.get("device") == "cpu" or _asked(record.command) == str(used):
        return None
    return Finding(
        "devices_unused",
        "warning",
        f"{there} devices, and {'one was' if used == 1 else f'{used} were'} used.",
        "Leave --users out, and start a rank per device in jobs of the group all (run_distributed.sh); to use fewer of "
        "them, hide the others (CUDA_VISIBLE_DEVICES).",
    )


def _asked(words: list[str]) -> str | None:
    """Return the last value of --devices among a command's words."""
    line = " ".join(words).replace(f"{FLAG}=", f"{FLAG} ").split()
    found = [value for name, value in itertools.pairwise(line) if name == FLAG]
    return found[-1] if found else None
