"""Real v1 cgroups, in a base of the tests' own that is gone afterwards; and a dead run's name."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from cotenant.isolation import runs, v2tree
from cotenant.isolation.runs import RunName
from cotenant.isolation.v1 import NEEDED, WANTED
from cotenant.machine.limits import cgroup_mounts
from cotenant.procfs import start_ticks
from isolation.entering import eventually, is_sleeping
from isolation.fakekernel import FakeKernel, FaultyFiles, Make
from isolation.fakev2 import FakeV2, MakeV2


@pytest.fixture
def v1_mounts() -> dict[str, Path]:
    """Where each v1 controller is mounted. Without them the test is skipped, but in CI it fails."""
    mounts = {name: path for name, path in cgroup_mounts().v1.items() if name in NEEDED + WANTED}
    missing = [name for name in NEEDED + WANTED if name not in mounts or not os.access(mounts[name], os.W_OK)]
    if missing:
        reason = f"v1 cgroups cannot be made here: {', '.join(missing)} not mounted or not writable"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return mounts


@pytest.fixture
def v1_base(v1_mounts: dict[str, Path]) -> Iterator[str]:
    """A base directly below each root; whatever a failed test leaves in it is ended and removed."""
    base = f"cotenant-test.{os.getpid()}"
    yield base
    tops = [mount / base for mount in v1_mounts.values()]
    eventually(lambda: not _kill(tops), "the end of what a test left in its cgroups")
    for top in tops:
        for level, _, _ in os.walk(top, topdown=False):
            eventually(lambda level=Path(level): _removed(level), f"the removal of {level}")


@pytest.fixture
def dead_run() -> RunName:
    """The name of a run whose runner has ended."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        name = RunName(process.pid, start_ticks(process.pid) or 0)
        process.kill()
    return name


@pytest.fixture
def run_elsewhere(dead_run: RunName, monkeypatch: pytest.MonkeyPatch) -> RunName:
    """The name of a run in a PID namespace that cannot be seen from this one."""
    monkeypatch.setattr(runs, "FIRST_NAMESPACE", 0)
    return replace(dead_run, namespace=1)


@pytest.fixture
def fake_root(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a fake is made. Not in /dev/shm: a suite elsewhere on this machine reports new files there."""
    monkeypatch.setattr("cotenant.isolation.cgroupfs.REMOVE_WAIT_S", 0.01)
    for name in ("group.FREEZE_WAIT_S", "group.AT_ONCE_S", "v2tree.ARRIVAL_WAIT_S"):
        monkeypatch.setattr(f"cotenant.isolation.{name}", 0.01)
    monkeypatch.setattr("cotenant.isolation.slices.user_room", lambda: None)
    with tempfile.TemporaryDirectory() as root:
        yield Path(root)
        monkeypatch.undo()


@pytest.fixture
def make_kernel(fake_root: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    return lambda *controllers: FakeKernel(fake_root, monkeypatch, *[controllers] if controllers else [])


@pytest.fixture
def kernel(make_kernel: Make) -> FakeKernel:
    return make_kernel()


@pytest.fixture
def make_v2(fake_root: Path, monkeypatch: pytest.MonkeyPatch) -> MakeV2:
    """Makes a fake of cgroup v2, on a host where systemd is not asked for scopes."""
    monkeypatch.setattr(v2tree, "SYSTEMD", Path("/"))
    monkeypatch.setattr("cotenant.isolation.scope.may_be_asked_for", lambda mounts: False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    return lambda *own: FakeV2(fake_root, monkeypatch, *own)


@pytest.fixture
def v2_kernel(make_v2: MakeV2) -> FakeV2:
    return make_v2()


@pytest.fixture(params=["kernel", "v2_kernel"])
def either(request: pytest.FixtureRequest) -> FaultyFiles:
    """A fake of v1, and one of v2."""
    kernel: FaultyFiles = request.getfixturevalue(request.param)
    return kernel


@contextlib.contextmanager
def in_its_own_namespace(noted: Path, variables: Mapping[str, str] | None = None) -> Iterator[int]:
    """Yield the pid outside of a sleeper, whose number inside is 1. `noted` is a file that says that it is there."""
    line = ["unshare", "--pid", "--fork", "--kill-child", "env", *[f"{k}={v}" for k, v in (variables or {}).items()]]
    with subprocess.Popen([*line, "sh", "-c", f"echo up > {noted}; exec sleep 1000"]) as outer:
        try:
            eventually(lambda: noted.exists() or outer.poll() is not None, "a namespace")
            if outer.poll() is not None:
                pytest.skip("PID namespaces cannot be made here")
            children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text()
            (inner,) = (int(word) for word in children.split())
            eventually(lambda: is_sleeping(inner), "a sleeper")
            yield inner
        finally:
            outer.kill()


def _kill(tops: list[Path]) -> set[int]:
    pids: set[int] = set()
    for level in [Path(path) for top in tops for path, _, _ in os.walk(top)]:
        with contextlib.suppress(OSError):
            pids.update(map(int, (level / "cgroup.procs").read_text().split()))
        with contextlib.suppress(OSError):
            (level / "freezer.state").write_text("THAWED")
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return pids


def _removed(level: Path) -> bool:
    with contextlib.suppress(OSError):
        level.rmdir()
    return not level.exists()
