"""Reading and writing the kernel's cgroup files: one system call each, and every error with its file."""

from __future__ import annotations

import os
import time
from pathlib import Path

REMOVE_WAIT_S = 2.0


def write(path: Path, text: str) -> None:
    """Write `text` in one call. Raises OSError naming the file and the text.

    A buffered `open(...).write()` that is never closed would lose the kernel's EINVAL or ENOSPC.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    except OSError as error:
        raise OSError(error.errno, f"{os.strerror(error.errno or 0)} on writing '{text}'", str(path)) from error
    finally:
        os.close(descriptor)


def read(path: Path) -> str:
    """Return the file's text without its last newline."""
    return path.read_text().rstrip("\n")


def read_or_none(path: Path) -> str | None:
    """Return the file's text, or None where this kernel has no such file."""
    try:
        return read(path)
    except FileNotFoundError:
        return None


def field(path: Path, name: str) -> int | None:
    """Return the number beside `name` in a file of `name value` lines, or None where it is not there."""
    for line in (read_or_none(path) or "").splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return None


def pids(directory: Path) -> list[int]:
    """Return the processes directly in a cgroup; none where it does not exist."""
    return [int(line) for line in (read_or_none(directory / "cgroup.procs") or "").split()]


def make(directory: Path) -> None:
    """Make one cgroup; one that is there already is fine."""
    directory.mkdir(mode=0o755, exist_ok=True)


def remove(directory: Path) -> None:
    """Remove an empty cgroup; wait where its last process is not quite gone. Raises OSError."""
    deadline = time.monotonic() + REMOVE_WAIT_S
    while True:
        try:
            directory.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.002)
