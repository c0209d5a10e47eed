"""Nothing of what the parts did is left: no process, no daemon, no group, no shared memory."""

from __future__ import annotations

import time
from pathlib import Path

from device.look import daemons, device_users, groups, shared_memory
from device.part import Given
from device.plan import EVERY
from device.suite import own_base

GONE_S = 2.0
"""A device's driver takes a moment to forget a process that was killed."""


def run(given: Given) -> None:
    before = given.machine.get("before", {})
    with given.looking_at("processes of parts"):
        processes(given)
    with given.looking_at("daemons"):
        nothing_new(given, "daemons", daemons(), before)
    with given.looking_at("groups"):
        nothing_new(given, "groups", [group for group in groups() if ours(Path(group))], before)
    with given.looking_at("shared memory"):
        nothing_new(given, "shared_memory", [name for name in shared_memory() if name.startswith("cotenant")], before)
    with given.looking_at("processes on the device"):
        given.need_nvidia()
        until = time.monotonic() + GONE_S
        while set(users := device_users()) - set(before.get("device_users", ())) and time.monotonic() < until:
            time.sleep(0.1)
        nothing_new(given, "device_users", users, before)


def processes(given: Given) -> None:
    """Judge what a part left that came to its own end; what was killed at its deadline may leave some."""
    rows = [(name, row) for name in EVERY for row in given.book.rows(name, "leftovers")]
    own = [f"{name}: {row['command']}" for name, row in rows if not row["after_deadline"]]
    given.check("processes of parts", not own, f"Left by {'; '.join(own)}." if own else "None outlived its part.")


def nothing_new(given: Given, what: str, now: list[str], before: dict[str, list[str]]) -> None:
    """Judge what there is now and was not before the first part."""
    new = sorted(set(now) - set(before.get(what, ())))
    given.check(what.replace("_", " "), not new, f"Left: {', '.join(new)}." if new else "None is left.")


def ours(group: Path) -> bool:
    """Tell whether a group is of this run, or of one that is dead: others may be running beside this one."""
    return group.name == own_base() or not Path("/proc", group.name.rpartition("-")[2]).exists()
