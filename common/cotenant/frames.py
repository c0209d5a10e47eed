"""polars, with a single thread for its work: tables of records are small, and a user may have few processes.

With a thread per processor polars panics if the number of threads is limited. A program that has imported it keeps
its own threads, as does one whose caller set `POLARS_MAX_THREADS`; child programs inherit nothing of it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

from cotenant.errors import ShortageError

__all__ = ["pl", "register_io_source"]

VARIABLE = "POLARS_MAX_THREADS"
MOST_THREADS = 11
"""The most threads that polars had beside the first one, with a single thread for its work: jemalloc's, its
streaming engine's and threads that read files."""


@contextlib.contextmanager
def _few_threads() -> Iterator[None]:
    """Let polars start few threads, and none if they would be too many. Raises ShortageError."""
    if "polars" in sys.modules:
        yield
        return
    _check_threads(MOST_THREADS)
    callers = os.environ.get(VARIABLE)
    os.environ.setdefault(VARIABLE, "1")
    try:
        yield
    finally:
        if callers is None:
            del os.environ[VARIABLE]


def _check_threads(count: int) -> None:
    """Raise ShortageError if this process cannot have so many more threads."""
    end = threading.Event()
    threads = [threading.Thread(target=end.wait) for _ in range(count)]
    started = []
    try:
        for thread in threads:
            thread.start()
            started.append(thread)
    except RuntimeError as error:
        raise ShortageError(f"polars, which makes the tables, needs {count} threads more.") from error
    finally:
        end.set()
        for thread in started:
            thread.join()


with _few_threads():
    import polars as pl
    from polars.io.plugins import register_io_source

    pl.thread_pool_size()  # It reads the variable once, when it makes its threads.
