"""K users of one device under each mode of sharing, and the fault matrix: a run of its own (`--parts share`)."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict

import faults
from device.cotenancy import LAUNCH_S, together
from device.jobs import JOBS, Job
from device.part import Given
from device.suite import SuiteError

USERS = (1, 2, 4, 8)
DECODE = Job("text_generation/decode", ("--batch-size", "16"))
SHARED = {name: JOBS[name] for name in ("vae", "dcgan", "convnet", "gpt")} | {"decode": DECODE}
FAULTS_S = 2 * LAUNCH_S
MODES_OF_FAULTS = ("time", "mps", "mps:50")


def run(given: Given) -> None:
    given.need_nvidia()
    rows = given.book.rows(given.part, "shared")
    alone = {row["job"]: row["rates"][0] for row in rows if row["K"] == 1 and row["rates"]}
    measured = {(row["job"], row["K"], row["mode"]) for row in rows}
    for users, mode in points():
        for name in SHARED:
            if (name, users, mode) in measured:
                continue
            # Named as its check is: what there is no time for now is looked at when the part goes on.
            with given.looking_at(f"{name} K={users} {mode}"):
                given.need_time(LAUNCH_S)
                together(given, [name], users, mode, alone, SHARED)
    with given.looking_at("faults"):
        fault_matrix(given)


def points() -> Iterator[tuple[int, str]]:
    """Yield users and modes; one user first, whose rate the others' are held against, and most users last."""
    yield USERS[0], "time"
    for users in USERS[1:]:
        yield from ((users, mode) for mode in ("time", "mps", f"mps:{100 // users}"))


def fault_matrix(given: Given) -> None:
    """Look at each fault under each mode while there is time for it. Raises Skip."""
    looked_at = {(row["mode"], row["fault"]) for row in given.book.rows(given.part, "faults")}
    folder = given.scratch / "faults"
    folder.mkdir(parents=True, exist_ok=True)
    for mode in MODES_OF_FAULTS:
        left = [fault for fault in faults.FAULTS if (mode, fault) not in looked_at]
        asked = Namespace(out=folder, users=2, budget=2.0, modes=(mode,), faults=left)
        try:
            lines = faults.matrix(asked, faults.planned(asked.users))
            given.need_time(FAULTS_S)
            for line in lines:
                given.row("faults", **asdict(line))
                cell = f"{line.fault}, {line.mode}"
                if line.verdict == "SKIP":
                    given.skip(cell, line.why)
                else:
                    given.check(cell, line.verdict == "PASS", line.why)
                given.need_time(FAULTS_S)
        except SuiteError as error:
            given.check("faults", False, str(error))
            return
    given.check("faults", True, "Each was looked at, or cannot be had here.")
