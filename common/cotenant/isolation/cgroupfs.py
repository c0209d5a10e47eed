"""Reading and writing the kernel's cgroup files: one system call each, and every error names its file."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path

from cotenant.procfs import fields

REMOVE_WAIT_S = 2.0
READ_BYTES = 1 << 16
GONE = (errno.ENOENT, errno.ENODEV)
"""Errors for a file of a removed cgroup: the second if it was opened before the removal and read after it."""


def write(path: Path, text: str) -> None:
    """Write `text` in one call. Raises OSError naming the file and the text.

    A buffered `open(...).write()` that is never closed would lose the kernel's EINVAL or ENOSPC.
    """
    with _opened(path, os.O_WRONLY, f"writing '{text}'") as descriptor:
        os.write(descriptor, text.encode())


def read(path: Path) -> str:
    """Return the file's text without its last newline. Raises OSError naming the file."""
    with _opened(path, os.O_RDONLY, "reading") as descriptor:
        pieces = iter(lambda: os.read(descriptor, READ_BYTES), b"")
        return b"".join(pieces).decode().rstrip("\n")


def read_or_none(path: Path) -> str | None:
    """Return the file's text, or None if there is no such file, or its cgroup is gone."""
    try:
        return read(path)
    except OSError as error:
        if error.errno in GONE:
            return None
        raise


def field(path: Path, name: str) -> int | None:
    """Return the number beside `name` in a file of `name value` lines, None if it is missing."""
    value = fields(read_or_none(path) or "").get(name)
    return None if value is None else int(value)


def pids(directory: Path) -> list[int]:
    """Return the processes directly in a cgroup; none if it does not exist.

    A threaded v2 cgroup does not list processes: the domain above it has them all.
    """
    try:
        return [int(line) for line in (read_or_none(directory / "cgroup.procs") or "").split()]
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            return []
        raise


def threads(directory: Path) -> set[int]:
    """Return the threads directly in a cgroup, none if it does not exist: `tasks` on v1, `cgroup.threads` on v2."""
    texts = (read_or_none(directory / name) for name in ("tasks", "cgroup.threads"))
    return {int(line) for text in texts for line in (text or "").split()}


def above(directory: Path, name: str) -> Iterator[Path]:
    """Yield this file of a cgroup and of each cgroup above it that has one: the root of a hierarchy has no limits."""
    while (directory / name).exists():
        yield directory / name
        directory = directory.parent


def subtree(directory: Path) -> list[Path]:
    """Return a cgroup and all below it, the deepest first; nothing if it does not exist."""
    return [Path(path) for path, _, _ in os.walk(directory, topdown=False)]


def make(directory: Path) -> None:
    """Make one cgroup. Raises OSError naming it, also if it exists."""
    directory.mkdir(mode=0o755)


def remove(directory: Path) -> None:
    """Remove an empty cgroup; wait for its last process to be gone. Raises OSError."""
    deadline = time.monotonic() + REMOVE_WAIT_S
    while True:
        try:
            directory.rmdir()
            return
        except OSError as error:
            if error.errno in GONE:
                return
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.002)


@contextlib.contextmanager
def _opened(path: Path, flags: int, doing: str) -> Iterator[int]:
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
    except OSError as error:
        raise OSError(error.errno, f"{os.strerror(error.errno or 0)} on {doing}", str(path)) from error
