"""Which memory cgroup a file's pages are charged to: the kernel tells root, page by page (proc_pid_pagemap(5)).

`/proc/self/pagemap` says which frame a mapped page lies in, `/proc/kpagecgroup` which cgroup, by its inode, has that
frame. Standard library only: the reaper uses it too.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

PAGEMAP, KPAGECGROUP = Path("/proc/self/pagemap"), Path("/proc/kpagecgroup")
SAMPLES = 8
"""A file of one maker is charged to one cgroup: a few pages from its whole length tell."""
ENTRY_BYTES = 8
PRESENT = 1 << 63
FRAME = (1 << 55) - 1


@functools.cache
def charges_are_readable() -> bool:
    """Whether this kernel tells us; without CAP_SYS_ADMIN it hides the frames."""
    with contextlib.suppress(OSError):
        return charges(Path("/proc/self/exe").resolve()) != set()
    return False


def charges(path: Path) -> set[int]:
    """Return the inodes of the cgroups that hold the looked-at pages of a file; 0 is the charge of none.

    Empty where that cannot be known.
    """
    with contextlib.ExitStack() as opened:
        try:
            file, pagemap, owners = (_open(opened, name) for name in (path, PAGEMAP, KPAGECGROUP))
            nowhere = opened.enter_context(os.fdopen(os.memfd_create("nowhere"), "wb")).fileno()
            # Private and writable, so that its address can be had; a page that is only read is the file's own.
            mapped = opened.enter_context(
                mmap.mmap(file, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
            )
            address = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
            found = set()
            for offset in _pages(file, len(mapped)):
                # The kernel reads for us: where the file was cut since, that is an error, and no SIGBUS.
                with memoryview(mapped) as bytes_, bytes_[offset : offset + 1] as first:
                    os.pwrite(nowhere, first, 0)
                entry = _entry(pagemap, (address + offset) // mmap.PAGESIZE)
                if not entry & PRESENT or not entry & FRAME:
                    return set()
                found.add(_entry(owners, entry & FRAME))
            return found
        except (OSError, ValueError):  # ValueError: an empty file cannot be mapped.
            return set()


def _open(opened: contextlib.ExitStack, path: Path) -> int:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    opened.callback(os.close, descriptor)
    return descriptor


def _pages(file: int, size: int) -> Iterator[int]:
    """Yield the offsets of pages that hold data: a hole has no owner, and looking at it would fill it."""
    pages = -(-size // mmap.PAGESIZE)
    for page in sorted({number * (pages - 1) // (SAMPLES - 1) for number in range(SAMPLES)}):
        with contextlib.suppress(OSError):  # There is no data behind this page.
            data = os.lseek(file, page * mmap.PAGESIZE, os.SEEK_DATA)
            yield data // mmap.PAGESIZE * mmap.PAGESIZE


def _entry(table: int, index: int) -> int:
    """Return an entry of a table of /proc; it has to be whole. Raises OSError, ValueError."""
    data = os.pread(table, ENTRY_BYTES, index * ENTRY_BYTES)
    if len(data) != ENTRY_BYTES:
        raise ValueError("the table ends before this page")
    return int.from_bytes(data, "little")
