"""Trees of plain files that behave as v1 cgroups do, and fail on the call they are told to; v2 is in fakev2.py."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cotenant.isolation.backend import Backend, NotIsolatedError, Refusal
from cotenant.isolation.runs import RunName
from cotenant.isolation.slices import CgroupBackend
from cotenant.isolation.v1 import V1
from isolation.entering import slice_of

BASE = "cotenant-test"
PLANNED = slice_of(0, [2, 3], nodes=[1])
UNLIMITED = 9223372036854771712
FILES: dict[str, dict[str, object]] = {
    "cpuset": {
        "cpuset.cpus": "",
        "cpuset.mems": "",
        "cpuset.effective_cpus": "",
        "cpuset.effective_mems": "",
    },
    "memory": {
        "memory.limit_in_bytes": UNLIMITED,
        "memory.memsw.limit_in_bytes": UNLIMITED,
        "memory.usage_in_bytes": 2048,
        "memory.max_usage_in_bytes": 4096,
        "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0",
        "memory.stat": f"total_active_file 256\ntotal_inactive_file 512\nhierarchical_memory_limit {UNLIMITED}",
    },
    "cpuacct": {"cpuacct.usage": 7},
    "freezer": {"freezer.state": "THAWED"},
    "pids": {"pids.max": "max", "pids.current": 0},
}


REAL: dict[str, Callable[..., Any]] = {name: getattr(os, name) for name in ("mkdir", "rmdir", "open", "read", "write")}


class FaultyFiles:
    """Plain files below `root`, of which one call fails; subclasses do what a kernel does in the others.

    Each has `opened_by`, the name of its `backend()`; `directories()`, all its cgroups; `at(controller, tenant)`, where
    this controller's files of a slice are; and `inhabit(*pids)`, which puts processes into that of tenant 0. `born` has
    the files of a new directory, `written` a file's text after a write to it, or the kernel's OSError.
    """

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.calls: list[str] = []
        self.fail_at: int | None = None
        self.error: OSError | None = None
        self.without: set[str] = set()
        self.failing = {"mkdir", "rmdir", "open", "write"}
        """The calls that are counted and may fail: a file that is read fails as it is opened, unless `read` is here."""
        for name in REAL:
            patch.setattr(os, name, getattr(self, f"_{name}"))

    def fail(self, call: int, number: int) -> None:
        """Fail on the call with this index, counted from now on, with this errno."""
        self.calls.clear()
        self.fail_at, self.error = call, OSError(number, os.strerror(number))

    def lacks(self, *files: str) -> None:
        """Be a kernel that does not know these files."""
        self.without.update(files)
        for name in files:
            for path in self.root.rglob(name):
                path.unlink()

    def opened(self) -> CgroupBackend:
        """Return the backend in an opened run of this process."""
        backend = self.backend()
        backend.open(RunName())
        return backend

    def _mkdir(self, path: Any, mode: int = 0o777, **kwargs: Any) -> None:
        self._call("mkdir", path)
        REAL["mkdir"](path, mode, **kwargs)
        if self._holds(path):
            for name, text in self.born(Path(path)).items():
                if name not in self.without:
                    self.put(Path(path) / name, text)

    def _rmdir(self, path: Any, **kwargs: Any) -> None:
        self._call("rmdir", path)
        if self._holds(path) and not any(child.is_dir() for child in Path(path).iterdir()):
            for file in Path(path).iterdir():
                file.unlink()
        REAL["rmdir"](path, **kwargs)

    def _open(self, path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if not flags & os.O_WRONLY:
            self._call("open", path)
        return int(REAL["open"](path, flags, *args, **kwargs))

    def _read(self, descriptor: int, size: int) -> bytes:
        self._call("read", _path(descriptor))
        return bytes(REAL["read"](descriptor, size))

    def _write(self, descriptor: int, text: bytes) -> int:
        path = _path(descriptor)
        self._call("write", path)
        if self._holds(path):
            self.put(path, self.written(path, text.decode()))
            return len(text)
        return int(REAL["write"](descriptor, text))

    def _call(self, name: str, path: Any) -> None:
        if name not in self.failing or not self._holds(path):
            return
        self.calls.append(f"{name} {path}")
        if self.error is not None and len(self.calls) - 1 == self.fail_at:
            raise OSError(self.error.errno, self.error.strerror, str(path))

    def _holds(self, path: Any) -> bool:
        return isinstance(path, str | Path) and str(path).startswith(f"{self.root}/")

    def put(self, path: Path, text: object) -> None:
        """Have a file say something, as the kernel would: no call of anybody's."""
        # Not emptied first: closing such a file makes some file systems write it to the disk.
        descriptor = REAL["open"](path, os.O_WRONLY | os.O_CREAT, 0o644)
        os.ftruncate(descriptor, REAL["write"](descriptor, f"{text}\n".encode()))
        os.close(descriptor)


