"""Only what is new, ours, held by nobody and shown to be a tenant's is removed."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from cotenant.isolation import shm as module
from cotenant.isolation.backend import RunName
from cotenant.isolation.charge import charges, charges_are_readable
from cotenant.isolation.estate import memory_cgroups
from cotenant.isolation.shm import Files, Leavings, ShmWatch, present
from cotenant.isolation.v1 import V1
from cotenant.protocol.messages import RUN_VARIABLE
from isolation.shim import slice_of, started

MIB = 1 << 20
OWN = 7
"""A cgroup of tenants; FOREIGN is somebody else's."""
FOREIGN = 8

WRITER = """
import mmap, os, sys, time
how, path = sys.argv[1:]
flags = os.O_RDWR if how != "read" else os.O_RDONLY
file = os.open(path, flags)
if how == "mapped":
    held = mmap.mmap(file, 4096)
    os.close(file)
print("holds", flush=True)
time.sleep(1000)
"""


@pytest.fixture
def shm() -> Iterator[Path]:
    with TemporaryDirectory(prefix="cotenant-test-", dir="/dev/shm") as name:
        yield Path(name)


@pytest.fixture
def owners(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[int]]:
    """The kernel's word by a file's name; a tenant's where nothing is said."""
    told: dict[str, set[int]] = {}
    monkeypatch.setattr(module, "charges", lambda path: told.get(path.name, {OWN}))
    monkeypatch.setattr(module, "charges_are_readable", lambda: True)
    return told


def watch(root: Path, *cgroups: int) -> ShmWatch:
    return ShmWatch(str(RunName()), lambda: set(cgroups), root=root)


def removed(files: int, memory_bytes: int) -> Leavings:
    return Leavings(Files(files, memory_bytes), Files())


@contextmanager
def holder(path: Path, how: str, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has a file mapped, or open to `write` or `read`."""
    line = [sys.executable, "-c", WRITER, how, str(path)]
    with subprocess.Popen(line, env=os.environ | variables, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"holds\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.usefixtures("owners")
def test_a_tenants_new_files_are_removed_and_counted_and_older_ones_stay(shm: Path) -> None:
    (shm / "older").write_bytes(b"x")
    watching = watch(shm, OWN)
    (shm / "deep").mkdir()
    (shm / "deep" / "new").write_bytes(bytes(MIB))
    (shm / "torch_77_1").write_bytes(b"x")
    assert watching.clear() == removed(2, MIB + 4096)
    assert sorted(path.name for path in shm.iterdir()) == ["deep", "older"]


def test_what_the_same_user_copies_there_meanwhile_stays_and_is_counted(shm: Path, owners: dict[str, set[int]]) -> None:
    owners |= {"foreign": {FOREIGN}, "mixed": {OWN, FOREIGN}, "unknown": set(), "nobody's": {0}}
    watching = watch(shm, OWN)
    for name in owners:
        (shm / name).write_bytes(bytes(MIB))
    watching.look()
    assert watching.clear() == Leavings(Files(), Files(4, 4 * MIB))
    assert {path.name for path in shm.iterdir()} == set(owners)


def test_without_slices_only_what_a_tenant_could_write_to_at_its_end_is_removed(shm: Path) -> None:
    run = str(RunName())
    watching = ShmWatch(run, set, root=shm)
    names = ("write", "mapped", "read", "stranger", "closed")
    for name in names:
        (shm / name).write_bytes(bytes(MIB))
    held = [(name, {RUN_VARIABLE: run}) for name in names[:3]] + [("stranger", {})]
    holders = [holder(shm / name, name if name in names[:3] else "write", **variables) for name, variables in held]
    with holders[0], holders[1], holders[2], holders[3]:
        watching.look()
    assert watching.clear() == Leavings(Files(2, 2 * MIB), Files(3, 3 * MIB))
    assert {path.name for path in shm.iterdir()} == {"read", "stranger", "closed"}


@pytest.mark.usefixtures("owners")
@pytest.mark.parametrize("how", ["read", "mapped"])
def test_a_file_that_another_process_holds_stays(shm: Path, how: str) -> None:
    watching = watch(shm, OWN)
    (shm / "held").write_bytes(bytes(MIB))
    with holder(shm / "held", how) as process:
        assert watching.clear() == removed(0, 0)
        process.send_signal(signal.SIGKILL)
    assert watching.clear() == removed(1, MIB)


@pytest.mark.usefixtures("owners")
def test_a_link_is_not_followed(shm: Path, tmp_path: Path) -> None:
    watching = watch(shm, OWN)
    (tmp_path / "theirs").write_bytes(b"x")
    (shm / "link").symlink_to(tmp_path / "theirs")
    assert watching.clear() == removed(0, 0)
    assert (tmp_path / "theirs").exists()


@pytest.mark.usefixtures("owners")
@pytest.mark.skipif(os.getuid() != 0, reason="files of another user can only be made by root")
def test_another_users_file_stays(shm: Path) -> None:
    watching = watch(shm, OWN)
    (shm / "theirs").write_bytes(b"x")
    os.chown(shm / "theirs", 65534, 65534)
    assert watching.clear() == removed(0, 0)


@pytest.mark.usefixtures("owners")
def test_a_mapping_of_this_process_counts(shm: Path) -> None:
    watching = watch(shm, OWN)
    path = shm / "own"
    path.write_bytes(bytes(4096))
    with path.open("r+b") as file:
        mapping = mmap.mmap(file.fileno(), 4096)
    assert watching.clear() == removed(0, 0)
    mapping.close()
    assert watching.clear() == removed(1, 4096)


@pytest.mark.usefixtures("owners")
def test_a_million_files_are_not_all_looked_at(shm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "JUDGE_LIMIT_S", 0.0)
    watching = watch(shm, OWN)
    (shm / "one").write_bytes(bytes(MIB))
    assert watching.clear() == Leavings(Files(), Files(1, MIB))


def test_present_needs_no_directory(tmp_path: Path) -> None:
    assert present(tmp_path / "none") == frozenset()
    watching = ShmWatch(str(RunName()), set, root=tmp_path / "none")
    watching.look()
    assert watching.clear() == removed(0, 0)


@pytest.mark.v1
def test_the_kernel_tells_a_tenants_file_from_anothers(v1_mounts: dict[str, Path], v1_base: str, shm: Path) -> None:
    """Also after the slice is gone, and beside the same user's own files."""
    assert charges_are_readable()
    run = RunName()
    backend = V1(v1_mounts, v1_base)
    watching = ShmWatch(str(run), lambda: memory_cgroups(backend.estate(), str(run)), root=shm)
    backend.open(run)
    live = backend.create(slice_of(0, sorted(os.sched_getaffinity(0))[:1]))
    write = f"head -c {3 * MIB} /dev/zero > {shm}/tenant; truncate -s 8M {shm}/tenant; : > {shm}/empty"
    with started(live.entry, "sh", "-c", write) as shim:
        assert shim.run() == (0, "")
    (shm / "copied").write_bytes(bytes(MIB))
    assert charges(shm / "tenant") == {live_inode(v1_mounts, v1_base, run)}
    assert charges(shm / "empty") == set()
    watching.look()
    live.kill()
    live.remove()
    assert watching.clear() == Leavings(Files(1, 3 * MIB), Files(1, MIB))
    assert {path.name for path in shm.iterdir()} == {"copied", "empty"}
    backend.close()
    assert memory_cgroups(backend.estate(), str(run)) == set()


def live_inode(mounts: dict[str, Path], base: str, run: RunName) -> int:
    return (mounts["memory"] / base / str(run) / "t0").stat().st_ino
