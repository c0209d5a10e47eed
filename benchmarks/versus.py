"""One start of one job: its measured loop is timed in pairs with a bare loop, and with other code for the same work.

python versus.py vae --pairs 100 --to FILE [--other-first] [--data FOLDER]
"""

from __future__ import annotations

import argparse
import gc
import importlib
import inspect
import itertools
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from jobs import JOBS, Job
from measure import Timed, bare, by_hand, interleaved, observed, one_processor

from cotenant.bench import Benchmark, Run
from cotenant.bench.chrono import Work
from cotenant.bench.loop import WARM_UP_STEPS, Loop
from cotenant.bench.world import World

TASKS = Path(__file__).resolve().parents[1] / "tasks"
EMPTY_STEPS, EMPTY_PAIRS = 2000, 51


def benchmark_of(task: str) -> type[Benchmark]:
    """Return the benchmark of tasks/<task>. A process can load one task only: the tasks' modules share names."""
    sys.path.insert(0, str(TASKS / task / "pytorch"))
    module = importlib.import_module("main")
    found = (each for each in vars(module).values() if isinstance(each, type) and each.__module__ == "main")
    return [each for each in found if issubclass(each, Benchmark)][-1]


def prepared(cls: type[Benchmark], arguments: dict[str, Any]) -> tuple[Work, int, Run]:
    """Build a benchmark and warm it up; return the `Work` of its loop, the number of parameters it trains, its run."""
    torch.manual_seed(0)
    benchmark = cls(cuda=False, **arguments)
    run = Run(benchmark)
    loop = Loop(benchmark, run)
    loop.warm_up()
    modules = [value for value in vars(benchmark).values() if isinstance(value, torch.nn.Module)]
    return loop._work, trained(*modules), run


def opened(job: Job, arguments: dict[str, Any]) -> tuple[Iterator[Any], int]:
    """Return the iterator of a page's steps, after the same warm-up as a task's, and the parameters that it trains."""
    torch.manual_seed(0)
    page = importlib.import_module(f"by_hand.{job.page}")
    known = inspect.signature(page.script).parameters
    script = page.script(**{name: value for name, value in arguments.items() if name in known})
    count = trained(next(script))
    for _ in itertools.islice(script, WARM_UP_STEPS):
        pass
    return script, count


def trained(*modules: torch.nn.Module) -> int:
    """Return the number of trained parameters, each counted once."""
    return sum({one: one.numel() for part in modules for one in part.parameters() if one.requires_grad}.values())


def other_side(job: Job, cls: type[Benchmark], arguments: dict[str, Any]) -> tuple[Timed, int]:
    """Return a turn of the page by hand, or of the task around a public network, and the parameters that it trains."""
    if not job.model:
        script, count = opened(job, arguments)
        return by_hand(script, job.number), count
    names = cls.build.__globals__
    network, names[job.model] = names[job.model], importlib.import_module(f"public.{job.page}").Model
    try:
        work, count, _ = prepared(cls, arguments)
    finally:
        names[job.model] = network
    return observed(work, job.number), count


def harness_ns(work: Work) -> list[float]:
    """Return the nanoseconds per step that `observe` adds to a step that does nothing, with this job's batches."""
    batch = next(work.batches)
    loss = work.step(work.run, batch)
    empty = replace(work, batches=itertools.repeat(batch), step=lambda run, batch: loss)
    ours, theirs = interleaved(observed(empty, EMPTY_STEPS), bare(empty, EMPTY_STEPS), EMPTY_PAIRS)
    return [(a - b) / EMPTY_STEPS for a, b in zip(ours, theirs, strict=True)]


def measured(job: Job, pairs: int, other_first: bool, data: dict[str, Path]) -> dict[str, Any]:
    """Return the nanoseconds of each pair's turns, and the nanoseconds that the harness adds to each step.

    Raises ValueError if both sides do not train as many parameters.
    """
    cls, arguments = benchmark_of(job.task), job.arguments | data
    # The layout of memory affects speed, so each side is built first in half of the starts.
    other = other_side(job, cls, arguments) if job.page and other_first else None
    work, count, run = prepared(cls, arguments)
    ours = observed(work, job.number)
    result: dict[str, Any] = {"parameters": count}
    if job.page:
        theirs, their_count = other or other_side(job, cls, arguments)
        if count != their_count:
            raise ValueError(f"The task trains {count:,} parameters, and {job.page} {their_count:,}.")
        # The other code first, while both sides have learned equally, so that the episodes of games are equally long.
        result["other"] = interleaved(ours, theirs, pairs)
    result["same"] = interleaved(ours, bare(work, job.number), pairs)
    result["harness_ns"] = harness_ns(work)
    run.world.leave()
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("--pairs", type=int, required=True)
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--other-first", action="store_true")
    parser.add_argument("--data", type=Path)
    given = parser.parse_args()
    rank = World.from_environment().rank
    one_processor(rank)
    data = {"data": given.data} if given.data else {}
    result = measured(JOBS[given.job], given.pairs, given.other_first, data)
    # Objects that the loop froze would never be destroyed, and C++ extensions would report leaks at exit.
    gc.unfreeze()
    if rank == 0:
        given.to.write_text(json.dumps(result))


if __name__ == "__main__":
    main()
