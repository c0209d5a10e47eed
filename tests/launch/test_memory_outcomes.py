"""Whose memory was full: the kernel's log before its counters, its counters before the exit status."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cotenant.isolation.backend import Counters, ReadBack, SliceEntry
from cotenant.launch.memory import HostKills, KillWatch, out_of_memory
from cotenant.launch.tenant import Tenant
from cotenant.machine.kernel_log import MemoryKill
from tenants.fakes import specs

GIB = 1 << 30
OWN = "/cotenant.root/41-7/t1"


def tenant(killed: int = 1, peak_bytes: int | None = GIB, **state: Any) -> Tenant:
    """Tenant 1 of run 41-7 with a slice of 1 GiB, direct child 900, of which so many were killed."""
    made = SimpleNamespace(
        spec=specs(Path("/none"), "x", "--batch-size", "64")[1],
        live=SimpleNamespace(entry=SliceEntry(procs_files=(Path(f"/sys/fs/cgroup/memory{OWN}/cgroup.procs"),))),
        read_back=ReadBack(memory_bytes=GIB),
        process=SimpleNamespace(pid=900),
        after=Counters(oom_kills=killed, memory_peak_bytes=peak_bytes),
        status=0,
        reason=None,
        ranks={},
    )
    return cast("Tenant", SimpleNamespace(**vars(made) | state))


def logged(limited: str | None, nodes: tuple[int, ...] = (), victim: str = OWN, pid: int = 5) -> HostKills:
    return HostKills(1, (MemoryKill(pid, victim, limited, nodes),))


def counted(kills: int | None = 1, events: int | None = None, peak_bytes: int | None = None) -> Tenant:
    return tenant(after=Counters(oom_kills=kills, oom_events=events, memory_peak_bytes=peak_bytes))


BARE = {"after": Counters(), "status": -9, "read_back": ReadBack(), "live": SimpleNamespace(entry=SliceEntry())}
"""Without a slice the direct child is known by its pid."""
LESS = "Give it less to hold, or fewer users with --users."
UNKNOWN = "the 1.00 GiB of its slice or the host's: no log says which. Try half the batch: -- --batch-size 32"
FOUND = [
    ("its slice", tenant(), logged(OWN), "out_of_memory", "more than the 1.00 GiB of its slice"),
    ("whatever its peak", tenant(peak_bytes=GIB // 2), logged(OWN), "out_of_memory", "more than the 1.00 GiB"),
    ("one below it", tenant(), logged(f"{OWN}/a", victim=f"{OWN}/a"), "out_of_memory", "-- --batch-size 32"),
    ("one below it, uncounted", tenant(killed=0), logged(OWN, victim=f"{OWN}/a"), "out_of_memory", "its slice"),
    ("around us", tenant(), logged("/d/4", victim=f"/d/4{OWN}"), "host_out_of_memory", "the cgroup /d/4, above"),
    ("a node", tenant(), logged(None, (1,)), "host_out_of_memory", "NUMA node 1 was full"),
    ("the host", tenant(), logged(None), "host_out_of_memory", "the host itself was out of memory"),
    # Without a line in the log the counters decide; a peak at the limit leaves open whose memory it was.
    ("at its limit", counted(peak_bytes=GIB), HostKills(), "out_of_memory", UNKNOWN),
    ("no peak is known", counted(), HostKills(), "out_of_memory", UNKNOWN),
    ("below its limit", counted(peak_bytes=GIB // 2), HostKills(), "host_out_of_memory", "larger --reserve"),
    ("counted events", counted(events=2, peak_bytes=GIB // 2), HostKills(), "out_of_memory", "its slice"),
    ("counted none", counted(events=0, peak_bytes=GIB), HostKills(), "host_out_of_memory", "larger --reserve"),
    ("bare, logged", tenant(**BARE), logged(None, victim="/x", pid=900), "host_out_of_memory", "the host itself"),
    ("bare, counted", tenant(**BARE), HostKills(outside=2), "host_out_of_memory", "the host ran out of memory"),
    ("bare, none", tenant(**BARE), HostKills(), None, ""),
    # More were counted in slices than on the host.
    ("bare, fewer than none", tenant(**BARE), HostKills(outside=-1), None, ""),
    # Another's end for memory says nothing of a tenant whose kills are counted.
    ("uncounted", tenant(killed=0, status=-9), HostKills(outside=1), None, ""),
    ("another cgroup", tenant(killed=0, status=-9), logged("/d/4", victim="/d/4"), None, ""),
    ("another's user", tenant(killed=0, status=-9), logged(None, victim="/cotenant.root/41-7/t11"), None, ""),
    ("late", tenant(after=Counters(), status=-9, reason=("timeout", "It was late.")), HostKills(2), None, ""),
]


@pytest.mark.parametrize(
    ("ended", "host", "outcome", "words"), [row[1:] for row in FOUND], ids=[row[0] for row in FOUND]
)
def test_whose_memory_was_full(ended: Tenant, host: HostKills, outcome: str | None, words: str) -> None:
    reason = out_of_memory(ended, host)
    assert (reason[0] if reason else None) == outcome
    assert reason is None or words in reason[1]


def test_half_the_batch_is_of_the_requested_one_or_else_of_the_default_and_where_there_is_no_device() -> None:
    """On a device most of the batch lies there."""
    arguments: Any
    for command, arguments, devices, remedy in [
        (["x", "--batch-size", "64"], {"batch_size": 8}, (), "-- --batch-size 32"),
        (["x", "--batch-size=64", "-b", "48"], {}, (), "-- --batch-size 24"),
        (["x", "--batch-size"], {"batch_size": 64}, (), "-- --batch-size 32"),
        (["x"], {"batch_size": 1}, (), LESS),
        (["x"], {"batch_size": "64"}, (), LESS),
        (["x"], 7, (), LESS),
        (["x", "--batch-size", "64"], {}, ("a device",), LESS),
    ]:
        spec = tenant().spec
        spec = replace(spec, command=command, slice=replace(spec.slice, accelerators=devices))
        full = tenant(spec=spec, ranks={0: SimpleNamespace(work={"arguments": arguments})})
        reason = out_of_memory(full, logged(OWN))
        assert reason is not None
        assert reason[1].endswith(remedy), command


@pytest.mark.parametrize(
    ("killed", "outside"),
    [
        (logged("/docker/4af", victim="/docker/4af/x"), 0),
        (logged("/cotenant.root", victim="/cotenant.root/41-7/t2"), 1),
        (logged(None, victim="/system.slice/cron.service"), 1),
        (HostKills(), 1),
    ],
    ids=["another cgroup was full", "one above the slices was", "the host was", "no log says"],
)
def test_who_reached_the_limit_of_a_cgroup_of_its_own_pressed_nobody(
    killed: HostKills, outside: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel's count has two more than before: one of the slice's own, and one elsewhere."""
    counts = iter((7, 9))
    monkeypatch.setattr("cotenant.launch.memory.memory_kills", lambda: next(counts))
    watch = KillWatch()
    monkeypatch.setattr(watch, "_log", SimpleNamespace(kills=lambda: list(killed.logged)))
    assert watch.so_far([tenant(killed=1)]) == HostKills(outside, killed.logged)
