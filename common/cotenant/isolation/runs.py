"""A run's name, which tells whether its runner still lives, and the base below which runs have their cgroups."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from cotenant.errors import CotenantError
from cotenant.procfs import numbered, start_ticks, status_of

OURS = "cotenant"
"""A base with this prefix is made and removed with its runs; any other must exist, and stays."""
FIRST_NAMESPACE = 0xEFFFFFFC
"""The inode of the kernel's first PID namespace (PROC_PID_INIT_INO), which sees every process."""


def pid_namespace(process: int | str = "self") -> int:
    """Return the inode of a process's PID namespace; 0 if the kernel has none, or does not show it.

    A process has a number in its own namespace and in each above it, and none elsewhere (pid_namespaces(7)). The inode
    of an ended namespace, which has no process left, may pass to a new one.
    """
    try:
        return Path(f"/proc/{process}/ns/pid").stat().st_ino
    except OSError:
        return 0


@dataclass(frozen=True, slots=True)
class RunName:
    """A run's name, made of its runner's process, so that a dead run is known from its name alone.

    `namespace` is the inode of the PID namespace in which `pid` is counted.
    """

    pid: int = field(default_factory=os.getpid)
    start_ticks: int = field(default_factory=lambda: start_ticks(os.getpid()) or 0)
    namespace: int = field(default_factory=pid_namespace)

    def __str__(self) -> str:
        return f"{self.pid}-{self.start_ticks}-{self.namespace}"

    @classmethod
    def parse(cls, text: str) -> RunName | None:
        """Return the run that a directory of this name belongs to, None if it is not one of ours."""
        parts = text.split("-")
        if len(parts) != len(cls.__slots__) or not all(part.isdecimal() for part in parts):
            return None
        name = cls(*map(int, parts))
        return name if str(name) == text else None

    @property
    def is_elsewhere(self) -> bool:
        """Return whether its runner lives, or lived, in another PID namespace than this process."""
        return self.namespace != pid_namespace()

    @property
    def alive(self) -> bool | None:
        """Return whether its runner lives; None if it is elsewhere and cannot be seen from here."""
        if not self.is_elsewhere:
            return start_ticks(self.pid) == self.start_ticks
        # Its start is not compared: a time namespace counts it by another clock (time_namespaces(7)).
        living = [pid for pid in _numbered_below(self.pid) if start_ticks(pid) is not None]
        if any(pid_namespace(pid) == self.namespace for pid in living):
            return True
        return False if pid_namespace() == FIRST_NAMESPACE else None


def runs_below(homes: Iterable[Path]) -> list[RunName]:
    """Return the runs that have a directory in any of these."""
    names = {path.name for home in homes for path in home.glob("*-*") if path.is_dir()}
    return [run for name in sorted(names) if (run := RunName.parse(name)) is not None]


def owner() -> str:
    """Return the login of this user, after which the base of its runs is named."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def default_base() -> str:
    """Return the parent of this user's runs, as a path below a hierarchy's root."""
    return f"{OURS}.{owner()}"


def checked_base(base: str) -> str:
    """Return a base given by name. Raises CotenantError if it is no path of a cgroup."""
    if all(part not in ("", ".", "..") and part.isprintable() for part in base.split("/")):
        return base
    raise CotenantError(
        f"--cgroup-base '{base}' is no path of a cgroup below the root of its hierarchy.",
        f"Name one without a leading slash, such as {default_base()}.",
    )


def _numbered_below(number: int) -> list[int]:
    """Return our numbers of the processes with this number in a PID namespace below ours."""
    numbers = {pid: status_of(pid).get("NSpid", "").split() for pid in numbered(Path("/proc"))}
    return [pid for pid, ids in numbers.items() if ids[1:] and ids[-1] == str(number)]