class FakeKernel(FaultyFiles):
    """v1 hierarchies below `root`: a directory is born with its files, and goes with them."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch, controllers: tuple[str, ...] = tuple(FILES)) -> None:
        super().__init__(root, patch)
        self.mounts = {name: root / name for name in controllers}
        self.answers: dict[str, str] = {}
        """The text of a file after any write, by its name."""
        for mount in self.mounts.values():
            os.mkdir(mount)  # noqa: PTH102
        for name in ("cpuset.cpus", "cpuset.effective_cpus"):
            self.put(root / "cpuset" / name, "0-7")
        for name in ("cpuset.mems", "cpuset.effective_mems"):
            self.put(root / "cpuset" / name, "0-1")
        self.calls.clear()

    opened_by = "v1"

    def backend(self) -> V1:
        return V1(self.mounts, BASE)

    def at(self, controller: str, tenant: int = 0) -> Path:
        return self.root / controller / BASE / str(RunName()) / f"t{tenant}"

    def inhabit(self, *pids: int) -> None:
        for controller in self.mounts:
            self.put(self.at(controller) / "cgroup.procs", "\n".join(map(str, pids)))

    def directories(self) -> list[Path]:
        return [path for mount in self.mounts.values() for path in mount.rglob("*") if path.is_dir()]

    def born(self, directory: Path) -> dict[str, object]:
        controller = directory.relative_to(self.root).parts[0]
        return {"cgroup.procs": "", **FILES.get(controller, {})}

    def written(self, path: Path, text: str) -> str:
        effective = path.with_name(path.name.replace("cpuset.", "cpuset.effective_"))
        if effective != path and effective.exists():
            self.put(effective, text)
        return self.answers.get(path.name, text)


def _path(descriptor: int) -> Path:
    return Path(f"/proc/self/fd/{descriptor}").readlink()


Make = Callable[..., FakeKernel]


def refusal(step: Callable[[], object]) -> str | None:
    """Return why a step was refused, or None where it was not."""
    try:
        step()
    except NotIsolatedError as error:
        return str(error)
    return None


def failures(
    kernel: FaultyFiles, number: int, arrange: Callable[[], Callable[[], object]]
) -> Iterator[tuple[str, str | None]]:
    """Arrange a step and fail on its first call, then on its second, until it has no such call and succeeds.

    Yields the call, and why the step was refused, None where it was not.
    """
    for call in itertools.count():
        step = arrange()
        kernel.fail(call, number)
        sentence = refusal(step)
        kernel.error = None
        if call >= len(kernel.calls):
            assert sentence is None
            assert call >= 3
            return
        assert sentence is None or str(kernel.root) in sentence, kernel.calls[call]
        yield kernel.calls[call], sentence


def refused(backend: Backend) -> Refusal:
    """Return why a backend cannot be had here."""
    refusal = backend.probe()
    assert refusal is not None
    return refusal


def reason(backend: Backend) -> str | None:
    refusal = backend.probe()
    return refusal.reason if refusal else None
