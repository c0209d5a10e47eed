"""Makes fake sets: invented contents in the true formats, file by file, on several processors."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from cotenant.datasets.dataset import FAKE, File, FolderManifest
from cotenant.datasets.disk import TEMPORARY_SUFFIX, bytes_below, write_file
from cotenant.datasets.progress import shown_progress
from cotenant.datasets.request import SetRequest
from cotenant.errors import CotenantError
from cotenant.machine.limits import cgroup_mounts, quota_processors
from cotenant.text import size_words

_MOST_PER_TASK = 8


def plan(request: SetRequest) -> tuple[str, int]:
    """Return the steps to come in words, and the bytes that they write in all."""
    recipe = request.dataset.sizes[request.size]
    count, there = sum(1 for _ in recipe.files()), size_words(bytes_below(request.staging))
    about = size_words(recipe.estimated_bytes)
    return f"making {count:,} files, about {about} ({there} there)", recipe.estimated_bytes


def fill(request: SetRequest) -> FolderManifest:
    """Make the files of the set in its staging folder that no earlier run completed; return the manifest."""
    dataset, staging = request.dataset, request.staging
    files = tuple(dataset.sizes[request.size].files())
    for path in staging.rglob(f".*{TEMPORARY_SUFFIX}"):
        path.unlink()
    missing = [file for file in files if not (staging / file.path).exists()]
    processes = min(request.processes or _processors(), len(missing))
    per_task = min(_MOST_PER_TASK, -(-len(missing) // max(processes, 1))) or 1
    tasks = [missing[first : first + per_task] for first in range(0, len(missing), per_task)]
    make = partial(_make, dataset.content, staging)
    done = len(files) - len(missing)
    with shown_progress(dataset.name, len(files)) as reach:
        for made in map(make, tasks) if processes <= 1 else _by_workers(make, tasks, processes):
            done += made
            reach(done)
    splits = dict.fromkeys((file.split for file in files), 0)
    for file in files:
        splits[file.split] += file.items
    return FolderManifest(dataset.name, request.size, FAKE, dataset.version, splits)


def _processors() -> int:
    """Return the number of processors that may be used; a container's quota may leave the time of a few."""
    usable, quota = len(os.sched_getaffinity(0)), quota_processors(cgroup_mounts())
    return usable if quota is None else max(1, min(usable, math.ceil(quota)))


def _make(content: Callable[[File], Iterable[bytes]], folder: Path, files: Sequence[File]) -> int:
    """Make these files, and return how many they are."""
    for file in files:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, content(file))
    return len(files)


def _by_workers(
    make: Callable[[Sequence[File]], int], tasks: Iterable[Sequence[File]], processes: int
) -> Iterator[int]:
    """Yield the number of files that each task has made, as tasks end in this many workers.

    Raises the OSError or ImportError that a worker met, CotenantError if one died. No worker outlives this generator.
    """
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _follow_parent) as workers:
        try:
            with _without_interrupts():
                # Not by `map`: it cancels the work that a dead worker leaves, which the pool's thread prints.
                results = [workers.submit(make, task) for task in tasks]
            for result in as_completed(results):
                yield result.result()
        except BrokenProcessPool as error:
            raise CotenantError(
                "A worker ended before its file was complete: it was killed, as when memory runs out, or it crashed.",
                "Start again, on fewer processors if memory is short (taskset -c 0): complete files are kept.",
            ) from error
        except BaseException:
            for worker in multiprocessing.active_children():
                worker.kill()
            raise


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Start workers that Ctrl-C does not reach, and raise KeyboardInterrupt afterwards if one came meanwhile.

    A terminal sends SIGINT to all. Workers inherit the mask that blocks it, and their parent ends them. Another thread
    of the parent may still take the signal: its handler only notes it, as a worker half started prints a traceback.
    """
    came: list[int] = []
    usual = signal.signal(signal.SIGINT, lambda number, _frame: came.append(number))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, usual)
    if came:
        raise KeyboardInterrupt


def _follow_parent() -> None:
    """End this worker as soon as its parent is gone, even if the parent was killed."""

    def wait() -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
