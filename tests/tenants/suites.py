"""Suites of torch-free tenants through the real runner, and a search for things that they left behind."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from patience import HANG_S

TENANTS = Path(__file__).resolve().parent
ROOT = TENANTS.parents[1]
RUN = [sys.executable, str(ROOT / "run.py")]
MARK = "COTENANT_TEST"
CGROUPS = Path("/sys/fs/cgroup")
ByJob = dict[str, list[dict[str, Any]]]
PLACES = ("--pid-file", "places")
"""Words by which tenants of rogue.py write down the places that they reach."""
OURS = ("BASE", "DATA_DIRECTORY", "OUTPUT_DIRECTORY", "VENV")


def has_v1() -> bool:
    return os.geteuid() == 0 and all(os.access(CGROUPS / name, os.W_OK) for name in ("cpuset", "memory"))


def until(true: Callable[[], Any], what: str, limit_s: float = HANG_S, seen: Callable[[], object] = lambda: "") -> Any:
    """Poll until `true()`, and return its value."""
    deadline = time.monotonic() + limit_s
    while not (value := true()):
        assert time.monotonic() < deadline, f"not within {limit_s} s: {what} {seen()}"
        time.sleep(0.01)
    return value


def job(
    program: str = "sums.py", *words: str | float, name: str = "job", group: str = "student", **more: Any
) -> dict[str, Any]:
    """A job of one of the programs beside this file, with these words for arguments."""
    args: dict[str, Any] = {}
    flag = None
    for word in map(str, words):
        if word.startswith("--"):
            flag = word
            args[flag] = ""
        elif flag is None:
            args[word] = ""
        else:
            args[flag] = f"{args[flag]} {shlex.quote(word)}".strip()
    return {"name": name, "cmd": str(TENANTS / program), "args": args | more.pop("args", {}), "cgroup": group, **more}


def rogue(name: str, at: str, *deed: str | int, who: int | None = 0, **more: Any) -> dict[str, Any]:
    """A job of two tenants or more, of which one, or each, does a deed of rogue.py at this place."""
    whose = () if who is None else ("--who", who)
    return job("rogue.py", *whose, "--at", at, "--do", *deed, name=name, **more)


def found(record: dict[str, Any], rule: str) -> list[dict[str, Any]]:
    """The findings of this rule in a record."""
    return [finding for finding in record["findings"] if finding["rule"] == rule]


def errors(record: dict[str, Any]) -> set[str]:
    """The rules of a record's errors."""
    return {finding["rule"] for finding in record["findings"] if finding["severity"] == "error"}


def processor_share(record: dict[str, Any], item_s: float) -> float:
    """The processor time of a tenant beside others, as a part of the `item_s` that each of its items takes.

    Of one start alone it would be a sixth of six; readings between which it is interpolated are up to a second apart.
    """
    rows, seen = record["observations"], record["meters"]["beside"][record["tenant"]]
    spun_s = sum(row["items"] for row in rows) * item_s
    share: float = seen["own"] / (spun_s * 1e9 / sum(row["end_ns"] - row["start_ns"] for row in rows))
    return share


