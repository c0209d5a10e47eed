#!/usr/bin/env python3
"""The fault matrix: what one user of a shared device, or slice, does to the others, under each mode of sharing.

    python3 benchmarks/faults.py --out out/faults [--modes slices,time,mps] [--faults die,hog] [--users 2] [--budget 2]

Each cell is a launch in which user 0 does it: its own end, its neighbours', and their rate over that beside a user that
does nothing, of a launch before. A neighbour that does not finish is FAIL. Modes and faults that this host lacks are
SKIP, with the reason. Lines are written to OUT/faults.jsonl as they come, and what runners print to OUT/runs.log.
Exit status 1 where one failed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "common"), str(Path(__file__).parent)]

from device.suite import PLENTY, SuiteError, entry, launched  # noqa: E402
from device.task import rate  # noqa: E402

DEEDS = Path(__file__).parent / "device/deeds/run.sh"
FAULTS = {
    "die": ("kill -9 of one user", ("failed", "aborted")),
    "hog": ("one user takes all memory", ("out_of_memory", "device_out_of_memory")),
    "assert": ("an assertion on the device fails", ("failed",)),
    "long": ("a kernel of ten seconds", ("completed",)),
    "flood": ("a flood of empty kernels", ("completed",)),
    "bandwidth": ("copies of memory all the time", ("completed",)),
}
"""What happens, and how the user that does it should end."""
ON_DEVICES = ("assert", "long", "flood")
MODES = ("slices", "time", "mps", "mps:50", "mig", "dmem")
SLICE_BYTES = 768 << 20
"""Of a user's memory on a host without a device: a hog reaches it soon, and torch has room."""
FEW = {"--number": 10, "--repeat": 12, "--skip": 2, "--batch-size": 16}
"""On processors: as many steps as it takes, however slow they are, for the one at which it happens to be among them."""
LAUNCH_S, HUNG_S = 180.0, 60.0
"""At most, and so long on a device: a neighbour that hangs there would take the time of all other cells."""
USAGE, FAILED = 2, 1


@dataclass(frozen=True)
class Line:
    """One cell. `kept` is the neighbours' rate over that without the fault, their geometric mean; None without one."""

    mode: str
    fault: str
    verdict: str
    why: str
    doer: str = ""
    neighbours: tuple[str, ...] = ()
    kept: float | None = None

    def __str__(self) -> str:
        kept = "" if self.kept is None else f" kept {self.kept:.2f}"
        return f"{self.verdict:<4}  {self.mode:<7} {self.fault:<10}{kept}  {self.why}"


def judged(mode: str, fault: str, records: Sequence[dict[str, Any]], quiet: Sequence[dict[str, Any]]) -> Line:
    """Return the cell of a launch in which user 0 did it, and of the one before in which nobody did anything."""
    by_user = {record["tenant"]: record for record in records}
    before = {record["tenant"]: rate(record) for record in quiet}
    doer = by_user[0]["outcome"] if 0 in by_user else "no record"
    others = [by_user[user] for user in sorted(by_user) if user]
    ratios = [now / then for record in others if (now := rate(record)) and (then := before.get(record["tenant"]))]
    kept = geometric_mean(ratios) if len(ratios) == len(others) and ratios else None
    lost = [record["outcome"] for record in others if record["outcome"] != "completed"]
    as_expected = doer in FAULTS[fault][1]
    why = f"{FAULTS[fault][0]}: it ended as {doer}, {len(others) - len(lost)} of {len(others)} neighbours completed."
    passed = as_expected and not lost and len(records) == len(quiet)
    return Line(mode, fault, "PASS" if passed else "FAIL", why, doer, tuple(r["outcome"] for r in others), kept)


def why_not(mode: str, fault: str, devices: int) -> str:
    """Return why a cell cannot be had on a host with so many devices, "" where it can."""
    if mode == "slices":
        return "it is of hosts without a device." if devices else _of_device(fault)
    if not devices:
        return "it needs a device, and there is none here."
    if mode.startswith("mps") and shutil.which("nvidia-cuda-mps-control") is None:
        return "there is no nvidia-cuda-mps-control here."
    return ""


