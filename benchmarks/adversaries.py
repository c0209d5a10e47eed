"""Promise 5: what a tenant keeps of its rate beside a neighbour that does its worst, with slices and without.

Two slices of 1 GiB; in one an adversary, in the other the auto-encoder, whose rate is divided by that beside a
neighbour that sleeps, in the same round under the same isolation.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median

from adversary import DEEDS
from rich.console import Console
from rich.table import Table
from suites import COMMANDS, REPORT, ROOT, run_suite

from cotenant.machine.topology import discover

ROUNDS = 3
# Small: without slices a spinning neighbour makes it many times slower.
MEASURED = {"--repeat": 15, "--number": 10, "--batch-size": 128, **REPORT}
SLICE_BYTES = 1 << 30
KEEPS = ("memory hog", "spinner on all processors", "SIGTERM ignorer", "double-forking daemon")
"""The adversaries beside which the neighbour is promised 0.9 of its rate alone: what they take is sliced."""
BASE = "cotenant-bench"


def neighbour_rate(directory: Path, deed: str, isolation: str) -> float:
    """Return the median rate of the measured tenant beside an adversary, in items per second."""
    directory.mkdir(parents=True)
    beside = directory / "beside.sh"
    adversary = f'[ "$JOB_ID" = 0 ] && exec python "{Path(__file__).with_name("adversary.py")}" "$DEED" "$@"'
    beside.write_text(f'#!/bin/sh\n{adversary}\nexec "{ROOT}/tasks/{COMMANDS["vae"]}" "$@"\n')
    beside.chmod(0o755)
    job = {"name": "vae", "cmd": str(beside), "args": MEASURED, "cgroup": "student", "env": {"DEED": deed}}
    flags = ["--users", "2", "--isolation", isolation, "--cgroup-base", BASE, "--on-oom", "process"]
    flags += ["--reserve", str(discover().memory_bytes - 2 * SLICE_BYTES)]
    records = run_suite(directory / "run", [job], *flags, may_fail=True)
    (measured,) = [record for record in records if record["tenant"] == 1]
    if not measured["completed"]:
        raise RuntimeError(f"beside the {deed}: {measured['outcome']}: {measured['message']}")
    return float(measured["statistics"]["median"])


def left_behind(scratch: Path) -> list[str]:
    """Return what is left: processes that were started below `scratch`, cgroups, shared memory, temporary files."""
    found = [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/{BASE}")]
    found += [str(path) for path in Path("/dev/shm").glob("cotenant-bench-*")]
    found += [str(path) for path in scratch.glob("**/workspace/tmp/*")]
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdecimal() and (process / "cwd").readlink().is_relative_to(scratch):
                found.append(f"process {process.name}")
        except OSError:
            continue
    return found


def main() -> None:
    rates: dict[tuple[str, str], list[float]] = {}
    left: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        for turn in range(ROUNDS):
            for deed in DEEDS:
                for isolation in ("auto", "none"):
                    place = Path(scratch) / f"{turn}-{list(DEEDS).index(deed)}-{isolation}"
                    rates.setdefault((deed, isolation), []).append(neighbour_rate(place, deed, isolation))
                    left += left_behind(Path(scratch))
    table = Table("neighbour", "with slices", "worst", "--isolation none", "worst", "rounds", "promise")
    table.title = "What the auto-encoder keeps of its rate beside"
    for deed in list(DEEDS)[1:]:
        cells: list[str] = []
        for isolation in ("auto", "none"):
            alone = rates["nobody", isolation]
            kept = [rate / one for rate, one in zip(rates[deed, isolation], alone, strict=True)]
            cells += [f"{median(kept):.3f}", f"{min(kept):.3f}"]
        table.add_row(deed, *cells, str(ROUNDS), ">= 0.9 with slices" if deed in KEEPS else "")
    Console(width=120).print(table)
    print(f"Left behind after {ROUNDS * len(DEEDS) * 2} launches: {', '.join(sorted(set(left))) or 'nothing'}")


if __name__ == "__main__":
    main()
