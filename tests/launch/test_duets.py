"""Duets of real processes: who is awake when, what the launch says, and what cannot be a duet."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from cotenant.isolation.runs import RunName
from cotenant.isolation.unenforced import Affinity
from cotenant.launch import allowances, load, schedule
from cotenant.launch.events import Interruption
from cotenant.launch.launch import Launch
from cotenant.launch.limits import Limits
from cotenant.launch.outcome import LaunchResult
from cotenant.launch.records import _duet_ratio, _placed
from cotenant.launch.tenant import DuetPlace, duet_place
from cotenant.protocol.messages import RUN_VARIABLE, TENANT_VARIABLE
from cotenant.results.build import Statement, observed_by_ranks
from tenants.fakes import specs
from tenants.suites import TENANTS, Suites, job

MS = 1_000_000
SUMS = (str(TENANTS / "sums.py"), "--number", "1", "--repeat", "9")


@pytest.fixture
def affinity() -> Iterator[Affinity]:
    backend = Affinity()
    backend.open(RunName())
    yield backend
    backend.close()


def launched(
    folder: Path, backend: Affinity, interruption: Interruption, limits: Limits, *further: tuple[str, ...]
) -> LaunchResult:
    """Launch tenants in one slice, of which each has some words more."""
    planned = [
        dataclasses.replace(
            spec,
            command=[*spec.command, *words],
            environment=spec.environment | {RUN_VARIABLE: str(RunName()), TENANT_VARIABLE: str(index)},
            cell=f"sums.{index}",
            duet=duet_place(index),
        )
        for index, (spec, words) in enumerate(zip(specs(folder, *SUMS, tenants=len(further)), further, strict=True))
    ]
    return Launch(planned, backend, interruption, limits, takes_turns=True).run()


def test_in_every_other_slice_b_begins() -> None:
    places = [duet_place(tenant) for tenant in range(6)]
    assert places == [DuetPlace(side, place) for place in range(3) for side in "AB"]  # type: ignore[arg-type]
    assert [place.turn for place in places] == [0, 1, 1, 0, 0, 1]


def test_two_take_turns_and_the_slower_one_is_seen(
    tmp_path: Path, affinity: Affinity, interruption: Interruption, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "MEASURED_NS", 50 * MS)
    monkeypatch.setattr(schedule, "AFTER_THAW_NS", 20 * MS)
    monkeypatch.setattr(schedule, "AFTER_BORDER_NS", 10 * MS)
    monkeypatch.setattr(schedule, "MOST_DUET_ROUNDS", 4)
    for module in (schedule, allowances, load):
        monkeypatch.setattr(module, "LEAST_ROUNDS", 4)
    # A sleep that is ten times the step: no load of the host makes up for it.
    result = launched(tmp_path, affinity, interruption, Limits(timeout_s=30), (), ("--sleep", "0.02"))
    assert [tenant.outcome for tenant in result.tenants] == ["completed", "completed"]
    made = result.conducted
    assert made is not None
    assert (made.held_by, len(made.passed), made.unheld) == ("stopped", 1 + 4 * (4 + 1), {})
    placed = []
    for tenant in result.tenants:
        observed, _ = observed_by_ranks({0: tenant.ranks[0].observations})
        spans = [(row.start_ns, row.end_ns) for row in observed]
        own = tenant.spec.slice.tenant
        found = schedule.places(spans, made.passed, own, made.schedule)
        assert {place.kind for place in found if place.kept} == {"turn"}
        # In the other's turns it made nothing.
        rests = [one for one in made.passed if own not in one.block.awake]
        assert len(rests) == 10
        for one in rests:
            assert not [span for span in spans if one.start_ns < span[0] and span[1] < one.end_ns]
        placed.append(Statement(observations=_placed(observed, made, own)))
    ratio = _duet_ratio(result, placed)
    assert ratio is not None
    assert ratio.rounds == 4
    assert ratio.value < 0.7


def test_what_cannot_take_turns_is_no_duet_and_says_why(
    tmp_path: Path, affinity: Affinity, interruption: Interruption
) -> None:
    limits = Limits(timeout_s=30, budget_s=0.5)
    result = launched(tmp_path, affinity, interruption, limits, (), ())
    assert {tenant.outcome for tenant in result.tenants} == {"failed"}
    (message,) = {tenant.message for tenant in result.tenants}
    assert message.startswith("A duet takes turns, which cannot be had here: 8 rounds of steps of ")


@pytest.mark.slow
@pytest.mark.v1
@pytest.mark.parametrize("slices", [1, 2])
def test_a_run_that_is_slower_ends_with_3_and_says_so_again_from_its_records(v1: Suites, slices: int) -> None:
    words = ("--duet", "job", "--users", slices, "--budget", 15, "--", "---", "--sleep", "0.01")
    ended = v1.run([job("sums.py", "--number", 1, "--repeat", 8)], *words, limit_s=120)
    assert ended.returncode == 3, ended.stdout + ended.stderr
    assert "B is slower than A: it has" in ended.stdout
    assert "A: the job as it is; B: --sleep 0.01" in ended.stdout
    records = v1.records()
    assert [record["name"] for record in records] == ["job.duet.A", "job.duet.B"] * slices
    assert len({str(record["duet"]["ratio"]) for record in records}) == 1
    # Both sides of a slice do the work of one seed.
    assert [record["seed"] for record in records] == [100 * (1 + place) for place in range(slices) for _ in "AB"]
    for record in records:
        assert (record["blocks"]["held_by"], record["blocks"]["void"]) == ("freezer", 0)
        assert record["blocks"]["spent"]["rest"]["processor_ns"] == 0
        assert record["kept"] is None
        assert not [found for found in record["findings"] if found["severity"] == "error"]
