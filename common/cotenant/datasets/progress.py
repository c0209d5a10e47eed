"""How far the making is: a bar where a person watches, else a plain line now and then. All on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SECONDS_PER_LINE = 10.0

Advance = Callable[[], None]


def say(line: str) -> None:
    """Write one line to stderr."""
    print(line, file=sys.stderr, flush=True)


@contextmanager
def shown(title: str, done: int, total: int) -> Iterator[Advance]:
    """Yield what to call after each file; `done` of `total` files were there before."""
    if sys.stderr.isatty():
        with _bar(title, done, total) as advance:
            yield advance
    else:
        yield _lines(title, done, total)


def _lines(title: str, done: int, total: int) -> Advance:
    count = done
    next_line_s = time.monotonic() + SECONDS_PER_LINE

    def advance() -> None:
        nonlocal count, next_line_s
        count += 1
        if time.monotonic() >= next_line_s:
            next_line_s = time.monotonic() + SECONDS_PER_LINE
            say(f"{title}: {count:,} of {total:,} files")

    return advance


@contextmanager
def _bar(title: str, done: int, total: int) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total, completed=done)
        yield lambda: progress.advance(task)
