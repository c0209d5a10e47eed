"""Promise 5: the share of its rate that a tenant keeps beside a hostile neighbour, with slices and without.

python benchmarks/run.py adversaries ['spinner on all processors' ...] [--rounds N]

An adversary runs in one slice of 1 GiB, the auto-encoder in another. The auto-encoder's rate is divided by its rate
beside a sleeping neighbour, in the same round under the same isolation. `one busy loop` does no more than any tenant
may: its cost belongs to the machine, for example where two processors are threads of one core.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from adversary import DEEDS
from promises import Promise
from rich.console import Console
from rich.table import Table
from suites import COMMANDS, REPORT, ROOT, run_suite

from cotenant.machine.topology import discover

ROUNDS = 3
MEASURED = {"--number": 10, "--batch-size": 128, **REPORT}
# Fewer without slices, where a spinning neighbour makes each observation many times slower.
REPEATS = {"auto": 60, "none": 15}
SLICE_BYTES = 1 << 30
KEEPS = ("memory hog", "spinner on all processors", "SIGTERM ignorer", "double-forking daemon")
"""The adversaries that PROMISE is about: a slice bounds the memory and the processors that they take."""
PROMISE = Promise(">=", 0.9, "with slices")
ALONE = "nobody"
BASE = "cotenant-bench"
Rates = dict[tuple[str, str], list[float]]
"""The rates of the measured tenant, one per round, by neighbour and isolation."""


def neighbour_rate(directory: Path, deed: str, isolation: str) -> float:
    """Return the median rate of the measured tenant beside an adversary, in items per second."""
    directory.mkdir(parents=True)
    beside = directory / "beside.sh"
    adversary = f'[ "$JOB_ID" = 0 ] && exec python "{Path(__file__).with_name("adversary.py")}" "$DEED" "$@"'
    beside.write_text(f'#!/bin/sh\n{adversary}\nexec "{ROOT}/tasks/{COMMANDS["vae"]}" "$@"\n')
    beside.chmod(0o755)
    args = MEASURED | {"--repeat": REPEATS[isolation]}
    job = {"name": "vae", "cmd": str(beside), "args": args, "cgroup": "student", "env": {"DEED": deed}}
    flags = ["--users", "2", "--isolation", isolation, "--cgroup-base", BASE, "--on-oom", "process"]
    flags += ["--reserve", str(discover().memory_bytes - 2 * SLICE_BYTES)]
    records = run_suite(directory / "run", [job], *flags, may_fail=True)
    (measured,) = [record for record in records if record["tenant"] == 1]
    if not measured["completed"]:
        raise RuntimeError(f"beside the {deed}: {measured['outcome']}: {measured['message']}")
    return float(measured["statistics"]["median"])


def left_behind(scratch: Path) -> list[str]:
    """Return the leftovers: processes that were started below `scratch`, cgroups, shared memory, temporary files."""
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


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="run.py adversaries")
    parser.add_argument("deeds", nargs="*", metavar="DEED", help=f"of {', '.join(DEEDS)}; all where none is named")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--picture", type=Path, metavar="FILE.svg", help="draw what is kept, round by round")
    given = parser.parse_args(argv)
    if unknown := sorted(set(given.deeds) - set(DEEDS)):
        parser.error(f"there is no deed {unknown[0]}; the deeds are {', '.join(DEEDS)}")
    deeds = [deed for deed in DEEDS if deed in (ALONE, *given.deeds) or not given.deeds]
    rates: Rates = {}
    left: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        for turn in range(given.rounds):
            for deed in deeds:
                for isolation in REPEATS:
                    place = Path(scratch) / f"{turn}-{deeds.index(deed)}-{isolation}"
                    rates.setdefault((deed, isolation), []).append(neighbour_rate(place, deed, isolation))
                    left += left_behind(Path(scratch))
    table, kept = table_of(rates, deeds)
    Console(width=120).print(table)
    if given.picture is not None:
        draw(rates, [deed for deed in deeds if deed != ALONE], given.picture)
    launches = given.rounds * len(deeds) * len(REPEATS)
    print(f"Left behind after {launches} launches: {', '.join(sorted(set(left))) or 'nothing'}")
    return 0 if kept and not left else 1


def shares(rates: Rates, deed: str, isolation: str) -> list[float]:
    """Return the rate beside the adversary over the rate beside nobody, one share per round."""
    return [rate / alone for rate, alone in zip(rates[deed, isolation], rates[ALONE, isolation], strict=True)]


def draw(rates: Rates, deeds: Sequence[str], path: Path) -> None:
    """Draw a bar for each neighbour and isolation, the median, with a dot for each round."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "cotenant"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 0.8 + 0.7 * len(deeds)), layout="constrained")
    for row, deed in enumerate(deeds):
        for isolation, label, shift, colour in (
            ("auto", "in slices", -0.18, "#2f6f9f"),
            ("none", "everybody just starts", 0.18, "#c2703d"),
        ):
            kept = shares(rates, deed, isolation)
            axes.barh(row + shift, median(kept), 0.32, color=colour, label=label if row == 0 else None)
            axes.plot(kept, [row + shift] * len(kept), "o", color="#222", markersize=3)
    axes.axvline(1, color="#222", linewidth=0.8, linestyle="--")
    axes.set(yticks=range(len(deeds)), yticklabels=[f"beside a {deed}" for deed in deeds], xlim=(0, None))
    axes.set_xlabel("share of its rate beside an idle neighbour (bar: median, dots: rounds)")
    axes.invert_yaxis()
    figure.legend(loc="outside upper right", ncols=2, frameon=False)
    figure.savefig(path, metadata={"Date": None})


def table_of(rates: Rates, deeds: Sequence[str]) -> tuple[Table, bool]:
    """Return a table of the shares kept beside each adversary, and whether every promise was kept."""
    promises_kept = True
    table = Table("neighbour", "with slices", "worst", "--isolation none", "worst", "rounds", "promise")
    table.title = "What the auto-encoder keeps of its rate beside"
    for deed in deeds:
        if deed == ALONE:
            continue
        cells, verdict = [], ""
        for isolation in REPEATS:
            kept = shares(rates, deed, isolation)
            cells += [f"{median(kept):.3f}", f"{min(kept):.3f}"]
            if isolation == "auto" and deed in KEEPS:
                verdict = PROMISE.verdict(median(kept))
                promises_kept = promises_kept and PROMISE.kept(median(kept))
        table.add_row(deed, *cells, str(len(kept)), verdict)
    return table, promises_kept


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
