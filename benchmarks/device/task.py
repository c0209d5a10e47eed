"""Starting tasks one after the other, each a fork of a process that has imported torch and touched no device.

What a start costs is then its own work: the import of torch is paid once, and not for each of twenty tasks.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import re
import runpy
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from device.book import Skip
from device.part import BENCHMARKS, ROOT, Given
from device.processes import end_descendants, end_with_parent

OBSERVATIONS = ("--repeat", "12", "--skip", "4")
OBSERVATIONS_IN_SMALL = ("--repeat", "8", "--skip", "2")
"""Six that are kept are the least of which there is an interval."""
PLENTY = 1_000_000
"""Batches of an observation, before a budget says how many fit."""
_FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class How:
    """For how long a task measures and may take, where its files go, and whether it may use a device.

    `cut`: it may take less than a task may need, as its part ends then.
    """

    budget_s: float
    limit_s: float
    scratch: Path
    cuda: bool
    observations: tuple[str, ...] = OBSERVATIONS
    cut: bool = False

    @classmethod
    def of(cls, given: Given, budget_s: float, small_s: float, limit_s: float, beyond_s: float = 0.0) -> How:
        """Return how a part measures, in small where it does so, and no longer than `beyond_s` after its own end."""
        budget_s, many = (small_s, OBSERVATIONS_IN_SMALL) if given.quick else (budget_s, OBSERVATIONS)
        left_s = given.left_s + beyond_s
        return cls(budget_s, min(limit_s, left_s), given.scratch, given.device != "cpu", many, cut=left_s < limit_s)


class TaskError(Exception):
    """A task that left no record; says why."""


class LateError(TaskError):
    """A task that had not ended at its limit."""


def preload(vision: bool = True) -> None:
    """Import here what the tasks import. It must not touch a device: a child could not use one then."""
    for folder in (ROOT / "common", BENCHMARKS):
        sys.path.insert(0, str(folder))
    import torch  # noqa: F401

    import cotenant.bench  # noqa: F401

    if vision:
        with contextlib.suppress(Exception):  # A torchvision that does not fit fails in ways of its own.
            import torchvision  # noqa: F401


def in_child(work: Callable[[], Any], limit_s: float, log: Path) -> Any:
    """Return what `work` returns in a forked child, as JSON carries it.

    Raises TaskError with the last line that the child wrote where it ended otherwise, LateError at its limit.
    """
    result = log.with_suffix(".result")
    result.unlink(missing_ok=True)
    child = _FORK.Process(target=_child, args=(work, result, log, os.getpid()))
    child.start()
    slow = False
    try:
        child.join(max(1.0, limit_s))
        slow = child.is_alive()
    finally:
        # Also where this process is asked to end: nothing waits for a child then.
        if child.is_alive():
            child.kill()
        child.join()
    # Loaders and compilers that it has not ended.
    end_descendants(natural_s=1.0)
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    print("\n".join(lines[-15 if result.exists() else -200 :]), flush=True)
    if result.exists():
        return json.loads(result.read_text())
    said = f": {lines[-1][:300]}" if lines else ""
    if slow:
        raise LateError(f"It took longer than {limit_s:.0f} s{said}")
    raise TaskError(f"It ended with status {child.exitcode}{said}")


def _child(work: Callable[[], Any], result: Path, log: Path, parent: int) -> None:
    end_with_parent(parent)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with log.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    value = work()
    result.write_text(json.dumps(value, default=str))


@cache
def flags_of(main: str) -> frozenset[str]:
    """Return the flags that a task's --help names. It is asked in this process, which a child should be."""
    text = io.StringIO()
    sys.argv, sys.path[0] = [main, "--help"], str(Path(main).parent)
    with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
        runpy.run_path(main, run_name="__main__")
    return frozenset(re.findall(r"(?<![\w-])--[a-zA-Z][\w-]*", text.getvalue()))


def measured(main: str, words: Sequence[str], how: How) -> dict[str, Any]:
    """Run a task, alone and without slices, in a child; return its record.

    Raises TaskError where there is none, Skip where the part's end cut it off.
    """

    def work() -> dict[str, Any]:
        record = measured_here(main, words, how)
        if record is None:
            os._exit(1)  # What it said is in the log, whose last line is the reason.
        return record

    try:
        return dict(in_child(work, how.limit_s, how.scratch / "task.log"))
    except LateError as error:
        if how.cut:
            raise Skip("No time was left for its end.") from error
        raise


