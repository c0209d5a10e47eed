"""The backends without cgroups, and new files in a /dev/shm that tenants share."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cotenant.isolation.backend import Backend, Counters, LiveSlice, NotIsolatedError, ReadBack, SliceEntry
from cotenant.isolation.family import Family
from cotenant.isolation.leftovers import new_shared_files, shared_files, thaw
from cotenant.isolation.processes import marked
from cotenant.isolation.runs import RunName
from cotenant.isolation.unenforced import Affinity, NoIsolation
from cotenant.procfs import numbered, process_of
from cotenant.protocol.messages import RUN_VARIABLE, TENANT_VARIABLE
from isolation.entering import AFFINITY, MIB, Entering, eventually, slice_of, started

OWN = tuple(sorted(os.sched_getaffinity(0)))


def environment(tenant: int) -> dict[str, str]:
    return {**os.environ, RUN_VARIABLE: str(RunName()), TENANT_VARIABLE: str(tenant)}


def begin(live: LiveSlice, shim: Entering) -> None:
    live.begin(Family([shim.process.pid]))


BY_EITHER = pytest.mark.parametrize("backend", [Affinity], indirect=True)
"""Marks a test of code that both backends have from one class."""


@pytest.fixture(params=[Affinity, NoIsolation])
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    made: Backend = request.param()
    made.open(RunName())
    yield made
    made.close()


def test_nothing_is_claimed(backend: Backend) -> None:
    assert (Affinity.name, Affinity.unenforced) == ("affinity", ("nodes", "memory", "swap", "pids"))
    assert (NoIsolation.name, NoIsolation.unenforced) == ("none", ("processors", "nodes", "memory", "swap", "pids"))
    assert backend.probe() is None
    live = backend.create(slice_of(0, OWN[:1]))
    assert live.verify() == ReadBack()
    assert live.counters() == Counters()
    assert live.memory_used_bytes() is None
    live.remove()
    type(backend)().close()


def test_affinity_binds_a_tenant_and_none_leaves_it_unchanged(backend: Backend) -> None:
    entries = {"affinity": SliceEntry(processors=OWN[-1:], set_affinity=True), "none": SliceEntry()}
    live = backend.create(slice_of(0, OWN[-1:]))
    assert dataclasses.replace(live.entry, shm_bytes=0) == entries[backend.name]
    with started(live.entry, *AFFINITY) as shim:
        assert shim.run() == (0, f"{list(live.entry.processors or OWN)}\n")


@BY_EITHER
def test_a_tenant_is_stopped_and_killed_with_all_descendants(backend: Backend) -> None:
    first, second = (backend.create(slice_of(i, OWN)) for i in (0, 1))
    assert first.held_by == "stopped"
    # The child would not listen to SIGTERM.
    script = "(trap '' TERM; while :; do sleep 0.01; done) & while :; do :; done"
    with (
        started(first.entry, "sh", "-c", script, environment=environment(0)) as one,
        started(second.entry, "sleep", "1000", environment=environment(1)) as two,
    ):
        for shim in (one, two):
            shim.go()
        begin(first, one)
        eventually(lambda: len(marked(str(RunName()), 0)) >= 3, "two shells and a sleep")
        for _ in range(2):
            first.freeze()
            eventually(first.frozen, "all of it is stopped")
            own = marked(str(RunName()), 0)
            assert {states(pid) for pid in own} <= {"T", "Z", "D"}
            eventually(lambda: states(two.process.pid) == "S", "its neighbour has begun to sleep, and is not stopped")
            first.thaw()
            assert not first.frozen()
        first.freeze()
        eventually(first.frozen, "it is stopped again")
        # As the reaper does for a runner that is stopped.
        thaw(backend.location(), str(RunName()))
        eventually(lambda: not first.frozen(), "it goes on")
        first.freeze()
        first.kill()
        assert marked(str(RunName()), 0) == []
        assert one.result()[0] == -signal.SIGKILL
        assert two.alive
        backend.close()
        assert two.result()[0] == -signal.SIGKILL
        backend.close()


THREADS = """
import os, threading, time
children = [os.fork() for _ in range(2)]
for _ in range(3):
    threading.Thread(target=time.sleep, args=(1000,)).start()
"""


def test_affinity_moves_a_stopped_tenant_with_every_thread(backend: Backend) -> None:
    live = backend.create(slice_of(0, OWN[:1]))
    with started(live.entry, sys.executable, "-c", THREADS, environment=environment(0)) as one:
        one.go()
        begin(live, one)
        eventually(lambda: len(threads()) == 4 * 4, "four processes of four threads")
        for there in (OWN[-1:], OWN[:1]):
            live.freeze()
            eventually(live.frozen, "all of it is stopped")
            live.move(there)
            bound = {tuple(sorted(os.sched_getaffinity(thread))) for thread in threads()}
            assert bound == {there if backend.name == "affinity" else OWN}
            live.thaw()
        if backend.name == "affinity":
            with pytest.raises(NotIsolatedError, match="cannot be moved"):
                live.move([4095])
        live.kill()


def threads() -> list[int]:
    return [thread for pid in marked(str(RunName()), 0) for thread in numbered(Path(f"/proc/{pid}/task"))]


@BY_EITHER
def test_a_parent_waiting_in_vfork_counts_as_frozen(backend: Backend, tmp_path: Path) -> None:
    """vfork(2) has its caller wait in the kernel, where no signal to stop reaches it."""
    source, program = tmp_path / "v.c", tmp_path / "v"
    source.write_text("#include <unistd.h>\nint main(void) { if (!vfork()) for (;;) usleep(1000); return 0; }\n")
    if shutil.which("cc") is None or subprocess.run(["cc", "-w", "-o", program, source]).returncode:
        pytest.skip("there is no C compiler here")
    live = backend.create(slice_of(0, OWN))
    with started(live.entry, program, environment=environment(0)) as one:
        one.go()
        begin(live, one)
        eventually(lambda: len(marked(str(RunName()), 0)) == 2, "a program and its child")
        live.freeze()
        eventually(live.frozen, "both are still")
        live.thaw()
        assert not live.frozen()
        live.kill()
        assert one.result()[0] == -signal.SIGKILL


def states(pid: int) -> str:
    process = process_of(pid)
    return "Z" if process is None else process.state


def test_only_new_files_of_this_user_that_hold_memory_count(tmp_path: Path) -> None:
    (tmp_path / "before").write_bytes(bytes(MIB))
    before = shared_files(tmp_path).keys()
    (tmp_path / "before").write_bytes(bytes(2 * MIB))
    (tmp_path / "empty").touch()
    (tmp_path / "below").mkdir()
    (tmp_path / "below/new").write_bytes(b"x" * MIB)
    (tmp_path / "new").write_bytes(b"x" * 3 * MIB)
    (tmp_path / "link").symlink_to(tmp_path / "new")
    assert new_shared_files(before, tmp_path) == {"files": 2, "memory_bytes": 4 * MIB}
    assert new_shared_files(frozenset(), tmp_path / "none") is None
    if os.getuid() == 0:
        os.chown(tmp_path / "new", 65534, 65534)
        assert new_shared_files(before, tmp_path) == {"files": 1, "memory_bytes": MIB}
