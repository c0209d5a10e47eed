"""Launches by blocks of real processes, with blocks that are shorter than usual: records, deaths and refusals."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import pytest

from cotenant.isolation.backend import NotIsolatedError
from cotenant.isolation.processes import PR_SET_CHILD_SUBREAPER, adopt_orphans, end_orphans, marked, now_ticks
from cotenant.isolation.runs import RunName
from cotenant.isolation.unenforced import UnenforcedSlice
from cotenant.isolation.v1 import V1
from cotenant.launch.design import designs
from cotenant.launch.design.designs import InCrowds, InPairs
from cotenant.launch.events import Interruption
from cotenant.launch.limits import Limits
from cotenant.launch.rendezvous import Link
from cotenant.machine.limits import cgroup_mounts
from cotenant.procfs import process_of
from cotenant.stats import budget
from cotenant.stats.crowd_search import CrowdSearch
from launch.turning import SUMS, Turning, conducted, kinds_kept, made_at_rest, outcomes, slots
from patience import HANG_S
from tenants.suites import CGROUPS, TENANTS, Suites, errors, has_v1, job, until

LONGER_THAN_A_BLOCK_S = 1.0


@pytest.fixture
def v1_turning(tmp_path: Path, interruption: Interruption) -> Iterator[Turning]:
    if not has_v1():
        pytest.skip("v1 cgroups cannot be made here")
    backend = V1(cgroup_mounts().v1, f"cotenant-test-pairs.{os.getpid()}")
    backend.open(RunName())
    yield Turning(tmp_path, backend, interruption)
    backend.close()
    for mount in cgroup_mounts().v1.values():
        with contextlib.suppress(FileNotFoundError):
            (mount / f"cotenant-test-pairs.{os.getpid()}").rmdir()


@pytest.fixture
def adopting() -> Iterator[None]:
    """Orphans become children of this process, as they do of a runner."""
    before, since_ticks = adopt_orphans(), now_ticks()
    yield
    end_orphans(before, since_ticks)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0)


@pytest.mark.usefixtures("short")
def test_tenants_are_stopped_by_signals_without_a_cgroup(turning: Turning, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    send = Link.send

    def listened(link: Link, kind: str, **fields: object) -> None:
        said.append(" ".join((kind, *sorted(fields))))
        send(link, kind, **fields)

    monkeypatch.setattr(Link, "send", listened)
    result = turning.launch()
    assert outcomes(result) == ["completed", "completed"]
    made = conducted(result)
    assert (made.held_by, len(made.passed), made.unheld) == ("stopped", 3 * (3 + 1) + 1, {})
    # They are told nothing of blocks: they get the messages of any launch, and none at a border.
    assert {*said} == {"go made number repeat settle_ns skip t0_ns", "enough", "stop"}
    assert [said.count(word) for word in ("enough", "stop")] == [2, 2]
    for index, tenant in enumerate(result.tenants):
        spent = made.spent_of(index)
        assert spent["rest"].processor_ns < 0.05 * spent["rest"].lasted_ns
        assert spent["only"].processor_ns > 0.05 * spent["only"].lasted_ns
        assert len(tenant.ranks[0].observations) > 20
        kinds = kinds_kept(tenant, made)
        assert kinds.count("all") > 6
        assert kinds.count("only") > 3
        assert tenant.ranks[0].late_ns < 500_000_000
        assert not [*made_at_rest(tenant, made)]


@pytest.mark.v1
@pytest.mark.usefixtures("short")
def test_pairs_of_three_tenants_meet_in_one_launch(v1_turning: Turning) -> None:
    """Limits are verified behind the last block: who was not put back would be a change."""
    pairs = ((0, 1), (1, 2))
    result = v1_turning.launch(design=InPairs(pairs, slots()), tenants=3)
    assert [(tenant.outcome, tenant.message) for tenant in result.tenants] == [("completed", "")] * 3
    assert (result.changes, result.left_behind) == ((), "")
    made = conducted(result)
    assert (made.held_by, made.complete, made.unheld) == ("freezer", True, {})
    for pair in pairs:
        own_view = dataclasses.replace(made, members=frozenset(pair))
        for tenant in pair:
            assert {"all", "only"} == {*kinds_kept(result.tenants[tenant], made, pair)}
            spent = own_view.spent_of(tenant)
            assert spent["rest"].processor_ns < 0.05 * spent["rest"].lasted_ns
            assert spent["all"].processor_ns > 0


class AlwaysTwo:
    """Wants two users in every round."""

    def take(self, users: int, values: object) -> None: ...

    def next_users(self) -> int:
        return 2


class InCrowdsOfTwo(InCrowds):
    """In slices of a pair."""

    slots = slots()


@pytest.mark.v1
def test_a_tenant_killed_at_rest_ends_the_blocks_in_two_seconds(v1_turning: Turning) -> None:
    """The freezer of cgroup v1 keeps SIGKILL until a thaw, and a third user rests as long as two are to meet: after the
    first round, in which each has a turn."""
    killed_ns: list[int] = []

    def kill() -> None:
        slices = CGROUPS / "freezer" / f"cotenant-test-pairs.{os.getpid()}"
        (state,) = until(lambda: [*slices.glob("*/t2/freezer.state")], "there is a third")
        last_awake_s = time.monotonic()

        def rests_for_long() -> bool:
            nonlocal last_awake_s
            if state.read_text().strip() != "FROZEN":
                last_awake_s = time.monotonic()
            return time.monotonic() > last_awake_s + LONGER_THAN_A_BLOCK_S

        until(rests_for_long, "it rests for longer than a block")
        killed_ns.append(time.perf_counter_ns())
        for pid in state.with_name("cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    design = InCrowdsOfTwo(cast(CrowdSearch, AlwaysTwo()), 1)
    result = v1_turning.launch(design=design, tenants=3, limits=Limits(timeout_s=60, budget_s=60))
    killer.join()
    assert outcomes(result) == ["completed", "completed", "failed"]
    assert "SIGKILL" in result.tenants[2].message
    assert conducted(result).passed[-1].end_ns < killed_ns[0] + 2e9


@pytest.mark.usefixtures("short")
def test_an_immovable_tenant_ends_and_others_keep_their_records(
    turning: Turning, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(live: UnenforcedSlice, processors: Sequence[int]) -> None:
        if live._tenant == 1:
            raise NotIsolatedError("user 1 cannot be moved")

    monkeypatch.setattr(UnenforcedSlice, "move", refused)
    result = turning.launch(design=InPairs(((0, 1), (1, 2), (0, 2)), slots()), tenants=3)
    assert outcomes(result) == ["completed", "not_isolated", "completed"]
    assert result.tenants[1].message == "Its blocks ended early: user 1 cannot be moved."
    assert conducted(result).passed
    assert not conducted(result).complete
    assert all(tenant.ranks[0].record for tenant in result.tenants if tenant.outcome == "completed")


@pytest.mark.usefixtures("short")
def test_a_spent_budget_ends_pairs_with_the_rounds_they_have(turning: Turning, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "GRACE_NS", 0)
    result = turning.launch(
        design=InPairs(((0, 1), (1, 2)), slots()), tenants=3, limits=Limits(timeout_s=HANG_S, budget_s=0.5)
    )
    assert outcomes(result) == ["completed"] * 3
    assert conducted(result).passed
    assert not conducted(result).complete


@pytest.mark.usefixtures("short")
def test_a_narrow_interval_ends_the_blocks_after_a_whole_round(
    turning: Turning, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(designs, "WANTED_ROUNDS", 30)
    made = conducted(turning.launch(limits=Limits(timeout_s=HANG_S, until_interval=100.0)))
    assert not made.complete
    assert len(made.passed) == 3 * (3 + 1) + 1


@pytest.mark.usefixtures("short")
def test_a_death_ends_the_blocks_for_all(turning: Turning) -> None:
    dies = """
