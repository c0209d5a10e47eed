"""Launches of different jobs: who starts, and the fields of their records."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, cast

import msgspec
import polars as pl
import pytest

from cotenant.choices import OF_DEVICES
from cotenant.commands import exec as exec_command
from cotenant.commands.given import CommandFlags
from cotenant.confidential import by_new_key
from cotenant.errors import CotenantError
from cotenant.isolation.choose import Chosen
from cotenant.isolation.unenforced import Affinity, NoIsolation
from cotenant.launch import resume
from cotenant.launch.command import callers_python
from cotenant.launch.conductor import Conducted
from cotenant.launch.design.designs import InPairs
from cotenant.launch.design.passed import Passed
from cotenant.launch.design.shared import DesignPlan
from cotenant.launch.outcome import LaunchResult, TenantResult
from cotenant.launch.parts import parts_of
from cotenant.launch.planned import PlannedLaunch
from cotenant.launch.rank import Go, Rank
from cotenant.launch.records import SuiteFacts, records_of
from cotenant.launch.start import Options, Resolver
from cotenant.machine.topology import Machine
from cotenant.results.journal import Journal, Started
from cotenant.results.launches import launches_in
from cotenant.results.newest import newest_in
from cotenant.results.read import read_records
from cotenant.results.record import Observed, Record
from cotenant.results.store import write_record
from cotenant.stats.budget import Amount
from cotenant.suite.pressure import level_of
from launch.designed import MS, carried_out, room, row
from launch.resolving import HOST, conditions, options, resolver, with_devices
from machine.invented import device, machine
from results.made import ISOLATION, a_record
from tenants.suites import Suites, job, rogue, script

THREE = ("--jobs", "cpu", "--pairs", "vae,wlm,loader")
PAIRS = ["vae+vae", "vae+wlm", "vae+loader", "wlm+wlm", "wlm+loader", "loader+loader"]


def names(*words: str) -> list[tuple[str, ...]]:
    return [(*start.names, *map(str, start.stands_for)) for start in resolver("--jobs", "cpu", *words).starts()]


def test_each_cell_of_a_mix_goes_on_alone_once() -> None:
    (mixed,) = resolver("--jobs", "cpu", "--mix", "vae,wlm,vae").starts()
    assert mixed.names == ("vae.in.vae+wlm+vae", "wlm.in.vae+wlm+vae", "vae.in.vae+wlm+vae")
    turns = [mixed.of_turn(each) for each in mixed.goes_on]
    assert [(turn.names, turn.key, turn.stands_for) for turn in turns] == [
        (("vae.solo",), "vae.solo T0", (0, 1, 2)),
        (("wlm.solo",), "wlm.solo T1", (0, 1, 2)),
    ]
    assert names("--mix", "vae,wlm", "--users", "3", "--baseline", "whole")[1:] == [
        ("vae.solo", "0"),
        ("wlm.solo", "1"),
        ("vae.solo", "2"),
    ]
    (only,) = names("--mix", "vae,wlm", "--baseline", "none")
    assert only == ("vae.in.vae+wlm", "wlm.in.vae+wlm")
    starts = resolver("--jobs", "cpu", "--mix", "vae,wlm").starts()
    assert [spec.cell for spec in starts[0].specs] == ["vae", "wlm"]
    assert ["auto_encoding" in spec.command[0] for spec in starts[0].specs] == [True, False]
    assert [start.key for start in starts] == ["vae+wlm"]


def test_pairs_share_their_baselines() -> None:
    whole = names("--pairs", "vae,wlm,loader", "--baseline", "whole")
    assert len([name for name in whole if ".in." in name[0]]) == 6
    alone = [name for name in whole if name[0].endswith(".solo")]
    assert len(alone) == len(set(alone)) == 6


def test_pairs_meet_in_one_launch_of_slices_of_a_pair() -> None:
    made = Resolver(options(*THREE), HOST, Chosen(Affinity()))
    (start,) = made.starts()
    assert (start.key, start.design.takes_turns, start.sharers) == ("pairs", True, 1)
    slots = made.plans["student"].slices
    assert [spec.cell for spec in start.specs] == ["vae", "wlm", "loader"] * 2
    assert [spec.slice.processors for spec in start.specs] == [slots[number % 2].processors for number in range(6)]
    assert {spec.slice.memory_bytes for spec in start.specs} == {slots[0].memory_bytes}
    assert {spec.environment["OMP_NUM_THREADS"] for spec in start.specs} == {"3"}
    assert len({spec.environment["MASTER_PORT"] for spec in start.specs}) == 6
    # Its records are those of the pairs, each in both slots.
    names_met = [tuple(f"{name}.in.{pair}" for name in pair.split("+")) for pair in PAIRS]
    assert [met.names for met in start.met] == names_met
    assert [spec.slice.processors for spec in start.met[1].specs] == [slot.processors for slot in slots]
    assert [spec.slice.tenant for spec in start.met[4].specs] == [1, 2]


def test_a_pair_record_plans_the_nodes_of_both_slots() -> None:
    made = resolver("--jobs", "cpu", "--pairs", "vae,wlm", there=machine(cores=6, nodes=2))
    assert [slot.nodes for slot in made.plans["student"].slices] == [(0,), (1,)]
    (start,) = made.starts()
    assert {spec.slice.nodes for met in (start, *start.met) for spec in met.specs} == {(0, 1)}


def records_of_parts(
    start: PlannedLaunch, ranks: dict[int, Rank] | None = None, **of_launch: Any
) -> list[list[Record]]:
    """Return the records of each pair of a launch in which everybody has died, each with its process in `ranks`."""
    now = datetime.now(UTC)
    own = [{0: ranks[spec.slice.tenant]} if ranks else {} for spec in start.specs]
    lost = tuple(TenantResult(spec, "failed", "It died.", of) for spec, of in zip(start.specs, own, strict=True))
    facts = SuiteFacts("cpu", now, 0, {"hostname": "host"}, NoIsolation(), {}, (), by_new_key(), ())
    return [records_of(*part, facts) for part in parts_of(LaunchResult(lost, now, now, **of_launch), start)]


def test_records_of_a_pair_number_tenants_as_in_a_launch_of_two() -> None:
    """Whoever else is in the launch: else repetitions of one pair would be of four tenants."""
    (start,) = resolver(*THREE).starts()
    seen = {str(spec.slice.tenant): spec.cell for spec in start.specs}
    parts = records_of_parts(start, meters={"tenants": seen, "series": {"at_s": [0.1], "tenants": seen}})
    assert [[(record.tenant, record.vcd) for record in records] for records in parts] == [[(0, "0"), (1, "1")]] * 6
    for record in chain.from_iterable(parts):
        cells = dict(zip("01", record.mix.split("+"), strict=True))
        assert record.meters["tenants"] == record.meters["series"]["tenants"] == cells
        assert record.name == f"{cells[str(record.tenant)]}.in.{record.mix}"


def test_only_a_pair_without_time_to_meet_is_an_error() -> None:
    """Each step of tenant 1 takes 30 s."""
    (start,) = resolver("--jobs", "cpu", "--pairs", "vae,wlm").starts()
    assert isinstance(start.design, InPairs)
    ranks = {tenant: Rank(cast(Any, None), 0, 1) for tenant in range(4)}

    def observe(one: Passed, tenant: int) -> list[Observed]:
        step_ns = (30_000 if tenant == 1 else 5) * MS
        ranks[tenant].observations.append(row(one.end_ns - step_ns, one.end_ns))
        return ranks[tenant].observations[-1:]

    planned = start.design.plan(room(dict.fromkeys(range(4), 30_000 * MS), left_ns=400_000 * MS))
    assert isinstance(planned, DesignPlan)
    passed, complete = carried_out(planned.rounds, observe)
    gos = {tenant: Go(0, Amount(1, 99, 0)) for tenant in range(4)}
    for ended in (True, False):
        conducted = Conducted("freezer", frozenset(range(4)), 4, complete and ended, passed=passed)
        parts = records_of_parts(start, ranks, conducted=conducted, gos=gos)
        for pair, records in zip(start.design.pairs, parts, strict=True):
            unmet = [found for record in records for found in record.findings]
            assert [found.rule for found in unmet] == (["pair_unmet"] * 2 if 1 in pair and ended else [])
            assert all("a step of 30 s" in found.sentence for found in unmet)


def test_pairs_that_memory_cannot_hold_at_once_are_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    half = resolver(*THREE).plans["student"].slices[0].memory_bytes
    peaks = dict.fromkeys(("vae", "wlm", "loader"), half // 2)
    monkeypatch.setattr("cotenant.launch.start.last_peaks", lambda output, suite, before: peaks)
    starts = resolver(*THREE).starts()
    assert [start.key for start in starts] == [f"pairs.{number}" for number in range(1, len(starts) + 1)]
    assert 1 < len(starts) < 6
    assert all(len(start.specs) <= 4 for start in starts)
    assert sorted(pair.mix for start in starts for pair in start.met) == sorted(PAIRS)


def test_pairs_that_exceed_the_time_limit_are_several_launches() -> None:
    """At 15 s a pair, in half of the timeout."""
    starts = resolver(*THREE, "--timeout", "75").starts()
    assert [(start.key, len(start.met)) for start in starts] == [("pairs.1", 2), ("pairs.2", 2), ("pairs.3", 2)]
    assert len({pair.mix for start in starts for pair in start.met}) == 6


def test_a_resumed_repetition_keeps_its_original_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own records are of jobs that had less memory than those before: all of them would fit at once."""
    words = (*THREE, "--outdir", str(tmp_path))
    half = resolver(*words).plans["student"].slices[0].memory_bytes
    began = Started(suite="cpu", uid=0, host="", time="2026-11-24T12:00:00+00:00", launches=(), conditions={})
    monkeypatch.setattr("cotenant.launch.start.read_journal", lambda output: Journal((began,)))

    def groups(*more: str) -> list[str]:
        return [start.key for start in resolver(*words, *more).starts()]

    def ended(hour: int, peak_bytes: int) -> None:
        isolation = msgspec.structs.replace(ISOLATION, counters={"memory_peak_bytes": peak_bytes})
        for name in ("vae", "wlm", "loader"):
            record = a_record(place={"suite": "cpu", "name": name, "isolation": isolation})
            write_record(tmp_path, record, datetime(2026, 11, 24, hour, tzinfo=UTC))

    ended(11, half // 2)
    at_first = groups()
    assert len(at_first) > 1
    ended(13, 1 << 20)
    assert groups() == ["pairs"]
    assert groups("--resume") == at_first


def test_pairs_that_cannot_share_a_launch_are_launched_apart() -> None:
    on_devices = resolver("--jobs", "cpu", "--pairs", "vae,wlm", there=with_devices(2))
    together = [start.key for start in on_devices.starts() if not start.solo]
    assert together == ["vae+vae", "vae+wlm", "wlm+wlm"]
    assert on_devices.left_out() == ("Each pair is a launch by itself: what a job holds of a device stays there.",)
    assert resolver("--jobs", "cpu", "--pairs", "vae,wlm", "--baseline", "whole").left_out() == ()


def changed(one: Options, other: Options, there: Machine = HOST, now: Machine | None = None) -> set[str]:
    """Return the conditions that differ for the other options, or `now` that the machine is another."""
    before, today = conditions(one, there), conditions(other, now or there)
    return {each for each in today if today[each] != before[each]}


@pytest.mark.parametrize(
    ("there", "words", "one", "other", "name"),
    [
        (HOST, "--jobs cpu", "--mix vae,wlm,vae", "--mix vae,wlm,wlm", "the jobs"),
        (HOST, "--jobs cpu --mix vae,wlm", "--baseline blocks", "--baseline none", "--baseline"),
        (with_devices(1), "--jobs lambda --users 2", "--share time", "--share mps:50", "--share"),
        (with_devices(1), "--jobs lambda --users 2", "--memory-class 32gb", "--memory-class 80gb", "the jobs"),
        (machine(nodes=2), "--jobs cpu --users 2", "", "--mems all", "the slices"),
        (machine(nodes=2), "--jobs cpu --users 2", "", "--reserve 8G", "the slices"),
    ],
)
def test_options_that_keep_launch_names_are_resume_conditions(
    there: Machine, words: str, one: str, other: str, name: str
) -> None:
    """Otherwise a resumed suite would mix two works, modes, baselines or places of memory."""
    asked = (options(*f"{words} {more}".split(), there=there) for more in (one, other))
    assert changed(*asked, there) == {name}


@pytest.mark.parametrize(
    ("words", "before", "now"),
    [
        ("--jobs cpu --users 1", HOST, machine(cores=4)),
        ("--jobs lambda", with_devices(2), machine(cores=6, devices=(device(2), device(3)))),
        ("--jobs lambda", with_devices(2), machine(cores=6, devices=(device(0, name="A100"), device(1)))),
    ],
)
def test_other_processors_or_devices_are_other_slices(words: str, before: Machine, now: Machine) -> None:
    """CUDA_VISIBLE_DEVICES and taskset are no flags: a resumed suite would have run on both."""
    one, other = (options(*words.split(), there=there) for there in (before, now))
    assert changed(one, other, before, now) == {"the slices"}


def test_versions_are_conditions_of_resuming(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package's version is the same on both sides of `git pull`; the harness has one of its own."""
    of = options("--jobs", "cpu", "--name", "vae")
    before = conditions(of)
    monkeypatch.setattr(resume, "harness_version", lambda: "another")
    monkeypatch.setattr(resume, "installed", lambda: {"torch": "1.0"})
    today = conditions(of)
    assert {each for each in today if today[each] != before[each]} == {"cotenant.bench", "torch"}
    with pytest.raises(
        CotenantError, match=rf"^Repetition 0 began .* torch \({re.escape(before['torch'])}, now 1\.0\)"
    ):
        resume._check_alike(before, today, 0)


def test_duet_sides_and_command_counting_are_resume_conditions() -> None:
    words = ("--jobs", "cpu", "--duet", "vae")
    smaller, larger = (options(*words, extra=("--batch-size", "64", "---", "-b", size)) for size in ("96", "128"))
    assert changed(smaller, larger) == {"arguments after --"}
    counted = (CommandFlags(), CommandFlags(count_line="x"))
    steps, lines = (exec_command.options_of_command(flags, ["true"], HOST) for flags in counted)
    assert changed(steps, lines) == {"the jobs"}
    assert not changed(steps, steps)
    for flag, differs in (("--input-key", True), ("--hf-token", False)):
        one, other = (
            exec_command.options_of_command(CommandFlags(), ["true", flag, f"image_feature_v{version}"], HOST)
            for version in (1, 2)
        )
        assert changed(one, other) == ({"the jobs"} if differs else set())


def test_the_callers_python_is_a_resume_condition_of_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    seen, flags = [], CommandFlags()
    for torch, ours in (("1", "1"), ("1", "2"), ("2", "2")):
        script(tmp_path / "python", f"echo torch {torch}")
        monkeypatch.setattr(resume, "installed", lambda ours=ours: {"torch": ours})
        callers_python.cache_clear()
        seen.append(conditions(exec_command.options_of_command(flags, ["python"], HOST)))
    first, second, third = seen
    assert first == second
    assert {name for name in third if third[name] != second[name]} == {"the Python of the command"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--mix", "vae", "--pairs", "vae"], "--mix is one launch and --pairs are several"),
        (["--pairs", "vae,wlm", "--users", "3"], "--pairs: these launches have two users"),
        (["--mix", "vae,convnet_distributed"], "of the group 'all'"),
        (["--mix", "vae,wlm,loader", "--users", "2"], "No job is left to run"),
    ],
)
def test_what_cannot_be_launched_is_refused(words: list[str], sentence: str) -> None:
    with pytest.raises(CotenantError, match=sentence):
        resolver("--jobs", "cpu", *words).starts()


@pytest.mark.slow
def test_neighbours_in_a_mix_end_together(loose: Suites) -> None:
    jobs = [
        job("sums.py", "--repeat", 9, "--number", 10, "--sleep", 0.01, name="slow"),
        job("sums.py", "--repeat", 6, "--number", 2, name="fast"),
        rogue("dying", "observed", "exit", 3, who=None),
        {"name": "lab", "mix": ["slow", "fast"]},
        {"name": "bad", "mix": ["slow", "dying"]},
    ]
    loose.run(jobs, "--users", 2, "--baseline", "blocks", "--name", "lab", "--", "--repeat", 6, status=0)
    slow, fast = [each for each in loose.records() if not each["solo"]]
    assert [(each["name"], each["mix"], each["neighbours"]) for each in (slow, fast)] == [
        ("slow.in.lab", "lab", ["fast"]),
        ("fast.in.lab", "lab", ["slow"]),
    ]
    assert (slow["given"]["number"], fast["given"]["number"]) == (10, 2)
    assert len(fast["observations"]) > 6
    ends = [each["observations"][-1]["end_ns"] for each in (slow, fast)]
    longest = max(row["end_ns"] - row["start_ns"] for row in slow["observations"])
    assert abs(ends[0] - ends[1]) <= 2 * longest
    assert sorted(each["name"] for each in loose.records() if each["solo"]) == ["fast.solo", "slow.solo"]
    loose.run(jobs, "--users", 2, "--name", "bad", "--uid", 1, status=1)
    survivor, dead = [each for each in loose.records() if each["mix"] == "bad"]
    assert (survivor["outcome"], survivor["comparable"], dead["outcome"]) == ("completed", False, "failed")
    newest, _ = newest_in(read_records([loose.output]).frame.filter(pl.col("mix") == "bad"))
    flaws = {launch.job: launch.flaw or "" for launch in launches_in(newest)}
    assert flaws["dying.in.bad"] == "user 1 failed."
    assert flaws["slow.in.bad"].startswith("user 0 is INVALID (")
    assert "neighbour_lost" in flaws["slow.in.bad"]


def pressed(made: Resolver) -> set[str]:
    found = (level_of(spec.cell) for start in made.starts() for spec in start.specs)
    return {known[0] for known in found if known is not None}


def test_a_device_is_pressed_where_both_tenants_have_it() -> None:
    words = [word for resource in (*OF_DEVICES, "dram") for word in ("--pressure", f"{resource}:50,100")]
    for devices, left_out in ((1, set()), (2, {*OF_DEVICES}), (0, {*OF_DEVICES})):
        made = resolver("--jobs", "cpu", "--name", "vae", *words, there=with_devices(devices))
        assert pressed(made) == {"dram", *OF_DEVICES} - left_out
        lines = [line.partition(":")[0] for line in made.left_out() if "left out" in line]
        names = (
            f"vae+pressure_{of}_{level}" if devices else f"pressure_{of}" for of in left_out for level in (50, 100)
        )
        assert {*lines} == {*names}
    made = resolver("--jobs", "cpu", "--name", "vae", *words, there=with_devices(1))
    (of_half,) = [start for start in made.starts() if start.mix == "vae+pressure_sm_50"]
    assert (len(of_half.specs), of_half.design.takes_turns) == (2, True)


def test_pressure_makes_one_launch_per_available_resource(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cotenant.launch.start.is_in_memory", lambda path: True)
    words = [word for resource in ("cpu", "disk", "dram:100") for word in ("--pressure", resource)]
    made = resolver("--jobs", "cpu", "--name", "vae,wlm", *words)
    assert [(start.mix, [spec.cell for spec in start.specs]) for start in made.starts()] == [
        ("pressure_cpu", ["vae", "wlm", *(f"pressure_cpu_{level}" for level in (25, 50, 75, 100))]),
        ("pressure_dram", ["vae", "wlm", "pressure_dram_100"]),
    ]
    assert [line.partition(":")[0] for line in made.left_out()] == ["pressure_disk"]
    first = next(iter(made.starts()))
    assert (first.design.takes_turns, len(first.met)) == (True, 8)
    assert first.met[0].names == ("vae.in.vae+pressure_cpu_25", "pressure_cpu_25.in.vae+pressure_cpu_25")
