"""One start of one job: it is timed in pairs with a page written by hand and with a bare loop.

python versus.py vae --pairs 100 --to FILE [--hand-first] [--data FOLDER]
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from jobs import JOBS, Job
from pairs import interleaved
from sides import bare, benchmark_of, by_hand, observed, one_processor, opened, prepared

from cotenant.bench import Run
from cotenant.bench.chrono import Work
from cotenant.bench.world import World

EMPTY_STEPS, EMPTY_PAIRS = 2000, 51


def harness_ns(work: Work) -> list[float]:
    """Return the nanoseconds per step that `observe` adds to a step that does nothing, with this job's batches."""
    batch = next(work.batches)
    loss = work.step(work.run, batch)
    empty = replace(work, batches=itertools.repeat(batch), step=lambda run, batch: loss)
    ours, theirs = interleaved(observed(empty, EMPTY_STEPS), bare(empty, EMPTY_STEPS), EMPTY_PAIRS)
    return [(a - b) / EMPTY_STEPS for a, b in zip(ours, theirs, strict=True)]


def measured(job: Job, pairs: int, hand_first: bool, data: dict[str, Path]) -> dict[str, Any]:
    """Return the nanoseconds of each pair's turns, and those that the harness adds to each step."""
    benchmark = benchmark_of(job.task)(cuda=False, **(job.arguments | data))
    run = Run(benchmark)
    if hand_first:
        script, weights = opened(job, data)
        work, our_weights = prepared(benchmark, run)
    else:
        work, our_weights = prepared(benchmark, run)
        script, weights = opened(job, data)
    counts = [sum(one.numel() for one in side) for side in (our_weights, weights)]
    if counts[0] != counts[1]:
        raise ValueError(f"The task trains {counts[0]:,} parameters, and its page by hand {counts[1]:,}.")
    ours = observed(work, job.number)
    # By hand first, while both sides have learned equally, so that the episodes of games are equally long.
    against_hand = interleaved(ours, by_hand(script, job.number), pairs)
    against_same = interleaved(ours, bare(work, job.number), pairs)
    result = {"hand": against_hand, "same": against_same, "harness_ns": harness_ns(work), "parameters": counts[0]}
    run.world.leave()
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("--pairs", type=int, required=True)
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--hand-first", action="store_true")
    parser.add_argument("--data", type=Path)
    given = parser.parse_args()
    rank = World.from_environment().rank
    one_processor(rank)
    job, data = JOBS[given.job], {"data": given.data} if given.data else {}
    result = measured(job, given.pairs, given.hand_first, data)
    # Objects that the loop froze would never be destroyed, and C++ extensions would report leaks at exit.
    gc.unfreeze()
    if rank == 0:
        given.to.write_text(json.dumps(result))


if __name__ == "__main__":
    main()
