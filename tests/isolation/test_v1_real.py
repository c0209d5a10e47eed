"""Backend v1 on the real kernel: the plan holds, no process runs outside its slice, and nothing is left."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cgroupspy.nodes import Node

from cotenant.isolation.backend import NotIsolatedError
from cotenant.isolation.runs import FIRST_NAMESPACE, RunName, pid_namespace
from cotenant.isolation.v1 import V1
from cotenant.procfs import start_ticks
from isolation.adversaries import ADVERSARIES
from isolation.conftest import in_its_own_namespace
from isolation.entering import MIB, eventually, is_dead, numbers, sleeper, started
from isolation.v2_checks import OF_V1_TOO, Pair, inside, two_slices
from patience import HANG_S

pytestmark = pytest.mark.v1
Mounts = dict[str, Path]


@pytest.fixture
def opened(v1_mounts: Mounts, v1_base: str) -> Iterator[V1]:
    backend = V1(v1_mounts, v1_base)
    assert backend.probe() is None
    backend.open(RunName())
    yield backend
    backend.close()


@pytest.fixture
def pair(v1_mounts: Mounts) -> Pair:
    return two_slices(v1_mounts["cpuset"] / "cpuset.mems")


def directories(mounts: Mounts, path: str) -> list[Path]:
    """The hierarchies' directories of a cgroup that are there."""
    return [mount / path for mount in mounts.values() if (mount / path).exists()]


@pytest.mark.parametrize("check", OF_V1_TOO)
def test_what_v2_is_asked_too(
    check: Callable[[V1, Pair], None], opened: V1, pair: Pair, v1_mounts: Mounts, v1_base: str
) -> None:
    assert opened.unenforced == ()
    check(opened, pair)
    opened.close()
    assert directories(v1_mounts, v1_base) == []


def test_an_independent_witness_reads_the_same(opened: V1, pair: Pair, v1_mounts: Mounts, v1_base: str) -> None:
    def controller(name: str, tenant: int) -> object:
        node = Node(str(v1_mounts[name].parent))
        for part in (v1_mounts[name].name, v1_base, str(RunName()), f"t{tenant}"):
            node = Node(part, node)
        return node.controller

    for planned in pair:
        live = opened.create(planned)
        cpuset, memory = controller("cpuset", planned.tenant), controller("memory", planned.tenant)
        assert cpuset.cpus == set(planned.processors)
        assert cpuset.mems == set(planned.nodes)
        assert memory.limit_in_bytes == planned.memory_bytes
        assert memory.memsw_limit_in_bytes == planned.memory_bytes
        with started(live.entry, "sleep", "1000") as shim:
            assert shim.says() == "in"
            assert cpuset.tasks == [shim.process.pid]
            assert memory.tasks == [shim.process.pid]


def test_processors_outside_the_parent_are_refused(opened: V1, pair: Pair, v1_mounts: Mounts, v1_base: str) -> None:
    parent = v1_mounts["cpuset"] / v1_base / str(RunName())
    (parent / "cpuset.cpus").write_text(str(pair[0].processors[0]))
    with pytest.raises(NotIsolatedError, match=r"on writing '\d+': '.*/t1/cpuset.cpus'"):
        opened.create(pair[1])
    assert directories(v1_mounts, f"{v1_base}/{RunName()}/t1") == []


def test_counters_count_what_ran_inside(opened: V1, pair: Pair) -> None:
    live = opened.create(pair[0])
    assert live.counters().processor_ns == 0
    # What it used before it entered is not counted inside.
    burn = """from time import process_time as used_s, sleep
began_s = used_s()
while used_s() < began_s + 0.1: pass
print(flush=True)
sleep(1000)"""
    with started(live.entry, sys.executable, "-c", burn) as shim:
        shim.go()
        shim.output.readline()
        counted, used_bytes = live.counters(), live.memory_used_bytes()
    assert (counted.processor_ns or 0) >= 80_000_000
    assert MIB <= (used_bytes or 0) <= (counted.memory_peak_bytes or 0)
    assert counted.pids == 1
    assert counted.oom_kills == 0


@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_kill_ends_everything(
    adversary: str, opened: V1, pair: Pair, v1_mounts: Mounts, v1_base: str, tmp_path: Path
) -> None:
    count, program = ADVERSARIES[adversary]
    live = opened.create(dataclasses.replace(pair[0], memory_bytes=1024 * MIB))
    tops = [file.parent for file in live.entry.procs_files]
    # Without a mount namespace its cgroups are writable.
    entry = dataclasses.replace(live.entry, shm_bytes=0)
    with started(entry, sys.executable, "-c", program, tmp_path / "pids", *tops) as shim:
        shim.go()
        eventually(lambda: len(numbers(tmp_path / "pids")) == count, f"{count} processes")
        if adversary == "stopped":
            os.waitid(os.P_PID, shim.process.pid, os.WSTOPPED | os.WNOWAIT)
        if adversary == "frozen by itself":
            frozen = v1_mounts["freezer"] / v1_base / str(RunName()) / "t0/a/freezer.state"
            eventually(lambda: frozen.read_text() == "FROZEN\n", "a frozen process")
        live.kill()
        assert inside(live) == set()
    eventually(lambda: all(map(is_dead, numbers(tmp_path / "pids"))), "the end of every process")
    live.remove()
    live.kill()
    live.remove()
    assert live.counters().oom_kills is None
    assert directories(v1_mounts, f"{v1_base}/{RunName()}/t0") == []


