"""What tenants leave in /dev/shm: it stays charged after their death, and the next launch would find less memory.

There is one /dev/shm for everybody, so a file is a leaving only if it is this user's, was not there before, and no
living process has it open or mapped. Standard library only: the reaper uses it too.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SHM = Path("/dev/shm")
FileId = tuple[int, int]
"""Device and inode."""


@dataclass(frozen=True, slots=True)
class Leavings:
    """What was removed."""

    files: int
    memory_bytes: int


def present(root: Path = SHM) -> frozenset[FileId]:
    """Return which files of this user are there now."""
    return frozenset((status.st_dev, status.st_ino) for _, status in _files(root))


def clear_leavings(before: frozenset[FileId], root: Path = SHM) -> Leavings:
    """Remove this user's files that are not of `before` and that nobody holds."""
    new = {(status.st_dev, status.st_ino): (path, status) for path, status in _files(root)}
    new = {key: value for key, value in new.items() if key not in before}
    if not new:
        return Leavings(0, 0)
    files = memory_bytes = 0
    held = _held({device for device, _ in new})
    for key, (path, status) in new.items():
        if key in held:
            continue
        with contextlib.suppress(OSError):
            path.unlink()
            files += 1
            memory_bytes += status.st_blocks * 512
    return Leavings(files, memory_bytes)


def _files(root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    own = os.getuid()
    for directory, _, names in os.walk(root):
        for name in names:
            path = Path(directory, name)
            with contextlib.suppress(OSError):
                status = path.lstat()
                if stat.S_ISREG(status.st_mode) and status.st_uid == own:
                    yield path, status


def _held(devices: set[int]) -> set[FileId]:
    """Return the files on these devices that a process we may look into has open or mapped.

    A process of another user may not hold a file of ours unless we gave it to it; those are beyond our sight.
    """
    held: set[FileId] = set()
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            held |= _open_files(process, devices) | _mapped_files(process, devices)
    return held


def _open_files(process: Path, devices: set[int]) -> set[FileId]:
    found: set[FileId] = set()
    with contextlib.suppress(OSError):
        for descriptor in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                status = descriptor.stat()
                if status.st_dev in devices:
                    found.add((status.st_dev, status.st_ino))
    return found


def _mapped_files(process: Path, devices: set[int]) -> set[FileId]:
    """Read `address perms offset major:minor inode path` lines (proc_pid_maps(5))."""
    found: set[FileId] = set()
    with contextlib.suppress(OSError):
        for line in (process / "maps").read_text(errors="replace").splitlines():
            _, _, _, numbers, inode, *_ = line.split(maxsplit=5)
            major, _, minor = numbers.partition(":")
            device = os.makedev(int(major, 16), int(minor, 16))
            if device in devices:
                found.add((device, int(inode)))
    return found
