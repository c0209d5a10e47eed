"""What makes two records records of equal work."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

# How often, how observed and where reported do not change the work of one batch.
NOT_WORK = frozenset({"report", "seed", "repeat", "number", "skip"})
_DIGITS = 18
_CELL = re.compile(r"(.*)\.c(\d{1,9})", re.DOTALL)


def unique_id(name: str, version: str, arguments: Mapping[str, Any]) -> str:
    """Return a sha256 over the benchmark's name, its source's version and the arguments that change its work.

    Of `data` only counts whether the input is read from files: its path differs between machines.
    Empty where no argument is known (a tenant that failed early, a foreign program): such work is equal to none.
    """
    if not arguments:
        return ""
    work = {key: value for key, value in arguments.items() if key not in NOT_WORK}
    if "data" in work:
        work["data"] = work["data"] is not None
    if not work.get("cached_batch"):
        # Unsaid in records of before there was such a flag, and by programs that have none.
        work.pop("cached_batch", None)
    text = json.dumps([name, version, work], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def job_and_cell(name: str) -> tuple[str, int]:
    """Return a record's name without its cell, and the cell's number from 1; 0 of a job that has no cells."""
    found = _CELL.fullmatch(name)
    return (found[1], int(found[2])) if found else (name, 0)


def natural(label: str) -> tuple[int, str]:
    """Return what tenants and devices are sorted by: numbers by their value, before all others."""
    return (int(label), "") if label.isdecimal() and len(label) <= _DIGITS else (10**_DIGITS, label)