def measured_here(main: str, words: Sequence[str], how: How) -> dict[str, Any] | None:
    """Run a task in this process, one of whose parents has forked it; return its record, None where it left none.

    The record has `compilations`, at READY and after the last observation, beside its own fields.
    """
    known, path = flags_of(main), how.scratch / f"{time.monotonic_ns()}.json"
    given = ["--report", str(path), "--number", str(PLENTY), *how.observations, *words]
    given += [] if {"--cuda", "--no-cuda"} & set(words) else ["--cuda" if how.cuda else "--no-cuda"]
    given += ["--settle", "0"] if "--settle" in known else []
    given += ["--budget", f"{how.budget_s}s"] if "--budget" in known else []
    watch = Watch.over_tasks(None if "--budget" in known else how.budget_s)
    sys.argv, sys.path[0] = [main, *given], str(Path(main).parent)
    with contextlib.suppress(SystemExit):
        runpy.run_path(main, run_name="__main__")
    if not path.exists():
        return None
    return {**json.loads(path.read_text()), "compilations": list(watch.compilations)}


@dataclass
class Watch:
    """What is noted of a task between READY and DONE, by what stands in for a runner: once in a process."""

    budget_s: float | None
    step_ns: int | None = None
    compilations: list[int] = field(default_factory=list)
    one: ClassVar[Watch | None] = None

    @classmethod
    def over_tasks(cls, budget_s: float | None) -> Watch:
        """Return the watch of this process, ready for another task."""
        if cls.one is None:
            cls.one = Watch(budget_s)
            cls.one._join()
        cls.one.budget_s, cls.one.compilations = budget_s, []
        return cls.one

    def _join(self) -> None:
        """Be asked wherever a task says READY, waits for GO and is DONE."""
        from cotenant.bench.alone import Alone
        from cotenant.stats.budget import steady_ns

        ready, await_go, done = Alone.ready, Alone.await_go, Alone.done

        def at_ready(alone: Any, number: int, repeat: int, skip: int, warm_up_ns: list[int]) -> None:
            self.compilations.append(graphs())
            self.step_ns = steady_ns(warm_up_ns)
            ready(alone, number, repeat, skip, warm_up_ns)

        def at_go(alone: Any) -> tuple[int, int, int]:
            t0_ns, number, repeat = await_go(alone)
            if self.budget_s is not None:
                number = fitting(self.budget_s, self.step_ns, repeat)
            return t0_ns, number, repeat

        def at_done(alone: Any) -> None:
            self.compilations.append(graphs())
            done(alone)

        Alone.ready, Alone.await_go, Alone.done = at_ready, at_go, at_done  # type: ignore[method-assign]


def fitting(budget_s: float, step_ns: int | None, repeat: int) -> int:
    """Return how many batches make an observation, so that all of them take about as long as the budget."""
    return max(1, round(budget_s * 1e9 / (step_ns * repeat))) if step_ns else 1


def graphs() -> int:
    """Return how many graphs torch.compile has made in this process."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return 0 if dynamo is None else int(dynamo.counters["stats"]["unique_graphs"])


def prepared_here(task: str, words: Sequence[str], cuda: bool) -> Any:
    """Return what a batch of a task takes, warm, as the measured loop has it; of one task only in a process."""
    from sides import benchmark_of, prepared

    from cotenant.bench import Run
    from cotenant.bench.arguments import parse

    cls = benchmark_of(task)
    device = [] if {"--cuda", "--no-cuda"} & set(words) else ["--cuda" if cuda else "--no-cuda"]
    benchmark = cls(**parse(cls, [*words, *device]).values)
    work, _ = prepared(benchmark, Run(benchmark))
    return work


def rate(record: dict[str, Any]) -> float | None:
    """Return a record's median rate of the kept observations, in items per second."""
    statistics = record.get("statistics")
    return None if not statistics else float(statistics["median"])


def errors(record: dict[str, Any]) -> list[str]:
    """Return the sentences of a record's findings that make it invalid."""
    return [finding["sentence"] for finding in record.get("findings", ()) if finding["severity"] == "error"]