import os, sys, threading
sys.path.insert(0, sys.argv[1])
import sums
from cotenant.protocol.client import Rendezvous
sys.argv[1:] = sys.argv[2:]
await_go = Rendezvous.await_go
def await_go_and_die(self):
    go = await_go(self)
    if os.environ["COTENANT_TENANT"] == "1":
        threading.Timer(0.3, os._exit, [3]).start()
    return go
Rendezvous.await_go = await_go_and_die
sys.exit(sums.main())
"""
    result = turning.launch("/usr/bin/env", "python3", "-c", dies, str(TENANTS), *SUMS[1:])
    assert outcomes(result) == ["completed", "failed"]
    assert len(conducted(result).passed) < 17


LEAVES = """
import os, subprocess, sys, threading
sys.path.insert(0, sys.argv[1])
import sums
from cotenant.protocol.client import Rendezvous
noted = sys.argv[2]
sys.argv[2:] = sys.argv[3:]
await_go = Rendezvous.await_go
def leave():
    # It stays in this session, without a variable; its parent ends at once.
    subprocess.run(["sh", "-c", "yes >/dev/null & echo $! >" + noted], env={"PATH": os.environ["PATH"]})
def await_go_and_leave(self):
    go = await_go(self)
    if os.environ["COTENANT_TENANT"] == "1":
        threading.Timer(0.6, leave).start()
    return go
