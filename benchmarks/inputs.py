"""Tasks bound by their input: by what each is bound, and how close to that limit it is.

python benchmarks/run.py inputs [TASK ...] [--pairs N] [--data FOLDER] [--cuda]

A task's turn and a limit's come by turns. Its rate over the limit's is the share of the limit that it reaches; it is
bound by the lowest limit. Of the loader, decoders and numbers of processes follow, of the games other ways to play.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from cases import CASES, Given, players, readers
from jobs import pictures
from limits import Case, Turn
from pairs import Median, interleaved, median_of
from rich.console import Console
from rich.table import Table

from cotenant.bench.images import USUAL
from cotenant.bench.loader import usual_workers

PAIRS = 20


def beside(ours: Turn, other: Turn, pairs: int) -> tuple[float, float, Median]:
    """Return the median rates of both, in items per second, and ours over the other's."""
    ours_ns, other_ns = interleaved(ours.timed, other.timed, pairs)
    ratio = ours.items / other.items
    shares = median_of([ratio * b / a for a, b in zip(ours_ns, other_ns, strict=True)])
    return ours.items * 1e9 / median(ours_ns), other.items * 1e9 / median(other_ns), shares


def rows(name: str, case: Case, pairs: int) -> list[tuple[str, ...]]:
    """Return a line for each limit, the lowest one first."""
    found = [(limit.name, *beside(case.whole, limit, pairs)) for limit in case.limits]
    found.sort(key=lambda one: one[2])
    return [
        (
            name if place == 0 else "",
            f"{rate:,.4g} {case.unit}s/s",
            ("bound by " if place == 0 else "") + limit,
            f"{ceiling:,.4g}",
            f"{share.value:.3f}",
            f"{share.low:.3f} .. {share.high:.3f}",
            str(share.n),
        )
        for place, (limit, rate, ceiling, share) in enumerate(found)
    ]


def against(turns: Mapping[Any, Turn], usual: Any, pairs: int) -> Table:
    """Return the rates of several ways to do the same, and the usual one's over each."""
    table = Table("way", "items/s", "the task's rate over it", "95 % interval", "pairs")
    for name, turn in turns.items():
        _, rate, share = beside(turns[usual], turn, pairs)
        shown = name if isinstance(name, str) else f"{name[0]}, {name[1]} processes"
        table.add_row(shown, f"{rate:,.4g}", f"{share.value:.3f}", f"{share.low:.3f} .. {share.high:.3f}", str(share.n))
    return table


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="run.py inputs")
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"of {', '.join(CASES)}; all where none is named")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--data", type=Path, help="pictures in class folders, instead of a few drawn ones")
    parser.add_argument("--cuda", action="store_true", help="on the accelerator, at the reference suite's sizes")
    asked = parser.parse_args(argv)
    if unknown := sorted(set(asked.tasks) - set(CASES)):
        parser.error(f"there is no task {unknown[0]}; the tasks are {', '.join(CASES)}")
    console, table = Console(width=150), Table("task", "rate", "limit", "its rate", "share", "95 % interval", "pairs")
    table.title = "What bounds each task, the lowest limit first"
    others = []
    for name in asked.tasks or CASES:
        print(f"{name} ...", file=sys.stderr, flush=True)
        with ExitStack() as stack:
            given = Given(asked.data or stack.enter_context(pictures()), asked.cuda, stack)
            for row in rows(name, CASES[name](given), asked.pairs):
                table.add_row(*row)
            if name == "loader":
                turns = readers(given)
                others.append(against(turns, (USUAL, usual_workers()), asked.pairs))
            if name == "atari":
                ways = players(given)
                others.append(against(ways, next(iter(ways)), asked.pairs))
    for one in (table, *others):
        console.print(one)
    # What the loop has frozen is never destroyed, and C++ extensions complain of leaks at exit.
    gc.unfreeze()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
