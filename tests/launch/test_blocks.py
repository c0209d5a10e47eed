"""Launches by blocks of real processes, with blocks that are shorter than usual: records, deaths and refusals."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from cotenant.isolation.backend import NotIsolatedError
from cotenant.isolation.processes import marked
from cotenant.isolation.runs import RunName
from cotenant.isolation.slice import Slice
from cotenant.isolation.unenforced import Affinity, UnenforcedSlice
from cotenant.isolation.v1 import V1
from cotenant.launch import allowances, load, schedule
from cotenant.launch.conductor import Conducted
from cotenant.launch.events import Interruption
from cotenant.launch.launch import Launch
from cotenant.launch.limits import Limits
from cotenant.launch.outcome import LaunchResult
from cotenant.launch.pairing import Pairing
from cotenant.launch.rendezvous import Link
from cotenant.machine.limits import cgroup_mounts
from cotenant.procfs import process_of
from cotenant.protocol.messages import RUN_VARIABLE, TENANT_VARIABLE
from tenants.fakes import specs
from tenants.suites import CGROUPS, TENANTS, Suites, has_v1, job, until

MS = 1_000_000
SUMS = (str(TENANTS / "sums.py"), "--number", "1", "--repeat", "9")


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of a fifth of a second, of which three are enough."""
    monkeypatch.setattr(schedule, "MEASURED_NS", 50 * MS)
    monkeypatch.setattr(schedule, "AFTER_THAW_NS", 20 * MS)
    monkeypatch.setattr(schedule, "AFTER_BORDER_NS", 10 * MS)
    for module in (schedule, allowances, load):
        monkeypatch.setattr(module, "LEAST_ROUNDS", 3)
    monkeypatch.setattr(schedule, "WANTED_ROUNDS", 3)


@pytest.fixture
def affinity() -> Iterator[Affinity]:
    backend = Affinity()
    backend.open(RunName())
    yield backend
    backend.close()


@pytest.fixture
def v1_backend() -> Iterator[V1]:
    if not has_v1():
        pytest.skip("v1 cgroups cannot be made here")
    backend = V1(cgroup_mounts().v1, f"cotenant-test-pairs.{os.getpid()}")
    backend.open(RunName())
    yield backend
    backend.close()
    for mount in cgroup_mounts().v1.values():
        with contextlib.suppress(FileNotFoundError):
            (mount / f"cotenant-test-pairs.{os.getpid()}").rmdir()


def by_blocks(
    folder: Path, backend: Affinity, interruption: Interruption, *command: str, limits: Limits | None = None
) -> LaunchResult:
    """Launch two tenants, the second of which may read from its number what it is."""
    planned = [
        dataclasses.replace(
            spec,
            environment=spec.environment | {RUN_VARIABLE: str(RunName()), TENANT_VARIABLE: str(index)},
            cell="sums",
        )
        for index, spec in enumerate(specs(folder, *command))
    ]
    return Launch(planned, backend, interruption, limits or Limits(timeout_s=30), takes_turns=True).run()


def conducted(result: LaunchResult) -> Conducted:
    assert result.conducted is not None
    return result.conducted


