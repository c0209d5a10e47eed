"""Both backends by cgroups against kernels that answer something else than was asked, lack files, or refuse."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest

from cotenant.isolation.backend import NotIsolatedError
from cotenant.isolation.slices import PIDS_MAX
from isolation.entering import MIB
from isolation.fakekernel import PLANNED, FaultyFiles

LIMIT = 64 * MIB


@pytest.mark.parametrize(
    ("name", "lacking", "unenforced"),
    [
        ("kernel", [], ()),
        ("kernel", ["memory.memsw.limit_in_bytes"], ("swap",)),
        (
            "kernel",
            ["cpuset.effective_cpus", "cpuset.effective_mems", "memory.stat", "memory.oom_control"],
            (),
        ),
        ("v2_kernel", ["memory.swap.max"], ("swap",)),
        ("v2_kernel", ["memory.oom.group"], ()),
        ("v2_kernel", ["cgroup.kill"], ()),
    ],
)
def test_a_slice_is_what_was_planned_on_an_older_kernel_too(
    name: str, lacking: list[str], unenforced: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    kernel: FaultyFiles = request.getfixturevalue(name)
    kernel.lacks(*lacking)
    backend = kernel.opened()
    assert backend.unenforced == unenforced
    back = backend.create(PLANNED).verify()
    assert (back.processors, back.nodes, back.memory_bytes, back.pids_max) == ("2-3", "1", LIMIT, str(PIDS_MAX))
    assert back.memory_and_swap_bytes == (None if unenforced else LIMIT)
    assert back.oom_group == (None if name == "kernel" or "memory.oom.group" in lacking else "1")
    with pytest.raises(NotIsolatedError, match=r"the slice of tenant 0 cannot be made: .*File exists"):
        backend.create(PLANNED)
    assert kernel.at("memory").is_dir()
    backend.close()
    assert kernel.directories() == []


WRONG = {
    "v1": [
        ("cpuset", "cpuset.effective_cpus", "2", "processors 2-3, but {} holds 2"),
        ("cpuset", "cpuset.effective_cpus", "", "processors 2-3, but {} holds "),
        ("cpuset", "cpuset.effective_mems", "0-1", "nodes 1, but {} holds 0-1"),
        ("memory", "memory.limit_in_bytes", "4096", "bytes of memory 67108864, but {} holds 4096"),
        ("memory", "memory.memsw.limit_in_bytes", "8192", "bytes of memory and swap 67108864, but {} holds 8192"),
        ("memory", "memory.stat", "hierarchical_memory_limit 12288", "bytes of memory 67108864, but {} holds 12288"),
        ("memory", "memory.limit_in_bytes", "lots", "'lots'"),
        ("pids", "pids.max", "max", "processes 16384, but {} holds max"),
    ],
    "v2": [
        ("", "cpuset.mems.effective", "0-1", "nodes 1, but {} holds 0-1"),
        ("", "memory.max", "4096", "bytes of memory 67108864, but {} holds 4096"),
        ("", "memory.max", "max", "bytes of memory 67108864, but {} holds None"),
        ("", "../../memory.max", "8192", "bytes of memory 67108864, but {} holds 8192"),
        ("", "memory.swap.max", "4096", "bytes of memory and swap 67108864, but {} holds 67112960"),
        ("", "memory.swap.max", "max", "'max'"),
        ("", "memory.max", "lots", "'lots'"),
        ("", "pids.max", "max", "processes 16384, but {} holds max"),
        ("", "memory.oom.group", "0", "memory.oom.group 1, but {} holds 0"),
    ],
}
"""By backend: controller, file, what it says, and how the sentence about it ends."""


def test_another_answer_than_planned(either: FaultyFiles) -> None:
    live = either.opened().create(PLANNED)
    for controller, name, answer, words in WRONG[either.opened_by]:
        file = (either.at(controller) / name).resolve()
        before = file.read_text().strip()
        live.verify()
        either.put(file, answer)
        with pytest.raises(NotIsolatedError, match=f"{re.escape(words.format(either.at(controller)))}$"):
            live.verify()
        change, *_ = live.changes(())
        assert change.endswith(f"{words.format(either.at(controller))} now") or "cannot be read any more" in change
        either.put(file, before)
    assert live.changes(()) == []
    peak = either.at("memory") / ("memory.max_usage_in_bytes" if either.opened_by == "v1" else "memory.peak")
    either.put(peak, 2 * LIMIT)
    assert live.changes(()) == [f"tenant 0 was planned with bytes of memory {LIMIT}, but has held {2 * LIMIT}"]


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENODEV, errno.EOPNOTSUPP, errno.EIO])
def test_a_counter_that_cannot_be_read_is_not_counted(number: int, either: FaultyFiles) -> None:
    live = either.opened().create(PLANNED)
    before = set(live.counters().uncounted())
    for call in range(1000):
        either.fail(call, number)
        counted = live.counters()
        if call >= len(either.calls):
            break
        path = Path(either.calls[call].split()[1])
        # A pressure file has two totals. The throttling of one level of several is not all of it.
        lost = set(counted.uncounted()) - before
        assert len(lost) == (2 if path.suffix == ".pressure" else 1) or not path.exists() or path.name == "cpu.stat"
    assert call >= 8


def test_processes_that_survive_are_named(either: FaultyFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KILL_WAIT_S", "FREEZE_WAIT_S"):
        monkeypatch.setattr(f"cotenant.isolation.group.{name}", 0.01)
    killed: list[int] = []

    def refuse(pid: int, number: int) -> None:
        killed.append(pid)
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    live = either.opened().create(PLANNED)
    either.lacks("cgroup.kill")
    either.inhabit(4000001, 4000002)
    with pytest.raises(NotIsolatedError, match=f"processes 4000001, 4000002 in {either.at('memory')} cannot be killed"):
        live.kill()
    assert set(killed) == {4000001, 4000002}
    frozen = either.at("freezer") / ("freezer.state" if either.opened_by == "v1" else "cgroup.freeze")
    assert frozen.read_text().strip() in ("THAWED", "0")