class Suites:
    """One folder, base and lock: `leftovers()` lists the things that its runs left."""

    def __init__(self, folder: Path, short: Path, name: str, isolation: str) -> None:
        self.folder, self.short, self.name, self.isolation = folder, short, name, isolation
        self.base = folder / "base"
        self.before = [sys.executable]
        """The words before the program: an interpreter, and before it a command that becomes another user."""
        self.output = self.base / "output"
        self.environment = {name: value for name, value in os.environ.items() if name not in OURS} | {
            "BASE": str(self.base),
            "COTENANT_LOCK": str(folder / "lock"),
            "TMPDIR": str(short),
            MARK: name,
            # Without cgroups nothing could find a process without a marker again.
            "COTENANT_LEAVE_UNMARKED": "yes" if isolation == "v1" else "no",
        }

    def jobs(self, jobs: list[dict[str, Any]], stem: str = "jobs") -> Path:
        path = self.folder / f"{stem}.json"
        path.write_text(json.dumps(jobs))
        return path

    def line(self, jobs: list[dict[str, Any]] | None, *flags: object, command: Sequence[str] = ()) -> list[str]:
        """Return a command line; of a job file it measures no baseline where none is asked for, as blocks last long."""
        line = [*self.before, str(ROOT / "run.py"), *command, "--cgroup-base", self.name, "--isolation", self.isolation]
        asked = command or {"--baseline", "--mix", "--pairs"}.intersection(map(str, flags))
        if jobs is not None:
            line += ["--jobs", str(self.jobs(jobs)), *([] if asked else ["--baseline", "none"])]
        return [*line, *map(str, flags)]

    def run(
        self,
        jobs: list[dict[str, Any]] | None,
        *flags: object,
        limit_s: float = HANG_S,
        status: int | None = None,
        **env: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run a suite to its end, with this exit status where one is named."""
        return self.typed(self.line(jobs, *flags), limit_s, status, **env)

    def executes(
        self,
        *words: object,
        flags: str = "--baseline none --budget 1",
        users: int = 2,
        limit_s: float = HANG_S,
        status: int | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run copies of a command to their end, with this exit status where one is named."""
        line = [*RUN, "exec", "--isolation", self.isolation, "--users", str(users)]
        line += ["--cgroup-base", self.name, *flags.split(), "--", *map(str, words)]
        return self.typed(line, limit_s, status)

    def typed(
        self, line: list[str], limit_s: float, status: int | None = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command line here to its end, with this exit status where one is named."""
        environment = self.environment | env
        ended = subprocess.run(
            line, env=environment, cwd=self.folder, capture_output=True, text=True, timeout=limit_s, check=False
        )
        assert status in (None, ended.returncode), f"it ended with {ended.returncode}: {ended.stdout}{ended.stderr}"
        return ended

    def start(
        self, jobs: list[dict[str, Any]], *flags: object, command: Sequence[str] = (), **env: str
    ) -> "subprocess.Popen[str]":
        """Start a suite, or another command; its output goes to files, so that nobody waits for a pipe."""
        line = self.line(jobs, *flags, command=command)
        with (self.folder / "stdout").open("w") as out, (self.folder / "stderr").open("w") as err:
            return subprocess.Popen(
                line, env=self.environment | env, cwd=self.folder, stdout=out, stderr=err, text=True
            )

    def at_place(self, place: str, users: int) -> None:
        """Wait until so many users have reached a place of rogue.py."""
        places = self.folder / PLACES[1]
        until(lambda: places.exists() and places.read_text().split().count(place) == users, f"all at {place}")

    def said(self) -> str:
        return (self.folder / "stdout").read_text() + (self.folder / "stderr").read_text()

    def summary(self) -> list[str]:
        """The lines of its summary, one a launch and the last of all."""
        return (self.output / "summary.txt").read_text().splitlines()

    def records(self) -> list[dict[str, Any]]:
        """Every record, by launch and tenant."""
        records = [json.loads(path.read_text()) for path in self.output.glob("*.json")]
        return sorted(records, key=lambda record: (record["end_time"], record["tenant"]))

    def by_job(self) -> ByJob:
        """The records of each job's launches, by tenant."""
        jobs: ByJob = {}
        for record in self.records():
            jobs.setdefault(record["name"], []).append(record)
        return jobs

    def outcomes(self) -> list[str]:
        return [record["outcome"] for record in self.records()]

    def log(self, stem: str = "job", tenant: int | str = 0) -> str:
        """The log of a tenant of the only repetition there is; `0.rank1` is that of one of its ranks."""
        (path,) = (self.output / "logs").glob(f"{stem}.R*.T{tenant}.log")
        return path.read_text()

    def processes(self) -> list[int]:
        """Living processes that were started from here, whatever they became."""
        marker = f"{MARK}={self.name}".encode()
        return [pid for pid in _pids() if marker in _read(pid, "environ").split(b"\0") and _alive(pid)]

    def here(self) -> list[int]:
        """Processes that work in our folder, whatever variables they have dropped."""
        return [pid for pid in _pids() if _directory(pid) == self.folder]

    def cgroups(self) -> list[Path]:
        return [path for path in CGROUPS.glob(f"*/{self.name}") if path.is_dir()]

    def inhabitants(self) -> set[int]:
        """The processes in our cgroups: also those without any of our variables."""
        found: set[int] = set()
        for path in CGROUPS.glob(f"memory/{self.name}/*/*/cgroup.procs"):
            try:
                found |= {int(line) for line in path.read_text().split()}
            except OSError:
                continue
        return found

    def directories(self) -> list[Path]:
        return [*self.short.iterdir(), *self.base.glob("tmp/*")]

    def half_written(self) -> list[Path]:
        """Temporary files, and records that are not JSON."""
        bad = list(self.output.rglob(".*"))
        for path in self.output.rglob("*.json"):
            try:
                json.loads(path.read_text())
            except ValueError:
                bad.append(path)
        return bad

    def gone(self, limit_s: float) -> None:
        """Wait until nothing is left."""
        until(lambda: not self.leftovers(), "nothing is left", limit_s, self.leftovers)

    def destroy(self) -> None:
        """Remove by force the processes and files of a failed test."""
        for pid in {*self.processes(), *self.inhabitants()}:
            os.kill(pid, signal.SIGKILL)
        for base in self.cgroups():
            until(lambda: not self.inhabitants(), "the cgroups are empty")
            for directory in sorted([base, *base.glob("*"), *base.glob("*/*")], reverse=True):
                if directory.is_dir():
                    directory.rmdir()

    def leftovers(self) -> list[object]:
        return [*map(command, self.processes()), *self.cgroups(), *self.directories(), *self.half_written()]


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _directory(pid: int) -> Path | None:
    try:
        return Path(f"/proc/{pid}/cwd").readlink()
    except OSError:
        return None


def _alive(pid: int) -> bool:
    return _read(pid, "stat").rpartition(b")")[2].split()[:1] not in ([], [b"Z"], [b"X"])


def script(path: Path, *lines: str) -> Path:
    """Write an executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


SUMS = f"exec {shlex.quote(str(TENANTS / 'sums.py'))}"
"""The last line of a script that is a benchmark."""


def with_data(folder: Path, *lines: str, then: str = "exit 9") -> list[dict[str, Any]]:
    """A job that reads the data directory, with a maker of these lines."""
    script(folder / "bench/pytorch/run.sh", then)
    script(folder / "bench/download_dataset.sh", *lines)
    return [{"name": "d", "cmd": "bench/pytorch/run.sh", "args": {"--data": "$DATA_DIRECTORY/x"}, "cgroup": "student"}]


def command(pid: int) -> str:
    return _read(pid, "cmdline").replace(b"\0", b" ").decode()
