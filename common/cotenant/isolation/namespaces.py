"""PID namespaces: a process has a number in its own and in each above it, and none elsewhere (pid_namespaces(7)).

Standard library only: the reaper uses it too.
"""

from __future__ import annotations

from pathlib import Path

INITIAL = 0xEFFFFFFC
"""The inode of the kernel's first one (PROC_PID_INIT_INO): from there every process is to be seen."""


def namespace_of(process: int | str = "self") -> int:
    """Return the inode of a process's namespace; 0 where the kernel has none, or does not show it.

    The inode of one that has ended is given to a new one: then nobody of the old one is left.
    """
    try:
        return Path(f"/proc/{process}/ns/pid").stat().st_ino
    except OSError:
        return 0


def seen_from_above(number: int) -> list[int]:
    """Return our numbers of the processes that have this one in a namespace below ours (NSpid, proc_pid_status(5))."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdecimal() and (numbers := _numbers(path))[1:] and numbers[-1] == number:
            found.append(int(path.name))
    return found


def _numbers(process: Path) -> list[int]:
    try:
        lines = (process / "status").read_bytes().splitlines()
    except OSError:
        return []
    return next((list(map(int, line.split()[1:])) for line in lines if line.startswith(b"NSpid:")), [])
