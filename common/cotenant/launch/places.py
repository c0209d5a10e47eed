"""The directories of a suite run: those of the caller, and two of the run's own that end with it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cotenant.isolation.runs import RunName
from cotenant.launch.removal import remove_tree

SOCKET_PATH_BYTES = 107
SOCKET_ROOM_BYTES = len("/4194304-99999999999-4294967295/t1023")


@dataclass(frozen=True, slots=True)
class Places:
    """The directories of a suite run; all absolute. `meeting` holds the tenants' sockets."""

    base: Path
    data: Path
    output: Path
    temporary: Path
    meeting: Path

    @classmethod
    def of_run(cls, base: Path, data: Path, output: Path, run: RunName) -> Places:
        """Return the places of one run. Nothing is made."""
        return cls(base, data, output, base / "tmp" / f"{_prefix()}{run}", _meeting_root() / f"{_prefix()}{run}")

    @property
    def logs(self) -> Path:
        return self.output / "logs"

    @property
    def purposes(self) -> dict[str, Path]:
        """What goes into which directory: where there has to be room."""
        return {"records": self.output, "data": self.data, "temporary files": self.temporary}

    @property
    def own(self) -> tuple[Path, Path]:
        """The directories that are this run's alone."""
        return self.temporary, self.meeting

    def sweep(self) -> list[str]:
        """Remove the own directories of runs that are dead, of this user and since this host's boot.

        Return what stays of them, in sentences.
        """
        left = []
        for path in [path for own in self.own for path in own.parent.glob(f"{_prefix()}*")]:
            run = RunName.parse(path.name.removeprefix(_prefix()))
            if run is not None and run.alive is False and path.lstat().st_uid == os.getuid():
                left.append(remove_tree(path))
        return [sentence for sentence in left if sentence]


def _prefix() -> str:
    """Hosts and containers may share a base: the pid of a run elsewhere, or before this boot, says nothing here."""
    here = [socket.gethostname()]
    with contextlib.suppress(OSError):
        here.append(Path("/proc/sys/kernel/random/boot_id").read_text())
    with contextlib.suppress(OSError):
        here.append(str(Path("/proc/self/ns/pid").readlink()))
    return f"cotenant-{hashlib.sha256(' '.join(here).encode()).hexdigest()[:16]}-"


def _meeting_root() -> Path:
    """Where a socket's path stays short enough for the kernel."""
    place = tempfile.gettempdir()
    fits = len(os.fsencode(place)) + len(_prefix()) + SOCKET_ROOM_BYTES <= SOCKET_PATH_BYTES
    return Path(place if fits else "/tmp")
