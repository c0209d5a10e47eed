"""The directories of a suite run: the caller's, and two of the run's own, which are removed at its end.

The run's own directories are removed whatever its tenants did to them. The reaper can do that, too.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cotenant.finding import Finding, warning
from cotenant.isolation.leftovers import SHM
from cotenant.isolation.runs import RunName, pid_namespace
from cotenant.procfs import mounted_systems, read_text
from cotenant.text import listed

REMEDY = "Remove it by hand, as root if it belongs to another user."
MNT_DETACH, UMOUNT_NOFOLLOW = 2, 8
SOCKET_PATH_BYTES = 107
SOCKET_ROOM_BYTES = len("/4194304-99999999999-4294967295/dt4095/pymp-12345678/listener-12345678")
"""Bytes of the longest name below the sockets' root: one of multiprocessing's in a program of `exec`."""


@dataclass(frozen=True, slots=True)
class RunPaths:
    """The directories of a suite run, all absolute. `sockets` holds the tenants' sockets."""

    base: Path
    data: Path
    output: Path
    temporary: Path
    sockets: Path

    @classmethod
    def of_run(cls, base: Path, data: Path, output: Path, run: RunName) -> RunPaths:
        """Return the paths of one run, without making any."""
        return cls(base, data, output, base / "tmp" / f"{_prefix()}{run}", _sockets_root() / f"{_prefix()}{run}")

    @property
    def logs(self) -> Path:
        return self.output / "logs"

    def socket_of(self, tenant: int) -> Path:
        return self.sockets / f"t{tenant}"

    @property
    def purposes(self) -> dict[str, Path]:
        """The directories that need free room, by their contents."""
        return {"records": self.output, "data": self.data, "temporary files": self.temporary}

    @property
    def own(self) -> tuple[Path, Path]:
        """The directories that belong to this run alone."""
        return self.temporary, self.sockets

    def sweep(self) -> list[str]:
        """Remove the own directories of dead runs of this user since this host's boot.

        Return a sentence on each one that could not be removed.
        """
        left = []
        for path in [path for directory in self.own for path in directory.parent.glob(f"{_prefix()}*")]:
            run = RunName.parse(path.name.removeprefix(_prefix()))
            with contextlib.suppress(FileNotFoundError):  # another run sweeps at the same time
                if run is not None and run.alive is False and path.lstat().st_uid == os.getuid():
                    left.append(remove_tree(path))
        return [sentence for sentence in left if sentence]


def _prefix() -> str:
    """Return a prefix of this host, boot and pid namespace: hosts may share a base, and pids mean nothing elsewhere."""
    here = f"{socket.gethostname()} {read_text(Path('/proc/sys/kernel/random/boot_id'))} {pid_namespace()}"
    return f"cotenant-{hashlib.sha256(here.encode()).hexdigest()[:16]}-"


def _sockets_root() -> Path:
    """Return a directory for sockets with paths short enough for the kernel, which tenants can see."""
    root = tempfile.gettempdir()
    fits = len(os.fsencode(root)) + len(_prefix()) + SOCKET_ROOM_BYTES <= SOCKET_PATH_BYTES
    return Path(root if fits and not is_shared_memory(Path(root)) else "/tmp")


def is_shared_memory(path: Path) -> bool:
    """Return whether a path is in /dev/shm: a tenant may have one of its own, in which the path does not exist."""
    return Path(os.path.realpath(path)).is_relative_to(SHM)


def remove_tree(top: Path) -> str:
    """Remove a directory and all in it; return a sentence on the rest, "" if nothing is left.

    Permissions on directories of ours are restored first. No link is followed, and no mount is entered: it is
    unmounted, or the whole directory stays.
    """
    with contextlib.suppress(OSError):
        top.unlink()  # A tenant may have put a link or a file in its place; for a directory this fails.
    if points := _unmounted(top):
        return f"What is left in {top} cannot be removed: {listed([str(point) for point in points])} is mounted there."
    try:
        shutil.rmtree(top, ignore_errors=True)
        if not os.path.lexists(top):
            return ""
        _open_up(top)
        shutil.rmtree(top, ignore_errors=True)
        shutil.rmtree(top)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"What is left in {top} cannot be removed ({error.filename}: {error.strerror})."
    except RecursionError:
        return f"What is left in {top} is nested too deep to be removed."
    return ""


def cleared(directories: Iterable[Path]) -> tuple[Finding, ...]:
    """Remove the temporary directories of a launch; return a finding on any rest."""
    left = " ".join(filter(None, map(remove_tree, directories)))
    return (warning(f"{left} The next launch finds it there.", REMEDY, rule="files_left", effect=0.0),) if left else ()


def _unmounted(top: Path) -> list[Path]:
    """Unmount all mounts on a directory or below it, the innermost first; return those that stay mounted."""
    umount2, real = ctypes.CDLL(None).umount2, Path(os.path.realpath(top.parent), top.name)
    points: list[Path] = []
    while below := [mount.point for mount in mounted_systems() if mount.point.is_relative_to(real)]:
        if len(below) == len(points):
            return below
        points = below
        for point in reversed(points):
            umount2(os.fsencode(point), MNT_DETACH | UMOUNT_NOFOLLOW)
    return []


def _open_up(top: Path) -> None:
    with contextlib.suppress(OSError):
        _unlock(top)
        for _, names, _, descriptor in os.fwalk(top):
            for name in names:
                with contextlib.suppress(OSError):
                    _unlock(name, descriptor)


def _unlock(name: Path | str, parent: int | None = None) -> None:
    """Give its owner all rights on a directory. Raises OSError for another user's directory, and for a link."""
    # O_PATH needs no right on the directory; the descriptor stays on it, even if a tenant now puts a link in its place.
    descriptor = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        Path(f"/proc/self/fd/{descriptor}").chmod(stat.S_IRWXU)
    finally:
        os.close(descriptor)
