"""The backends without cgroups, and what is new in a /dev/shm that tenants share."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cotenant.isolation.backend import Backend, Counters, ReadBack, SliceEntry
from cotenant.isolation.leftovers import new_shared_files, shared_files
from cotenant.isolation.processes import marked
from cotenant.isolation.runs import RunName
from cotenant.isolation.unenforced import Affinity, NoIsolation
from cotenant.protocol.messages import RUN_VARIABLE, TENANT_VARIABLE
from isolation.entering import MIB, eventually, slice_of, started

OWN = tuple(sorted(os.sched_getaffinity(0)))
AFFINITY = [sys.executable, "-c", "import os; print(sorted(os.sched_getaffinity(0)))"]


def environment(tenant: int) -> dict[str, str]:
    return {**os.environ, RUN_VARIABLE: str(RunName()), TENANT_VARIABLE: str(tenant)}


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


def test_affinity_binds_to_the_slice_and_none_leaves_a_tenant_as_it_is() -> None:
    entries = {Affinity: SliceEntry(processors=OWN[-1:], set_affinity=True), NoIsolation: SliceEntry()}
    for kind, entry in entries.items():
        backend = kind()
        backend.close()
        backend.open(RunName())
        live = backend.create(slice_of(0, OWN[-1:]))
        assert dataclasses.replace(live.entry, shm_bytes=0) == entry
        with started(live.entry, *AFFINITY) as shim:
            assert shim.run() == (0, f"{list(entry.processors or OWN)}\n")


def test_kill_ends_one_tenant_and_close_the_others(backend: Backend) -> None:
    first, second = (backend.create(slice_of(i, OWN)) for i in (0, 1))
    # The first leaves a child that no longer has a parent.
    script = "(trap '' TERM; sleep 1000) & sleep 1000"
    with (
        started(first.entry, "sh", "-c", script, environment=environment(0)) as one,
        started(second.entry, "sleep", "1000", environment=environment(1)) as two,
    ):
        for shim in (one, two):
            assert shim.says() == "in"
            shim.release()
        eventually(lambda: len(marked(str(RunName()), 0)) >= 3, "a shell, its child and grandchild")
        first.kill()
        assert marked(str(RunName()), 0) == []
        assert one.result()[0] == -signal.SIGKILL
        assert two.alive
        backend.close()
        assert two.result()[0] == -signal.SIGKILL
        backend.close()


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
