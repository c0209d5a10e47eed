"""A tree of plain files that behaves as cgroup v2 does, and fails on the call it is told to.

Its rules: controllers are handed down level by level; a cgroup that hands some down holds no processes, the root
excepted; a cpuset is the written one, else the parent's; processes are in one place; `cgroup.kill` ends them; a cgroup
with children or processes is not removed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cotenant.isolation import v2
from cotenant.isolation.runs import RunName, owner
from cotenant.machine.limits import V2, Mounts
from isolation.fakekernel import FaultyFiles

HOME = f"cotenant.{owner()}"
OFFERED = ("cpuset", "cpu", "io", "memory", "pids")
FILES: dict[str, dict[str, object]] = {
    "cpuset": {"cpuset.cpus": "", "cpuset.mems": ""},
    "cpu": {"cpu.max": "max 100000"},
    "io": {"io.stat": ""},
    "memory": {
        "memory.max": "max",
        "memory.swap.max": "max",
        "memory.oom.group": "0",
        "memory.current": 2048,
        "memory.peak": 4096,
        "memory.stat": "anon 1024\nactive_file 256\ninactive_file 512",
        "memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0",
    },
    "pids": {"pids.max": "max", "pids.current": 0, "pids.peak": 0, "pids.events": "max 0"},
}
NODES, PROCESSORS = "0-1", "0-7"
STALLED = "some avg10=0.00 avg60=0.00 avg300=0.00 total={}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total={}"


class FakeV2(FaultyFiles):
    """A v2 hierarchy mounted at `root/unified`. This process lives in `own`, delegated, with all controllers."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch, own: str = "a.slice/b.scope") -> None:
        super().__init__(root, patch)
        self.mount = root / "unified"
        self.own = self.mount / own
        self.delegated = {self.own}
        self._levels: dict[Path, list[int]] = {}
        """The processes of each cgroup."""
        patch.setattr(os, "getxattr", self._getxattr)
        os.mkdir(self.mount)  # noqa: PTH102
        self.put(self.mount / "cgroup.controllers", " ".join(OFFERED))
        for name in ("cgroup.events", "cgroup.kill", "cgroup.freeze"):
            (self.mount / name).unlink()
        level = self.mount
        for part in Path(own).parts:
            self.hand_down(level, OFFERED)
            level /= part
            os.mkdir(level)  # noqa: PTH102
        self.enter(self.own, os.getpid())
        self.calls.clear()

    @property
    def mounts(self) -> Mounts:
        """The mounts that limits.cgroup_mounts would find."""
        chain = (self.own, *[path for path in self.own.parents if path.is_relative_to(self.mount)])
        return Mounts(v1={}, v2=self.mount, own={V2: self.own}, chains={V2: chain})

    @property
    def run(self) -> Path:
        """The cgroup of a run of this process."""
        return self.own / HOME / str(RunName())

    opened_by = "v2"

    def backend(self) -> v2.V2:
        return v2.V2(self.mounts)

    def at(self, controller: str = "", tenant: int = 0) -> Path:
        return self.run / f"t{tenant}"

    def inhabit(self, *pids: int) -> None:
        self.enter(self.at(), *pids)

    def directories(self) -> list[Path]:
        return [path for path in self.own.rglob("*") if path.is_dir()]

    def place_of(self, pid: int) -> list[Path]:
        """The cgroups that list a process."""
        return [level for level, pids in self._levels.items() if pid in pids]

    def handed(self, level: Path) -> list[str]:
        return (level / "cgroup.subtree_control").read_text().split()

    def hand_down(self, level: Path, names: tuple[str, ...]) -> None:
        """Hand these controllers down, whoever lives there."""
        self.put(level / "cgroup.subtree_control", " ".join(names))
        self._refresh(level)

    def enter(self, directory: Path, *pids: int) -> None:
        """Put processes into a cgroup."""
        self._levels[directory] = list(pids)
        self._populate()

    def born(self, directory: Path) -> dict[str, object]:
        self._levels[directory] = []
        handed = self.handed(directory.parent) if directory != self.mount else []
        files: dict[str, object] = {
            "cgroup.procs": "",
            "cgroup.subtree_control": "",
            "cgroup.controllers": " ".join(handed),
            "cgroup.events": "populated 0\nfrozen 0",
            "cgroup.kill": "",
            "cgroup.freeze": "0",
            "cpu.stat": "usage_usec 7\nuser_usec 7\nsystem_usec 0",
            **{f"{what}.pressure": STALLED.format(3, 2) for what in ("cpu", "memory", "io")},
        }
        return files | self._of(directory, handed)

    def written(self, path: Path, text: str) -> str:
        level = path.parent
        if path.name == "cgroup.subtree_control":
            return self._hand(level, text)
        if path.name == "cgroup.procs":
            return self._enter(level, int(text))
        if path.name == "cgroup.kill":
            for below in [one for one in self._levels if one.is_relative_to(level)]:
                self._levels[below] = []
            self._populate()
            return ""
        if path.name in ("cpuset.cpus", "cpuset.mems"):
            self.put(level / f"{path.name}.effective", text)
        return text

    def _hand(self, level: Path, text: str) -> str:
        sign, name = text[0], text[1:]
        handed = set(self.handed(level))
        if sign == "+":
            if name not in (level / "cgroup.controllers").read_text().split():
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), str(level))
            if self._levels[level] and level != self.mount:
                raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(level))
            handed.add(name)
        else:
            if any(name in self.handed(child) for child in level.iterdir() if child.is_dir()):
                raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(level))
            handed.discard(name)
        self.put(level / "cgroup.subtree_control", " ".join(sorted(handed)))
        self._refresh(level)
        return " ".join(sorted(handed))

    def _enter(self, level: Path, pid: int) -> str:
        if self.handed(level) and level != self.mount:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(level))
        pid = pid or os.getpid()
        for pids in self._levels.values():
            pids[:] = [one for one in pids if one != pid]
        self._levels[level].append(pid)
        self._populate()
        return self._listed(level)

    def _populate(self) -> None:
        for level in self._levels:
            self.put(level / "cgroup.procs", self._listed(level))
            if level != self.mount:
                lives = any(pids for below, pids in self._levels.items() if below.is_relative_to(level))
                self.put(level / "cgroup.events", f"populated {int(lives)}\nfrozen 1")

    def _listed(self, level: Path) -> str:
        return "\n".join(map(str, self._levels[level]))

    def _rmdir(self, path: Any, **kwargs: Any) -> None:
        if self._levels.get(Path(path)):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(path))
        super()._rmdir(path, **kwargs)
        self._levels.pop(Path(path), None)

    def _refresh(self, level: Path) -> None:
        """Give every child the files of the controllers handed down to it now, and take the others away."""
        handed = self.handed(level)
        for child in [path for path in level.iterdir() if path.is_dir()]:
            before = (child / "cgroup.controllers").read_text().split()
            self.put(child / "cgroup.controllers", " ".join(handed))
            known = self._of(child, handed)
            for name, text in known.items():
                is_new = "cpu" not in before if name == "cpu.stat" else not (child / name).exists()
                if name not in self.without and is_new:
                    self.put(child / name, text)
            for name in {name for files in FILES.values() for name in files} - known.keys():
                (child / name).unlink(missing_ok=True)

    def _of(self, directory: Path, handed: list[str]) -> dict[str, object]:
        files = {name: text for controller in handed for name, text in FILES[controller].items()}
        if "cpuset" in handed:
            files |= {f"cpuset.{what}.effective": self._inherited(directory, what) for what in ("cpus", "mems")}
        if "cpu" in handed:
            files["cpu.stat"] = (
                "usage_usec 7\nuser_usec 7\nsystem_usec 0\nnr_periods 0\nnr_throttled 1\nthrottled_usec 5"
            )
        return files

    def _inherited(self, directory: Path, what: str) -> str:
        above = directory.parent / f"cpuset.{what}.effective"
        return above.read_text().strip() if above.exists() else {"cpus": PROCESSORS, "mems": NODES}[what]

    def _getxattr(self, path: object, name: str) -> bytes:
        if Path(str(path)) in self.delegated and name == "user.delegate":
            return b"1"
        raise OSError(errno.ENODATA, os.strerror(errno.ENODATA), str(path))


MakeV2 = Callable[..., FakeV2]