def _of_device(fault: str) -> str:
    return "it happens on a device, and there is none here." if fault in ON_DEVICES else ""


def matrix(given: argparse.Namespace, plan: dict[str, Any]) -> Iterator[Line]:
    """Yield the cells, each as soon as it is known."""
    devices = len({device for tenant in plan["tenants"] for device in tenant["devices"]})
    for mode in given.modes:
        quiet: list[dict[str, Any]] = []
        for fault in given.faults:
            if reason := why_not(mode, fault, devices):
                yield Line(mode, fault, "SKIP", reason)
                continue
            try:
                quiet = quiet or launch(given, mode, "none", plan)
                yield judged(mode, fault, launch(given, mode, fault, plan), quiet)
            except SuiteError as error:
                # What the runner refuses this host does not have; whatever else leaves no record is a fault.
                refused = str(error).startswith(f"The runner ended ({USAGE})")
                yield Line(mode, fault, "SKIP" if refused else "FAIL", str(error))


def launch(given: argparse.Namespace, mode: str, fault: str, plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Launch the users of a mode, of whom the first does it; return their records. Raises SuiteError."""
    mebibytes = 64 if mode == "slices" else 1024
    words = ["--deed", fault, "--who", "0", "--mebibytes", str(mebibytes), "--report", "$OUTPUT_DIRECTORY"]
    amount = FEW if mode == "slices" else PLENTY
    words += [str(word) for pair in amount.items() for word in pair]
    flags = ["--users", str(given.users), "--baseline", "none"]
    if mode == "slices":
        reserve = plan["memory_bytes"] - given.users * SLICE_BYTES
        flags += ["--slices", "1", "--reserve", str(max(0, reserve)), "--isolation", "require"]
    else:
        words.append("--cuda")
        flags += ["--share", mode, "--budget", f"{given.budget}s", "--timeout", f"{HUNG_S:g}s"]
    folder = given.out / f"{mode.replace(':', '-')}-{fault}"
    shutil.rmtree(folder, ignore_errors=True)
    with (given.out / "runs.log").open("a") as log, contextlib.redirect_stdout(log):
        return launched(folder, [entry(fault, str(DEEDS), words)], flags, LAUNCH_S)


def planned(users: int) -> dict[str, Any]:
    """Return what `plan --json` says of this host. Raises SuiteError."""
    command = [sys.executable, str(ROOT / "run.py"), "plan", "--json", "--users", str(users)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if ended.returncode:
        raise SuiteError(ended.stderr.strip())
    plan: dict[str, Any] = json.loads(ended.stdout)
    return plan


def words(known: Sequence[str]) -> Any:
    """Return what reads a comma list of these words."""

    def read(text: str) -> list[str]:
        chosen = [word.strip() for word in text.split(",") if word.strip()]
        if wrong := [word for word in chosen if word not in known]:
            raise argparse.ArgumentTypeError(f"'{wrong[0]}' is none of {', '.join(known)}")
        return chosen

    return read


def main(argv: Sequence[str]) -> int:
    """Print the matrix. Returns 0, 1 where a cell failed, 2 for a host that cannot be planned."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="where records and faults.jsonl go")
    parser.add_argument("--modes", type=words(MODES), default=list(MODES), help="modes, by commas (default: all)")
    parser.add_argument(
        "--faults", type=words([*FAULTS]), default=list(FAULTS), help="faults, by commas (default: all)"
    )
    parser.add_argument("--users", type=int, default=2, help="users of each launch (default 2)")
    parser.add_argument(
        "--budget", type=float, default=2.0, help="seconds that each launch measures on a device (default 2)"
    )
    given = parser.parse_args(argv)
    given.out = given.out.absolute()
    given.out.mkdir(parents=True, exist_ok=True)
    try:
        plan = planned(given.users)
    except SuiteError as error:
        print(error, file=sys.stderr)
        return USAGE
    failed = False
    with (given.out / "faults.jsonl").open("w") as file:
        for line in matrix(given, plan):
            failed = failed or line.verdict == "FAIL"
            print(line, flush=True)
            file.write(json.dumps(asdict(line)) + os.linesep)
            file.flush()
    return FAILED if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
