"""How far the making is: a bar where a person watches, else a plain line now and then. All on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cotenant.text import size_words

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
        count, line = done, _now_and_then()

        def advance() -> None:
            nonlocal count
            count += 1
            line(lambda: f"{title}: {count:,} of {total:,} files")

        yield advance


@contextmanager
def shown_bytes(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yield what to call with the number of bytes that are done, of `total`."""
    if sys.stderr.isatty():
        with _byte_bar(title, total) as reach:
            yield reach
    else:
        line = _now_and_then()
        yield lambda done: line(lambda: f"{title}: {size_words(done)} of {size_words(total)}")


def _now_and_then() -> Callable[[Callable[[], str]], None]:
    """Return what says a line where the last one, or the beginning, is long enough ago."""
    next_line_s = time.monotonic() + SECONDS_PER_LINE

    def say_if_due(line: Callable[[], str]) -> None:
        nonlocal next_line_s
        if time.monotonic() >= next_line_s:
            next_line_s = time.monotonic() + SECONDS_PER_LINE
            say(line())

    return say_if_due


@contextmanager
def _bar(title: str, done: int, total: int) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total, completed=done)
        yield lambda: progress.advance(task)


@contextmanager
def _byte_bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total)

        def reach(done: int) -> None:
            progress.update(task, completed=done)

        yield reach
