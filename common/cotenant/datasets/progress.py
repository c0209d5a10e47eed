"""How far the work is: a bar where a person watches, else a plain line now and then. All on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cotenant.text import size_words

SECONDS_PER_LINE = 10.0


def say(line: str) -> None:
    """Write one line to stderr."""
    print(line, file=sys.stderr, flush=True)


@contextmanager
def shown(title: str, total: int, *, in_bytes: bool = False) -> Iterator[Callable[[int], None]]:
    """Yield what to call with the number of files, or of bytes, that are done, of `total`."""
    if sys.stderr.isatty():
        with _bar(title, total, in_bytes) as update:
            yield update
        return
    next_line_s = time.monotonic() + SECONDS_PER_LINE

    def reach(done: int) -> None:
        nonlocal next_line_s
        if time.monotonic() >= next_line_s:
            next_line_s = time.monotonic() + SECONDS_PER_LINE
            many = f"{size_words(done)} of {size_words(total)}" if in_bytes else f"{done:,} of {total:,} files"
            say(f"{title}: {many}")

    yield reach


@contextmanager
def _bar(title: str, total: int, in_bytes: bool) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    counts = (DownloadColumn(), TransferSpeedColumn()) if in_bytes else (MofNCompleteColumn(),)
    columns = (TextColumn("{task.description}"), BarColumn(), *counts, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda done: progress.update(task, completed=done)
