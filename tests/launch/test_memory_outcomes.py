"""Whose memory was full: the kernel's log before its counters, its counters before the exit status."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cotenant.isolation.backend import Counters, ReadBack, SliceEntry
from cotenant.launch.memory import HostKills, KillWatch, out_of_memory
from cotenant.launch.tenant import Tenant, TenantSpec
from cotenant.machine.kernel_log import MemoryKill

GIB = 1 << 30
OWN = "/cotenant.root/41-7/t1"


def tenant(killed: int = 1, peak_bytes: int | None = GIB, **state: Any) -> Tenant:
    """Tenant 1 of run 41-7 with a slice of 1 GiB, direct child 900, of which so many were killed."""
    spec = TenantSpec(
        slice=cast("Any", SimpleNamespace(tenant=1, accelerators=())),
        command=["x", "--batch-size", "64"],
        environment={},
        log=Path("/none"),
        temporary=Path("/none"),
        socket=Path("/none"),
    )
    made = SimpleNamespace(
        spec=spec,
        live=SimpleNamespace(entry=SliceEntry(procs_files=(Path(f"/sys/fs/cgroup/memory{OWN}/cgroup.procs"),))),
        read_back=ReadBack(memory_bytes=GIB),
        process=SimpleNamespace(pid=900),
        after=Counters(oom_kills=killed, memory_peak_bytes=peak_bytes),
        status=0,
        reason=None,
        ranks={},
    )
    return cast("Tenant", SimpleNamespace(**vars(made) | state))


def end_of(ended: Tenant, host: HostKills) -> tuple[str, str]:
    """The outcome and the message of a tenant that was killed for memory."""
    reason = out_of_memory(ended, host)
    assert reason is not None
    return reason


def logged(limited: str | None, nodes: tuple[int, ...] = (), victim: str = OWN, pid: int = 5) -> HostKills:
    return HostKills(1, (MemoryKill(pid, victim, limited, nodes),))


@pytest.mark.parametrize(
    ("host", "outcome", "words"),
    [
        (logged(OWN), "out_of_memory", "more than the 1.00 GiB of its slice"),
        (logged(f"{OWN}/inner", victim=f"{OWN}/inner"), "out_of_memory", "-- --batch-size 32"),
        (logged("/docker/4af", victim=f"/docker/4af{OWN}"), "host_out_of_memory", "the cgroup /docker/4af, above"),
        (logged(None, (1,)), "host_out_of_memory", "NUMA node 1 was full"),
        (logged(None), "host_out_of_memory", "the host itself was out of memory"),
    ],
    ids=["its slice", "a cgroup it made itself", "a container around us", "a node", "the host"],
)
def test_the_log_says_whose_memory_it_was(host: HostKills, outcome: str, words: str) -> None:
    """Whatever the peak is: one at the limit is also what reading a large file leaves."""
    for peak_bytes in (GIB, GIB // 2):
        ended = end_of(tenant(peak_bytes=peak_bytes), host)
        assert ended[0] == outcome
        assert words in ended[1]


def test_without_a_line_in_the_log_the_counters_decide() -> None:
    for counters, outcome in [
        (Counters(oom_kills=1, memory_peak_bytes=GIB), "out_of_memory"),
        (Counters(oom_kills=1, memory_peak_bytes=GIB // 2), "host_out_of_memory"),
        (Counters(oom_kills=1), "out_of_memory"),
        (Counters(oom_kills=1, oom_events=2, memory_peak_bytes=GIB // 2), "out_of_memory"),
        (Counters(oom_kills=1, oom_events=0, memory_peak_bytes=GIB), "host_out_of_memory"),
    ]:
        assert end_of(tenant(after=counters), HostKills())[0] == outcome


def test_a_peak_at_the_limit_leaves_open_whose_memory_it_was() -> None:
    for peak_bytes in (GIB, None):
        _, message = end_of(tenant(peak_bytes=peak_bytes), HostKills())
        assert "the 1.00 GiB of its slice or the host's" in message
        assert "-- --batch-size 32" in message
        assert message.endswith("a larger --reserve.")


def test_anothers_end_for_memory_says_nothing_of_a_tenant_whose_kills_are_counted() -> None:
    """Somebody's container reached its own limit while somebody else killed the tenant."""
    theirs = [logged(None, victim=victim) for victim in ("/cotenant.root/41-7/t11", "/system.slice/cron.service")]
    for host in (HostKills(outside=1), logged("/docker/4af", victim="/docker/4af"), *theirs):
        assert out_of_memory(tenant(killed=0, status=-9), host) is None
    late = tenant(after=Counters(), status=-9, reason=("timeout", "It was late."))
    assert out_of_memory(late, HostKills(outside=2)) is None


def test_the_log_knows_of_a_kill_in_a_cgroup_that_a_tenant_made_below_its_own() -> None:
    """On v1 the slice's counter does not hold those of cgroups below it."""
    assert end_of(tenant(killed=0), logged(OWN, victim=f"{OWN}/inner"))[0] == "out_of_memory"


def test_without_a_slice_the_direct_child_is_known_by_its_pid() -> None:
    no_cgroup = SimpleNamespace(entry=SliceEntry())
    bare = tenant(after=Counters(), status=-9, read_back=ReadBack(), live=no_cgroup)
    ended = end_of(bare, logged(None, victim="/user.slice", pid=900))
    assert ended[0] == "host_out_of_memory"
    assert out_of_memory(bare, HostKills()) is None
    assert out_of_memory(bare, HostKills(outside=2)) is not None
    # More were counted in slices than on the host, which counts none.
    assert out_of_memory(bare, HostKills(outside=-1)) is None


def test_half_the_batch_is_of_the_requested_one_or_else_of_the_default() -> None:
    arguments: Any
    for command, arguments, remedy in [
        (["x", "--batch-size", "64"], {"batch_size": 8}, "-- --batch-size 32"),
        (["x", "--batch-size=64", "-b", "48"], {}, "-- --batch-size 24"),
        (["x", "--batch-size"], {"batch_size": 64}, "-- --batch-size 32"),
        (["x"], {"batch_size": 64}, "-- --batch-size 32"),
        (["x"], {"batch_size": 1}, "Give it less to hold, or fewer tenants with --users."),
        (["x"], {"batch_size": "64"}, "Give it less to hold, or fewer tenants with --users."),
        (["x"], 7, "Give it less to hold, or fewer tenants with --users."),
    ]:
        full = tenant(ranks={0: SimpleNamespace(work={"arguments": arguments})})
        full = cast("Tenant", SimpleNamespace(**vars(full) | {"spec": replace(full.spec, command=command)}))
        assert end_of(full, logged(OWN))[1].endswith(remedy), command


def test_where_there_is_a_device_half_the_batch_is_no_remedy_for_the_hosts_memory() -> None:
    full = tenant()
    slice_ = cast("Any", SimpleNamespace(tenant=1, accelerators=("a device",)))
    full = cast("Tenant", SimpleNamespace(**vars(full) | {"spec": replace(full.spec, slice=slice_)}))
    assert end_of(full, logged(OWN))[1].endswith("Give it less to hold, or fewer tenants with --users.")


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
