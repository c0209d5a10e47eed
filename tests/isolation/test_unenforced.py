"""The backends without cgroups, through the shim."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator

import pytest

from cotenant.isolation.backend import Backend, Counters, ReadBack, SliceEntry
from cotenant.isolation.processes import marked
from cotenant.isolation.runs import RunName
from cotenant.isolation.unenforced import Affinity, NoIsolation
from cotenant.protocol.messages import RUN_VARIABLE, TENANT_VARIABLE
from isolation.entering import eventually, slice_of, started

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


def test_what_they_do_not_hold_is_said() -> None:
    assert (Affinity.name, Affinity.unenforced) == ("affinity", ("nodes", "memory", "swap", "pids"))
    assert (NoIsolation.name, NoIsolation.unenforced) == ("none", ("processors", "nodes", "memory", "swap", "pids"))


def test_they_can_always_be_had(backend: Backend) -> None:
    assert backend.probe() is None


def test_nothing_is_claimed(backend: Backend) -> None:
    live = backend.create(slice_of(0, OWN[:1]))
    assert live.verify() == ReadBack()
    assert live.counters() == Counters()
    assert live.memory_used_bytes() is None
    live.remove()


def test_affinity_binds_to_the_slice() -> None:
    backend = Affinity()
    backend.open(RunName())
    live = backend.create(slice_of(0, OWN[-1:]))
    assert (live.entry.processors, live.entry.set_affinity) == (OWN[-1:], True)
    with started(live.entry, *AFFINITY) as shim:
        assert shim.run() == (0, f"[{OWN[-1]}]\n")


def test_none_leaves_a_tenant_as_it_is() -> None:
    backend = NoIsolation()
    backend.open(RunName())
    live = backend.create(slice_of(0, OWN[-1:]))
    assert live.entry == SliceEntry()
    with started(live.entry, *AFFINITY) as shim:
        assert shim.run() == (0, f"{list(OWN)}\n")


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


def test_close_before_open_is_nothing() -> None:
    Affinity().close()
