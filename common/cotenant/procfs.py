"""Small kernel files and their formats, also a process's. Standard library only, as the reaper uses them, too.

Files are read whole and stripped; a missing file is no error. Lists of processors and nodes have the form
`0-3,8,10-11`.
"""

from __future__ import annotations

import os
import re
import signal
import string
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_PADDING = string.whitespace + "\0"  # some kernels end lists with a zero byte, and firmware all of its words


def read_text(path: Path, limit_bytes: int | None = None) -> str:
    """Return the stripped contents, or "" if the file is missing or may not be read.

    `limit_bytes` stops early: the kernel makes some files (`/proc/cpuinfo`) as they are read, and slowly.
    """
    return _read(path, limit_bytes).decode(errors="replace").strip(_PADDING)


def _read(path: Path, limit_bytes: int | None = None) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(limit_bytes)
    except OSError:
        return b""


def read_int(path: Path) -> int | None:
    """Return the number a file holds, or None if it is missing or holds something else (`max`)."""
    return to_int(read_text(path))


def read_list(path: Path) -> tuple[int, ...]:
    """Return the ids of a list file (`0-3,8`), or none if it is missing or malformed."""
    return to_list(read_text(path))


def to_list(text: str) -> tuple[int, ...]:
    """Return the ids of a list (`0-3,8`), or none if it is malformed."""
    try:
        return parse_list(text)
    except ValueError:
        return ()


def to_int(text: str) -> int | None:
    """Return `text` as a whole number, or None."""
    try:
        return int(text)
    except ValueError:
        return None


def fields(text: str, separator: str | None = None) -> dict[str, str]:
    """Return the first value of each `key separator value` line; None separates at white space."""
    values: dict[str, str] = {}
    for line in _lines(text):
        key, *rest = line.split(separator, 1)
        if rest:
            values.setdefault(key.strip(), rest[0].strip())
    return values


def _lines(text: str) -> list[str]:
    """Return the lines that are not empty. `splitlines` also ends one at a form feed, which names may contain."""
    return [line for line in text.split("\n") if line]


def numbered(directory: Path, prefix: str = "") -> tuple[int, ...]:
    """Return the ids N of the entries named `<prefix>N`, ascending; none if there is no such directory."""
    try:
        names = [entry.name for entry in directory.iterdir()]
    except OSError:
        return ()
    tails = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
    return tuple(sorted(int(tail) for tail in tails if tail.isascii() and tail.isdigit()))


def kilobytes(text: str) -> int:
    """Return the bytes that `24684084 kB` stands for, 0 if it is malformed."""
    return (to_int(text.removesuffix("kB").strip()) or 0) * 1024


def parse_list(text: str) -> tuple[int, ...]:
    """Return the listed ids, ascending and each once. Raises ValueError if `text` is no such list."""
    ids: set[int] = set()
    for part in filter(None, map(str.strip, text.split(","))):
        first, dash, last = part.partition("-")
        ids.update(range(int(first), int(last if dash else first) + 1))
    return tuple(sorted(ids))


def format_list(ids: Iterable[int]) -> str:
    """Return the shortest list that `parse_list` reads back; an empty string for no ids."""
    runs: list[list[int]] = []
    for number in sorted(set(ids)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def shortened_list(ids: Iterable[int], most: int = 8) -> str:
    """Return a list for people: `0-3,8 and 12 more` if it has more than `most` runs."""
    numbers = sorted(set(ids))
    runs = format_list(numbers).split(",")
    shown = ",".join(runs[:most])
    return shown if len(runs) <= most else f"{shown} and {len(numbers) - len(parse_list(shown))} more"


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system: its `kind`, the part of it that is `shown` at `point`, and its own options."""

    kind: str
    shown: str
    point: Path
    options: frozenset[str]


def mounted_systems(root: Path = Path("/")) -> list[Mount]:
    """Return the mounts in this process's namespace, in the order of proc_pid_mountinfo(5)."""
    mounted = []
    for line in _lines(os.fsdecode(_read(root / "proc/self/mountinfo"))):
        before, dash, after = line.partition(" - ")
        left, right = before.split(" "), after.split(" ")
        if dash and len(left) >= 5 and len(right) >= 3:
            shown, point = (re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), path) for path in left[3:5])
            mounted.append(Mount(right[0], shown, root / point.lstrip("/"), frozenset(right[2].split(","))))
    return mounted


@dataclass(frozen=True, slots=True)
class Process:
    """A process; `start_ticks` count from boot, `exit_code` is a dead process's status in the form of waitpid(2).

    `waited_ticks` is the processor time of all ended descendants that were waited for.
    """

    name: str
    parent: int
    state: str
    start_ticks: int
    exit_code: int
    waited_ticks: int


def process_of(pid: int) -> Process | None:
    """Return a process, also a zombie; None if it is gone or hidden from us."""
    head, _, tail = read_text(Path(f"/proc/{pid}/stat")).rpartition(")")
    words = tail.split()
    if len(words) < 20:
        return None
    # Numbered as in proc_pid_stat(5): state 3, ppid 4, cutime 16, cstime 17, starttime 22, exit_code 52.
    field = dict(enumerate(words, 3))
    parent, user, system, start, exit_code = (to_int(field.get(number, "")) or 0 for number in (4, 16, 17, 22, 52))
    return Process(head.partition("(")[2], parent, field[3], start, exit_code, user + system)


def start_ticks(pid: int) -> int | None:
    """Return the start of a process in clock ticks after boot; None if it is gone, dead, or hidden from us."""
    process = process_of(pid)
    return None if process is None or process.state in "ZX" else process.start_ticks


def parent_of(pid: int) -> int | None:
    """Return the parent of a process, also of a zombie; None if it is gone or hidden from us."""
    process = process_of(pid)
    return None if process is None else process.parent


def status_of(pid: int) -> dict[str, str]:
    """Return the lines of a process's status by their names (proc_pid_status(5)); none if it is gone."""
    return fields(read_text(Path(f"/proc/{pid}/status")), ":")


def awaits_sigkill(pid: int) -> bool:
    """Return whether a process has yet to die of SIGKILL, as one that cgroup v1's freezer holds until it is thawed."""
    status = status_of(pid)
    pending = (int(status.get(name, "0"), 16) for name in ("SigPnd", "ShdPnd"))
    return any(mask >> (signal.SIGKILL - 1) & 1 for mask in pending)


def described(pid: int) -> str:
    """Return a process in words: `pid 12 (bash)`."""
    if pid == 0:
        return "a process of another PID namespace"
    process = process_of(pid)
    return f"pid {pid} ({process.name})" if process else f"pid {pid}"
