"""The page cache of given files: read them into it, drop them from it, and ask the kernel how much of them it holds."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cotenant.files import open_regular

CHUNK_BYTES = 1 << 20
SYS_CACHESTAT = 451  # The same number on every architecture; since Linux 6.5.


@dataclass(frozen=True, slots=True)
class Cached:
    """How much of a set of files lies in the page cache; `cached_bytes` is None where the kernel does not tell."""

    files: int
    size_bytes: int
    cached_bytes: int | None


class _Range(ctypes.Structure):
    _fields_ = [("offset", ctypes.c_uint64), ("length", ctypes.c_uint64)]


class _Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("cached", "dirty", "writeback", "evicted", "recently_evicted")]


def drop(descriptor: int) -> None:
    """Let go of a file's pages, once they are written. Pages that a process has mapped stay (posix_fadvise(2))."""
    os.fdatasync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def warm(descriptor: int) -> None:
    """Read a file once; its pages are charged to the caller's memory, not to a tenant's."""
    while os.read(descriptor, CHUNK_BYTES):
        pass


def treat(paths: Iterable[Path], action: Callable[[int], None], stop: Callable[[], bool]) -> Cached:
    """Apply `action` to every regular file at or below `paths`, then count; ends early once `stop()`.

    A file that cannot be read is left out: the benchmark that needs it will say so.
    """
    places = tuple(paths)
    files = size_bytes = 0
    cached_bytes: int | None = 0
    for path in _until(stop, places):
        with contextlib.suppress(OSError), open_regular(path, follow=True) as file:
            action(file.fileno())
    # Not each as it was treated: of a set larger than the memory the first files are out again when the last are in.
    for path in _until(stop, places):
        with contextlib.suppress(OSError), open_regular(path, follow=True) as file:
            files += 1
            size_bytes += os.fstat(file.fileno()).st_size
            held = cached(file.fileno())
            cached_bytes = None if held is None or cached_bytes is None else cached_bytes + held
    return Cached(files, size_bytes, cached_bytes)


def cached(descriptor: int) -> int | None:
    """Return how many bytes of a file are in the page cache, in whole pages, or None where the kernel cannot say."""
    counts = _Counts()
    whole = _Range(0, 0)  # A length of 0 is the whole file.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(SYS_CACHESTAT, descriptor, ctypes.byref(whole), ctypes.byref(counts), 0):
        return None
    return int(counts.cached) * os.sysconf("SC_PAGE_SIZE")


def _until(stop: Callable[[], bool], paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files at or below `paths` until `stop()`."""
    return itertools.takewhile(lambda path: not stop(), _files(paths))


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            for directory, below, names in os.walk(path):
                below.sort()
                for name in sorted(names):
                    file = Path(directory, name)
                    if os.path.isfile(file):  # noqa: PTH113 # is_file raises in a folder that may not be searched
                        yield file
        elif path.is_file():
            yield path
