"""The kernel's counters say which memory was full, before the exit status does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cotenant.isolation.backend import Counters, ReadBack
from cotenant.launch.endings import Ending
from cotenant.launch.memory import kills_outside, out_of_memory
from cotenant.launch.tenant import Tenant
from tenants.fakes import specs

GIB = 1 << 30


def tenant(**state: Any) -> Tenant:
    """A tenant with a slice of 1 GiB that has ended."""
    made = SimpleNamespace(
        spec=specs(Path("/none"), "x", "--batch-size", "64")[1],
        read_back=ReadBack(memory_bytes=GIB),
        after=Counters(oom_kills=1, oom_events=1, memory_peak_bytes=GIB),
        status=0,
        ending=None,
        ranks={},
    )
    return cast("Tenant", SimpleNamespace(**vars(made) | state))


def counted(kills: int = 1, events: int | None = None, peak_bytes: int | None = None, status: int = 0) -> Tenant:
    return tenant(after=Counters(oom_kills=kills, oom_events=events, memory_peak_bytes=peak_bytes), status=status)


BARE = {"after": Counters(), "status": -9, "read_back": ReadBack()}
"""Without cgroups nobody counts."""
LESS = "Give it less to hold, or fewer users with --users."
UNKNOWN = "Use a larger --reserve if the host was. Try half the batch: -- --batch-size 32"
FOUND = [
    (
        "v2, its limit",
        counted(events=2, peak_bytes=GIB // 2),
        0,
        "out_of_memory",
        "more than the 1.00 GiB of its",
    ),
    ("v2, not its limit", counted(events=0, peak_bytes=GIB), 0, "host_out_of_memory", "larger --reserve"),
    ("v1, at its limit", counted(peak_bytes=GIB), 0, "out_of_memory", UNKNOWN),
    ("v1, below it", counted(peak_bytes=GIB // 2), 0, "host_out_of_memory", "at most 512 MiB of 1.00 GiB: the host"),
    ("bare, counted", tenant(**BARE), 2, "host_out_of_memory", "the host ran out of memory"),
    ("bare, none", tenant(**BARE), 0, None, ""),
    # Another's end for memory says nothing of a tenant whose kills are counted.
    ("none in its slice", counted(kills=0, status=-9), 1, None, ""),
    ("late", tenant(after=Counters(), status=-9, ending=Ending("timeout", "It was late.")), 2, None, ""),
]


@pytest.mark.parametrize(
    ("ended", "outside", "outcome", "words"), [row[1:] for row in FOUND], ids=[row[0] for row in FOUND]
)
def test_whose_memory_was_full(ended: Tenant, outside: int, outcome: str | None, words: str) -> None:
    ending = out_of_memory(ended, outside)
    assert (ending.outcome if ending else None) == outcome
    assert ending is None or words in ending.message


def test_half_the_batch_is_advised_where_there_is_no_device() -> None:
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
        ending = out_of_memory(full, 0)
        assert ending is not None
        assert ending.message.endswith(remedy), command


@pytest.mark.parametrize(("since", "outside"), [(9, 1), (8, 0), (7, 0)])
def test_kills_in_slices_are_not_outside(since: int, outside: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of a slice's own may not be in the kernel's count yet."""
    monkeypatch.setattr("cotenant.launch.memory.memory_kills", lambda: since)
    assert kills_outside(7, [counted(kills=1)]) == outside
