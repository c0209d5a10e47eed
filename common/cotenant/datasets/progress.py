"""The progress of the work: a bar if a person watches, else a plain line now and then. All on stderr."""

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
def shown_progress(title: str, total: int, *, in_bytes: bool = False) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of files, or of bytes, that are done, of `total`."""

    def words(done: int) -> str:
        return f"{size_words(done)} of {size_words(total)}" if in_bytes else f"{done:,} of {total:,} files"

    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        description, amount = TextColumn("{task.description}"), TextColumn("{task.fields[words]}")
        shape = description, BarColumn(), amount, TimeRemainingColumn()
        with Progress(*shape, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(title, total=total, words=words(0))
            yield lambda done: progress.update(task, completed=done, words=words(done))
        return
    next_line_s = time.monotonic() + SECONDS_PER_LINE

    def reach(done: int) -> None:
        nonlocal next_line_s
        if time.monotonic() >= next_line_s:
            next_line_s = time.monotonic() + SECONDS_PER_LINE
            say(f"{title}: {words(done)}")

    yield reach
