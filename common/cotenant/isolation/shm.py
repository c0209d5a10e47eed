"""What tenants leave in /dev/shm: it stays charged after their death, and the next launch would find less memory.

There is one /dev/shm for everybody, and the same user may fill it beside a suite. So a file is removed only if it is
this user's, was not there before, no living process has it open or mapped, and it is shown to be a tenant's: its memory
is charged to a tenant's cgroup (isolation.charge), or a tenant's process could write to it when it was ended. What is
new otherwise is counted and stays. Standard library only: the reaper uses it too.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from pathlib import Path

from cotenant.isolation.charge import charges, charges_are_readable
from cotenant.isolation.processes import marked

SHM = Path("/dev/shm")
JUDGE_LIMIT_S = 2.0
"""Somebody may copy a million files: those that are not looked at in this time stay."""
FileId = tuple[int, int]
"""Device and inode."""


@dataclass(slots=True)
class Files:
    """How many, and what memory they hold."""

    files: int = 0
    memory_bytes: int = 0

    def add(self, status: os.stat_result) -> None:
        self.files += 1
        self.memory_bytes += status.st_blocks * 512


@dataclass(frozen=True, slots=True)
class Leavings:
    """What is new: what was a tenant's and is gone, and what nothing shows to be one's and stays."""

    removed: Files
    kept: Files


def present(root: Path = SHM) -> frozenset[FileId]:
    """Return which files of this user are there now."""
    return frozenset(_id(status) for _, status in _files(root))


class ShmWatch:
    """Knows what was there before, and collects what shows that a new file is a tenant's."""

    def __init__(
        self, run: str, cgroups: Callable[[], Set[int]], before: Set[FileId] | None = None, root: Path = SHM
    ) -> None:
        """`cgroups` returns the inodes of the memory cgroups that tenants of the run live in now."""
        self._run, self._cgroups, self._root = run, cgroups, root
        self._before = present(root) if before is None else before
        self._charged: set[int] = set()
        self._written: set[FileId] = set()

    def look(self) -> None:
        """See what belongs to tenants while their processes and cgroups are there: call it before they are ended."""
        self._charged |= self._cgroups()
        if not (self._charged and charges_are_readable()):
            device = self._root.stat().st_dev if self._root.is_dir() else None
            for pid in marked(self._run) if device is not None else []:
                process = Path(f"/proc/{pid}")
                found = (*_open_files(process, writable=True), *_mapped_files(process, writable=True))
                self._written |= {file for file in found if file[0] == device}

    def clear(self) -> Leavings:
        """Remove what tenants have left."""
        self._charged |= self._cgroups()
        leavings = Leavings(Files(), Files())
        new = {_id(status): (path, status) for path, status in _files(self._root)}
        new = {key: value for key, value in new.items() if key not in self._before}
        held = _held() if new else set()
        until_s = time.monotonic() + JUDGE_LIMIT_S
        for key, (path, status) in new.items():
            if key in held:
                continue
            if time.monotonic() < until_s and self._is_a_tenants(key, path) and _unlinked(key, path):
                leavings.removed.add(status)
            elif status.st_blocks:
                leavings.kept.add(status)
        return leavings

    def _is_a_tenants(self, key: FileId, path: Path) -> bool:
        charged = charges(path) if self._charged else set()
        return key in self._written or (charged != set() and charged <= self._charged)


def _id(status: os.stat_result) -> FileId:
    return status.st_dev, status.st_ino


def _unlinked(key: FileId, path: Path) -> bool:
    """Unlink a path that still names the same file."""
    with contextlib.suppress(OSError):
        if _id(path.lstat()) == key:
            path.unlink()
            return True
    return False


def _files(root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    own = os.getuid()
    for directory, _, names in os.walk(root):
        for name in names:
            path = Path(directory, name)
            with contextlib.suppress(OSError):
                status = path.lstat()
                if stat.S_ISREG(status.st_mode) and status.st_uid == own:
                    yield path, status


def _held() -> set[FileId]:
    """Return the files that a process we may look into has open or mapped.

    A process of another user may not hold a file of ours unless we gave it to it; those are beyond our sight.
    """
    held: set[FileId] = set()
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            held.update(_open_files(process), _mapped_files(process))
    return held


def _open_files(process: Path, writable: bool = False) -> Iterator[FileId]:
    """Yield what a process has open, or open for writing: the link's own mode says that (proc_pid_fd(5))."""
    with contextlib.suppress(OSError):
        for descriptor in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                if not writable or descriptor.lstat().st_mode & stat.S_IWUSR:
                    yield _id(descriptor.stat())


def _mapped_files(process: Path, writable: bool = False) -> Iterator[FileId]:
    """Read `address perms offset major:minor inode path` lines (proc_pid_maps(5))."""
    with contextlib.suppress(OSError):
        for line in (process / "maps").read_text(errors="replace").splitlines():
            _, permissions, _, numbers, inode, *_ = line.split(maxsplit=5)
            if inode != "0" and (not writable or (permissions[1], permissions[3]) == ("w", "s")):
                major, _, minor = numbers.partition(":")
                yield os.makedev(int(major, 16), int(minor, 16)), int(inode)