@pytest.mark.usefixtures("short")
def test_tenants_observe_until_the_last_block_and_are_stopped_by_signals_without_a_cgroup(
    tmp_path: Path, affinity: Affinity, interruption: Interruption, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    send = Link.send

    def listened(link: Link, kind: str, **fields: object) -> None:
        said.append(" ".join((kind, *sorted(fields))))
        send(link, kind, **fields)

    monkeypatch.setattr(Link, "send", listened)
    result = by_blocks(tmp_path, affinity, interruption, *SUMS)
    assert [tenant.outcome for tenant in result.tenants] == ["completed", "completed"]
    made = conducted(result)
    assert (made.held_by, len(made.passed), made.unheld) == ("stopped", 17, {})
    # They are told nothing of blocks: what is sent is what is sent in any launch, and nothing at a border.
    assert {*said} - {"audit"} == {"go number repeat settle_ns skip t0_ns", "enough", "stop"}
    assert [said.count(word) for word in ("enough", "stop")] == [2, 2]
    for spent in map(made.spent_of, (0, 1)):
        assert spent["rest"].processor_ns < 0.05 * spent["rest"].lasted_ns
        assert spent["only"].processor_ns > 0.05 * spent["only"].lasted_ns
    for tenant in result.tenants:
        rank = tenant.ranks[0]
        assert len(rank.observations) > 20
        spans = [(row["start_ns"], row["end_ns"]) for row in rank.observations]
        found = schedule.places(spans, made.passed, tenant.spec.slice.tenant, made.schedule)
        kinds = [place.kind for place in found if place.kept]
        assert kinds.count("all") > 6
        assert kinds.count("only") > 3
        assert rank.late_ns < 500 * MS
        # While it rested it made nothing: only an observation across the border ends there.
        rests = [one for one in made.passed if tenant.spec.slice.tenant not in one.block.awake]
        for one in rests:
            assert not [span for span in spans if one.start_ns < span[0] and span[1] < one.end_ns]


@pytest.mark.v1
@pytest.mark.usefixtures("short")
def test_pairs_of_three_meet_in_one_launch_each_in_its_slot_and_are_at_home_in_the_end(
    tmp_path: Path, v1_backend: V1, interruption: Interruption
) -> None:
    """Limits are verified behind the last block: who was not put back would be a change."""
    own = sorted(os.sched_getaffinity(0))
    slots = tuple(Slice(slot, (own[-slot],), (0,), 64 << 20, ()) for slot in (0, 1))
    planned = [
        dataclasses.replace(spec, slice=dataclasses.replace(slots[index % 2], tenant=index), cell="sums")
        for index, spec in enumerate(specs(tmp_path, *SUMS, tenants=3))
    ]
    pairing = Pairing(((0, 1), (1, 2)), slots)
    result = Launch(planned, v1_backend, interruption, Limits(timeout_s=30), takes_turns=True, pairing=pairing).run()
    assert [(tenant.outcome, tenant.message) for tenant in result.tenants] == [("completed", "")] * 3
    assert (result.changes, result.left_behind) == ((), "")
    made = conducted(result)
    assert (made.held_by, len(made.passed), made.unheld) == ("freezer", made.planned, {})
    for pair in pairing.pairs:
        own_view = dataclasses.replace(made, members=frozenset(pair))
        for tenant in pair:
            rows = result.tenants[tenant].ranks[0].observations
            spans = [(row["start_ns"], row["end_ns"]) for row in rows]
            kinds = [
                place.kind for place in schedule.places(spans, made.passed, tenant, made.schedule, pair) if place.kept
            ]
            assert {"all", "only"} == {*kinds}
            spent = own_view.spent_of(tenant)
            assert spent["rest"].processor_ns < 0.05 * spent["rest"].lasted_ns
            assert spent["all"].processor_ns > 0


@pytest.mark.usefixtures("short")
def test_who_cannot_be_moved_ends_and_the_others_keep_their_records(
    tmp_path: Path, affinity: Affinity, interruption: Interruption, monkeypatch: pytest.MonkeyPatch
) -> None:
    moves: list[int] = []

    def refused(live: UnenforcedSlice, processors: Sequence[int]) -> None:
        moves.append(live._tenant)
        if live._tenant == 1 and moves.count(1) > 1:
            raise NotIsolatedError("tenant 1 cannot be moved")

    monkeypatch.setattr(UnenforcedSlice, "move", refused)
    own = sorted(os.sched_getaffinity(0))
    slots = tuple(Slice(slot, (own[-slot],), (0,), 64 << 20, ()) for slot in (0, 1))
    run = {RUN_VARIABLE: str(RunName())}
    planned = [
        dataclasses.replace(
            spec,
            slice=dataclasses.replace(slots[index % 2], tenant=index),
            cell="sums",
            environment=spec.environment | run | {TENANT_VARIABLE: str(index)},
        )
        for index, spec in enumerate(specs(tmp_path, *SUMS, tenants=3))
    ]
    pairing = Pairing(((0, 1), (1, 2), (0, 2)), slots)
    result = Launch(planned, affinity, interruption, Limits(timeout_s=30), takes_turns=True, pairing=pairing).run()
    assert [tenant.outcome for tenant in result.tenants] == ["completed", "not_isolated", "completed"]
    assert result.tenants[1].message == "Its schedule of pairs ended early: tenant 1 cannot be moved."
    assert 0 < len(conducted(result).passed) < conducted(result).planned
    assert all(tenant.ranks[0].record for tenant in result.tenants if tenant.outcome == "completed")


@pytest.mark.usefixtures("short")
def test_an_interval_that_is_narrow_enough_ends_the_blocks_after_a_whole_round(
    tmp_path: Path, affinity: Affinity, interruption: Interruption, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "WANTED_ROUNDS", 30)
    limits = Limits(timeout_s=30, until_interval=100.0)
    made = conducted(by_blocks(tmp_path, affinity, interruption, *SUMS, limits=limits))
    assert made.schedule.rounds > 3
    assert len(made.passed) == 4 * (3 + 1) + 1


@pytest.mark.usefixtures("short")
def test_a_death_ends_the_schedule_for_all(tmp_path: Path, affinity: Affinity, interruption: Interruption) -> None:
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
    result = by_blocks(tmp_path, affinity, interruption, "/usr/bin/env", "python3", "-c", dies, str(TENANTS), *SUMS[1:])
    assert [tenant.outcome for tenant in result.tenants] == ["completed", "failed"]
    assert len(conducted(result).passed) < 17


@pytest.mark.usefixtures("short")
def test_who_is_killed_while_it_rests_is_gone_at_once(
    tmp_path: Path, affinity: Affinity, interruption: Interruption
) -> None:
    """The interruption comes while one of them is stopped."""
    pids: list[int] = []

    def interrupt() -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not pids:
            ours = {pid: process_of(pid) for pid in marked(str(RunName()))}
            pids.extend(pid for pid, process in ours.items() if process is not None and process.state == "T")
            time.sleep(0.005)
        interruption.requested = "SIGINT"

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    result = by_blocks(tmp_path, affinity, interruption, *SUMS)
    watcher.join()
    assert [tenant.outcome for tenant in result.tenants] == ["interrupted", "interrupted"]
    assert pids
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_why_there_are_no_blocks(tmp_path: Path, affinity: Affinity, interruption: Interruption) -> None:
    limits = Limits(timeout_s=30, budget_s=0.5)
    result = by_blocks(tmp_path, affinity, interruption, *SUMS, limits=limits)
    assert result.conducted is None
    assert result.unconducted.startswith("8 rounds of steps of ")
    assert result.unconducted.endswith(" s take more than twice the budget")
    assert [tenant.outcome for tenant in result.tenants] == ["completed", "completed"]


@pytest.mark.v1
def test_a_suite_without_blocks_says_why_and_launches_a_tenant_alone(v1: Suites) -> None:
    ended = v1.run([job("sums.py", "--repeat", 8)], "--users", 2, "--baseline", "blocks", "--budget", 1)
    assert ended.returncode == 0, ended.stderr
    assert "1 launch (baseline blocks" in ended.stdout
    assert [(record["name"], record["baseline"]) for record in v1.records()] == [
        *[("job", None)] * 2,
        ("job.solo", "quick"),
    ]
    together, _, alone = v1.records()
    assert (together["blocks"], together["kept"]) == (None, None)
    (why,) = [found for found in together["findings"] if found["rule"] == "no_blocks"]
    assert "take more than twice the budget" in why["sentence"]
    assert f"job: {why['sentence']} {why['remedy']}\n1/1 job alone" in ended.stdout
    assert not [found for found in alone["findings"] if found["rule"] == "no_blocks"]


@pytest.mark.slow
@pytest.mark.v1
def test_a_baseline_that_several_launches_need_is_measured_once_though_only_the_last_has_no_blocks(v1: Suites) -> None:
    jobs = [
        job("sums.py", "--number", 1, "--repeat", 6, name="fast"),
        job("sums.py", "--number", 1, "--repeat", 6, "--sleep", 0.3, name="slow"),
        {"name": "quick", "mix": ["fast", "fast"]},
        {"name": "long", "mix": ["fast", "slow"]},
    ]
    flags = ("--users", 2, "--baseline", "blocks", "--budget", 6, "--name", "quick,long")
    ended = v1.run(jobs, *flags, limit_s=100)
    assert ended.returncode == 0, ended.stderr
    assert [record["name"] for record in v1.records()] == [
        *["fast.in.quick"] * 2,
        "fast.in.long",
        "slow.in.long",
        "slow.solo",
        "fast.solo",
    ]
    assert [record["kept"] is not None for record in v1.records()] == [True, True, False, False, False, False]
    assert "2/2 slow alone" in ended.stdout


@pytest.mark.slow
@pytest.mark.v1
def test_the_records_of_a_suite_by_blocks(v1: Suites) -> None:
    ended = v1.run([job("sums.py", "--number", 2, "--repeat", 8)], "--users", 2, "--baseline", "blocks", limit_s=120)
    assert ended.returncode == 0, ended.stderr
    assert [record["name"] for record in v1.records()] == ["job", "job"]
    for record in v1.records():
        blocks, kept = record["blocks"], record["kept"]
        assert (blocks["held_by"], blocks["passed"], blocks["void"]) == ("freezer", blocks["planned"], 0)
        assert blocks["spent"]["rest"]["processor_ns"] < 0.01 * blocks["spent"]["rest"]["lasted_ns"]
        assert 0.75 * blocks["rounds"] <= kept["n"] <= blocks["rounds"] + 1, "a quarter may be of the warm-up"
        assert kept["interval"][0] < kept["value"] < kept["interval"][1]
        counted = [row for row in record["observations"] if row["kept"] and row["kind"] == "all"]
        assert record["statistics"]["n"] == len(counted) == record["train"]["count"]
    assert "of what each has alone" in ended.stdout


@pytest.mark.slow
@pytest.mark.v1
def test_the_records_of_pairs_are_those_of_launches_of_two(v1: Suites) -> None:
    jobs = [job("sums.py", "--number", 1, "--repeat", 8, name=name) for name in ("a", "b")]
    ended = v1.run(jobs, "--pairs", "a,b", "--budget", 20, limit_s=120)
    assert ended.returncode == 0, ended.stderr
    assert sorted(record["name"] for record in v1.records()) == [
        *["a.in.a+a"] * 2,
        "a.in.a+b",
        "b.in.a+b",
        *["b.in.b+b"] * 2,
    ]
    for record in v1.records():
        blocks, kept = record["blocks"], record["kept"]
        assert (record["tenants"], record["sharers"], blocks["residents"], blocks["held_by"]) == (2, 1, 4, "freezer")
        assert record["isolation"]["planned"]["processors"] == record["isolation"]["read_back"]["processors"]
        assert kept["n"] >= 6 - blocks["void"]
        assert {row["kind"] for row in record["observations"]} == {"all", "only"}
        assert blocks["spent"]["rest"]["processor_ns"] < 0.01 * blocks["spent"]["rest"]["lasted_ns"]
        assert not [found for found in record["findings"] if found["severity"] == "error"]
    assert "pairs of jobs" in ended.stdout


@pytest.mark.slow
@pytest.mark.v1
@pytest.mark.parametrize("moment", range(20))
@pytest.mark.parametrize("end", ["runner", "tenant", "interrupt"])
def test_at_any_moment_of_a_schedule_nothing_is_left_frozen(v1: Suites, end: str, moment: int) -> None:
    runner = v1.start([job("sums.py", "--repeat", 8)], "--users", 2, "--baseline", "blocks")
    deadline = time.monotonic() + 20
    while not (first := v1.cgroups()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert first
    time.sleep(1.0 + 0.137 * moment)
    if end == "tenant":
        os.kill(max(v1.inhabitants()), signal.SIGKILL)
        runner.wait(40)
    else:
        runner.send_signal(signal.SIGKILL if end == "runner" else signal.SIGINT)
        runner.wait(10)
    v1.gone(2.0)


@pytest.mark.slow
@pytest.mark.v1
@pytest.mark.parametrize("moment", range(10))
@pytest.mark.parametrize("end", ["runner", "interrupt"])
def test_in_the_midst_of_pairs_nothing_is_left_frozen_or_moved(v1: Suites, end: str, moment: int) -> None:
    runner = v1.start([job("sums.py", "--repeat", 8, name=name) for name in ("a", "b", "c")], "--pairs", "a,b,c")
    states = f"freezer/{v1.name}/*/t*/freezer.state"
    until(lambda: any("FROZEN" in path.read_text() for path in CGROUPS.glob(states)), "somebody is frozen", 30)
    time.sleep(0.237 * moment)
    runner.send_signal(signal.SIGKILL if end == "runner" else signal.SIGINT)
    runner.wait(10)
    v1.gone(2.0)