def test_a_slice_in_use_is_not_removed_but_killed_while_frozen(
    opened: V1, pair: Pair, v1_mounts: Mounts, v1_base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cotenant.isolation.cgroupfs.REMOVE_WAIT_S", 0.01)
    monkeypatch.setattr("cotenant.isolation.group.FREEZE_WAIT_S", HANG_S)
    live = opened.create(pair[0])
    state = v1_mounts["freezer"] / v1_base / str(RunName()) / "t0/freezer.state"
    seen = []
    end = os.kill

    def kill(pid: int, number: int) -> None:
        seen.append(state.read_text())
        end(pid, number)

    with started(live.entry, "sleep", "1000") as shim:
        assert shim.says() == "in"
        with pytest.raises(NotIsolatedError) as caught:
            live.remove()
        assert shim.alive
        monkeypatch.setattr(os, "kill", kill)
        live.kill()
        monkeypatch.undo()
        assert shim.result()[0] == -signal.SIGKILL
    for file in live.entry.procs_files:
        assert f"{file.parent} cannot be removed: Device or resource busy" in str(caught.value)
    assert set(seen) == {"FROZEN\n"}
    assert state.read_text() == "THAWED\n"


def test_a_process_in_some_of_the_hierarchies_dies_too(opened: V1, pair: Pair) -> None:
    live = opened.create(pair[0])
    half = dataclasses.replace(live.entry, procs_files=live.entry.procs_files[:3])
    with started(half, "sleep", "1000") as shim:
        assert shim.says() == "in"
        live.kill()
        assert shim.result()[0] == -signal.SIGKILL


def test_without_a_freezer(v1_mounts: Mounts, v1_base: str, pair: Pair) -> None:
    backend = V1({name: v1_mounts[name] for name in ("cpuset", "memory")}, v1_base)
    assert backend.unenforced == ("pids",)
    backend.open(RunName())
    live = backend.create(pair[0])
    assert live.verify().pids_max is None
    with started(live.entry, "sh", "-c", "sleep 1000 & sleep 1000") as shim:
        shim.go()
        eventually(lambda: len(inside(live)) == 3, "three processes")
        live.kill()
        # Unfrozen, the shell may see the death of its child before its own.
        assert shim.result()[0] in (-signal.SIGKILL, 128 + signal.SIGKILL)
    assert live.counters().processor_ns is None
    backend.close()
    assert directories(v1_mounts, v1_base) == []


def test_open_sweeps_a_dead_run_and_leaves_a_live_one(
    v1_mounts: Mounts, v1_base: str, pair: Pair, dead_run: RunName
) -> None:
    dead, living = V1(v1_mounts, v1_base), V1(v1_mounts, v1_base)
    with sleeper() as other:
        name = RunName(other.pid, start_ticks(other.pid) or 0)
        living.open(name)
        dead.open(dead_run)
        left, kept = dead.create(pair[0]), living.create(pair[1])
        # Half removed, as by a runner that was killed on its way out.
        dead.create(pair[1])
        (v1_mounts["memory"] / v1_base / str(dead_run) / "t1").rmdir()
        with started(left.entry, "sleep", "1000") as lost, started(kept.entry, "sleep", "1000") as guest:
            assert lost.says() == guest.says() == "in"
            backend = V1(v1_mounts, v1_base)
            backend.open(RunName())
            assert lost.result()[0] == -signal.SIGKILL
            assert guest.alive
            assert inside(kept) == {guest.process.pid}
            assert directories(v1_mounts, f"{v1_base}/{dead_run}") == []
            backend.close()
            assert len(directories(v1_mounts, f"{v1_base}/{name}")) == len(v1_mounts)
            living.close()
    assert directories(v1_mounts, v1_base) == []


def test_an_ended_run_in_another_pid_namespace_is_swept(v1_mounts: Mounts, v1_base: str, tmp_path: Path) -> None:
    """As of a container with which we share the base: its runner has another number here, and no slice for now."""
    backend = V1(v1_mounts, v1_base)
    with in_its_own_namespace(tmp_path / "up") as inner:
        name = RunName(1, start_ticks(inner) or 0, pid_namespace(inner))
        V1(v1_mounts, v1_base).open(name)
        assert backend.sweep() == []
        assert set(backend.elsewhere()) == set(directories(v1_mounts, f"{v1_base}/{name}"))
    eventually(lambda: is_dead(inner), "its end")
    # From within a container nothing shows that it has ended.
    if pid_namespace() == FIRST_NAMESPACE:
        assert backend.sweep() == [str(name)]
    backend.clear_run(str(name))
    assert directories(v1_mounts, v1_base) == []


def test_a_base_by_another_name_stays(v1_mounts: Mounts, v1_base: str, pair: Pair) -> None:
    for mount in v1_mounts.values():
        (mount / v1_base / "theirs").mkdir(parents=True)
    backend = V1(v1_mounts, f"{v1_base}/theirs")
    assert backend.probe() is None
    for name in ("cpuset.cpus", "cpuset.mems"):
        text = (v1_mounts["cpuset"] / name).read_text()
        for place in (v1_base, f"{v1_base}/theirs"):
            (v1_mounts["cpuset"] / place / name).write_text(text)
    backend.open(RunName())
    backend.create(pair[0]).verify()
    backend.close()
    theirs = directories(v1_mounts, f"{v1_base}/theirs")
    assert len(theirs) == len(v1_mounts)
    assert not [path for directory in theirs for path in directory.iterdir() if path.is_dir()]