Rendezvous.await_go = await_go_and_leave
del sys.argv[1]
sys.exit(sums.main())
"""


@pytest.mark.usefixtures("short", "adopting")
def test_an_orphan_rests_with_its_tenant_and_counts_as_its_work(
    turning: Turning, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(designs, "WANTED_ROUNDS", 6)
    noted = turning.folder / "orphan"
    seen: dict[str, int] = {}

    def watch() -> None:
        while not over.wait(0.005):
            with contextlib.suppress(OSError, ValueError):
                pid = int(noted.read_text())
                if (process := process_of(pid)) is not None and process.state != "Z":
                    seen[process.state] = time.clock_gettime_ns(~pid << 3 | 2)

    over = threading.Event()
    watcher = threading.Thread(target=watch)
    watcher.start()
    # Steps that sleep: nearly all processor time is the orphan's.
    words = (str(TENANTS), str(noted), "--number", "1", "--repeat", "9", "--sleep", "0.005", "--sums", "1")
    result = turning.launch("/usr/bin/env", "python3", "-c", LEAVES, *words)
    over.set()
    watcher.join()
    assert outcomes(result) == ["completed", "completed"]
    assert "T" in seen
    readings = result.work[1]
    assert readings[-1][1] - readings[0][1] > 0.9 * seen["T"]
    assert conducted(result).spent_of(1)["rest"].processor_ns < 0.05 * conducted(result).spent_of(1)["rest"].lasted_ns


@pytest.mark.usefixtures("short")
def test_who_is_killed_while_it_rests_is_gone_at_once(turning: Turning) -> None:
    """The interruption comes while one of them is stopped."""
    pids: list[int] = []

    def interrupt() -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not pids:
            ours = {pid: process_of(pid) for pid in marked(str(RunName()))}
            pids.extend(pid for pid, process in ours.items() if process is not None and process.state == "T")
            time.sleep(0.005)
        turning.interruption.requested = "SIGINT"

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    result = turning.launch()
    watcher.join()
    assert outcomes(result) == ["interrupted", "interrupted"]
    assert pids
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.slow
@pytest.mark.v1
def test_of_each_cell_a_tenant_goes_on_alone_once_in_a_suite(v1: Suites) -> None:
    jobs = [
        job("sums.py", "--number", 1, "--repeat", 6, name="fast"),
        job("sums.py", "--number", 1, "--repeat", 6, "--sleep", 0.3, name="slow"),
        {"name": "short", "mix": ["fast", "fast"]},
        {"name": "long", "mix": ["fast", "slow"]},
        {"name": "last", "mix": ["slow", "fast"]},
    ]
    flags = ("--users", 2, "--baseline", "blocks", "--budget", 10, "--name", "short,long,last")
    v1.run(jobs, *flags, status=0)
    kept = {record["name"]: record["kept"] is not None for record in v1.records()}
    assert kept == {"fast.in.short": True} | dict.fromkeys(
        ["fast.in.long", "slow.in.long", "fast.in.last", "slow.in.last", "slow.solo", "fast.solo"], False
    )
    assert len(v1.records()) == 8


@pytest.mark.slow
@pytest.mark.v1
def test_the_records_of_a_suite_by_blocks(v1: Suites) -> None:
    jobs = [job("sums.py", "--number", 2, "--repeat", 8)]
    ended = v1.run(jobs, "--users", 2, "--baseline", "blocks", status=0)
    assert [record["name"] for record in v1.records()] == ["job", "job"]
    for record in v1.records():
        blocks, kept = record["blocks"], record["kept"]
        assert (blocks["held_by"], blocks["complete"], blocks["void"]) == ("freezer", True, 0)
        assert blocks["spent"]["rest"]["processor_ns"] < 0.01 * blocks["spent"]["rest"]["lasted_ns"]
        assert 0.75 * blocks["rounds"] <= kept["n"] <= blocks["rounds"] + 1, "a quarter may be of the warm-up"
        assert kept["interval"][0] < kept["value"] < kept["interval"][1]
        counted = [row for row in record["observations"] if row["kept"] and row["kind"] == "all"]
        assert record["statistics"]["n"] == len(counted) == record["train"]["count"]
    assert "of what it has alone" in ended.stdout


@pytest.mark.slow
@pytest.mark.v1
def test_the_records_of_pairs_are_those_of_launches_of_two(v1: Suites) -> None:
    jobs = [job("sums.py", "--number", 1, "--repeat", 8, name=name) for name in ("a", "b")]
    ended = v1.run(jobs, "--pairs", "a,b", "--budget", 20, status=0)
    names = sorted(record["name"] for record in v1.records())
    assert names == ["a.in.a+a", "a.in.a+a", "a.in.a+b", "b.in.a+b", "b.in.b+b", "b.in.b+b"]
    for record in v1.records():
        blocks, kept = record["blocks"], record["kept"]
        assert (record["tenants"], record["sharers"], blocks["residents"], blocks["held_by"]) == (2, 1, 4, "freezer")
        assert record["isolation"]["planned"]["processors"] == record["isolation"]["read_back"]["processors"]
        assert kept["n"] >= 6 - blocks["void"]
        assert {row["kind"] for row in record["observations"]} == {"all", "only"}
        assert blocks["spent"]["rest"]["processor_ns"] < 0.01 * blocks["spent"]["rest"]["lasted_ns"]
        assert not errors(record)
    assert "pairs of jobs" in ended.stdout
