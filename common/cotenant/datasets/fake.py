"""Makes fake sets: invented contents in the true formats, file by file, on several processors."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cotenant.datasets.dataset import FAKE, SIZES, File, Manifest, Recipe
from cotenant.datasets.disk import bytes_below, file_size, remove_temporaries, write_file
from cotenant.datasets.obtain import Request
from cotenant.datasets.progress import shown
from cotenant.errors import CotenantError
from cotenant.text import size_words

_FILES_PER_TASK = 8


@dataclass(frozen=True)
class FakeRequest(Request):
    """A fake set of a size; `processes` make it, by default as many as there are processors for it."""

    kind = FAKE
    seed: int = 0
    processes: int | None = None

    @property
    def recipe(self) -> Recipe:
        """What is made in this size."""
        return self.dataset.sizes[self.size]

    @property
    def variant(self) -> str:
        return f"{self.size}-v{self.dataset.fake_version}-s{self.seed}"

    @property
    def title(self) -> str:
        return f"{self.dataset.name} ({self.size})"

    @property
    def smaller(self) -> str | None:
        return None if self.size == SIZES[0] else f"--size {SIZES[0]}"

    def accepts(self, manifest: Manifest) -> bool:
        large = SIZES.index(manifest.size) >= SIZES.index(self.size)
        return large and manifest.version == self.dataset.fake_version

    def plan(self) -> tuple[str, int]:
        files, there = sum(1 for _ in self.recipe.files()), size_words(bytes_below(self.staging))
        about = size_words(self.recipe.estimated_bytes)
        return f"making {files:,} files, about {about} ({there} there)", self.recipe.estimated_bytes

    def fill(self) -> Manifest:
        files = tuple(self.recipe.files())
        remove_temporaries(self.staging)
        # Complete files of a run that ended are kept.
        missing = [file for file in files if file_size(self.staging / file.path) is None]
        make = partial(_make, self.dataset.content, self.staging, self.seed)
        processes = min(self.processes or len(os.sched_getaffinity(0)), len(missing))
        with shown(self.dataset.name, len(files)) as reach:
            _make_all(make, missing, processes, lambda made: reach(len(files) - len(missing) + made))
        # The worker of a maker that was just killed may have been at a file when we began.
        remove_temporaries(self.staging)
        splits = dict.fromkeys((file.split for file in files), 0)
        for file in files:
            splits[file.split] += file.items
        return Manifest(self.dataset.name, self.size, FAKE, self.seed, self.dataset.fake_version, 0, 0, splits)

    def clear(self) -> None:
        """Nothing but the staging folder was needed."""


def _make(content: Callable[[File, int], Iterable[bytes]], folder: Path, seed: int, file: File) -> None:
    path = folder / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, content(file, seed))


def _make_all(
    make: Callable[[File], None], files: Sequence[File], processes: int, reach: Callable[[int], None]
) -> None:
    """Make each file, here or in so many workers, and call `reach` with how many are made.

    Raises OSError or ImportError as a worker met it, CotenantError where one died. No worker outlives it.
    """
    if processes <= 1:
        for made, file in enumerate(files, 1):
            make(file)
            reach(made)
        return
    files_per_task = min(_FILES_PER_TASK, -(-len(files) // processes))
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _follow_parent) as workers:
        try:
            # A terminal sends Ctrl-C to the workers, too, and their parent ends them.
            with _interrupts_held():
                results = workers.map(make, files, chunksize=files_per_task)
            for made, _ in enumerate(results, 1):
                reach(made)
        except BrokenProcessPool as error:
            raise CotenantError(
                "A worker ended before its file was complete: it was killed, as when memory runs out, or it crashed.",
                "Start again, on fewer processors if memory is short (taskset -c 0): complete files are kept.",
            ) from error
        except BaseException:
            for worker in multiprocessing.active_children():
                worker.kill()
            raise


def _follow_parent() -> None:
    """End this worker as soon as its parent is gone, also where that was killed."""

    def wait() -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back until the end of the block; processes started in it never see one."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
