"""A broken promise is printed, and the exit status is 1; the measurements here are invented."""

from __future__ import annotations

import itertools
import subprocess
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from benchmarks.conftest import Load
from cotenant.stats.verdict import Verdict

Patch = pytest.MonkeyPatch
Printed = pytest.CaptureFixture[str]


def test_a_bound_is_kept_up_to_itself_and_says_so(load: Load) -> None:
    promise = load("promises").Promise
    assert promise("<=", 3, "ms").verdict(3.0) == "<= 3 ms: kept"
    assert promise("<", 1, "s").verdict(1.0) == "< 1 s: BROKEN"
    assert promise(">=", 0.99, of="worst").verdict(0.99) == "worst >= 0.99: kept"
    assert not promise("<", 1).kept(float("nan"))


@pytest.mark.parametrize(("reads", "status"), [(16.0, 0), (16.1, 1)])
def test_harness(reads: float, status: int, load: Load, monkeypatch: Patch, capsys: Printed) -> None:
    module, median_of = load("harness"), load("pairs").median_of

    def per_batch(resident: bool) -> tuple[Any, ...]:
        return median_of([1400.0] * 6), median_of([reads if resident else 12.5] * 6), median_of([88.0] * 6)

    monkeypatch.setattr(module, "one_processor", lambda: None)
    monkeypatch.setattr(module, "per_batch", per_batch)
    assert module.main() == status
    assert "1400 ns [1400, 1400]" in capsys.readouterr().out


def test_a_clock_read_is_timed_after_each_turn_of_a_pair(load: Load, monkeypatch: Patch) -> None:
    module = load("harness")
    reads_ns = itertools.count(10.0, 10.0)
    monkeypatch.setattr(module, "STEPS", 2)
    monkeypatch.setattr(module, "PAIRS", 7)
    monkeypatch.setattr(module, "clock_read_ns", lambda: next(reads_ns))
    _, _, pace = module.per_batch(resident=True)
    # 10 and 20 ns belong to the uncounted pair; the median, the fourth of the seven others, read 90 and 100.
    assert (pace.value, pace.n) == (95.0, 7)


@pytest.mark.parametrize(("late_s", "status"), [(0.0, 0), (1.5, 1)])
def test_start(late_s: float, status: int, load: Load, monkeypatch: Patch) -> None:
    module = load("start")

    def run(command: list[str], cwd: Path, **how: Any) -> subprocess.CompletedProcess[str]:
        output = cwd / "workspace" / "output"
        output.mkdir(parents=True, exist_ok=True)
        (output / "started.0").write_text(str(time.time_ns() + round(late_s * 1e9)))
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(module.subprocess, "run", run)
    assert module.main() == status


@pytest.mark.parametrize(
    ("work_ms", "entered_ms", "status"), [(2.9, 40.5, 0), (3.1, 40.5, 1), (2.9, 41.1, 1)], ids=["kept", "work", "start"]
)
def test_cost(work_ms: float, entered_ms: float, status: int, load: Load, monkeypatch: Patch) -> None:
    module = load("cost")
    backend = SimpleNamespace(name="none", open=lambda name: None, close=lambda: None)
    slices = SimpleNamespace(
        cgroup_work=lambda: round(work_ms * 1e6), entered=lambda: round(entered_ms * 1e6), plain=lambda: 1_000_000
    )
    monkeypatch.setattr(module, "choose_backend", lambda *asked: SimpleNamespace(backend=backend))
    monkeypatch.setattr(module, "Slices", lambda *given: slices)
    assert module.main() == status


def met(name: str, launches: int, skew_ns: int, overlap: float, share: float) -> list[dict[str, Any]]:
    """Return a record for each launch, all with this skew, and the last with this overlap and share."""
    good = {"overlap": 1.0, "share": 0.003}
    rows = [good] * (launches - 1) + [{"overlap": overlap, "share": share}]
    return [
        {
            "name": name,
            "start_time": str(index),
            "rendezvous": {"start_skew_ns": skew_ns, "overlap": row["overlap"]},
            "meters": {"runner_processor_share": row["share"]},
        }
        for index, row in enumerate(rows)
    ]


@pytest.mark.parametrize(
    ("seen", "status"),
    [((900, 0.99, 0.009), 0), ((1_100_000, 1.0, 0.001), 1), ((900, 0.98, 0.001), 1), ((900, 1.0, 0.01), 1)],
    ids=["kept", "skew", "overlap of one launch", "share of one launch"],
)
def test_meeting(seen: tuple[int, float, float], status: int, load: Load, monkeypatch: Patch) -> None:
    module = load("meeting")
    records = [*met("toy_reg", module.LAUNCHES, *seen), *met("vae", 5, 900, 1.0, 0.001)]
    monkeypatch.setattr(module, "run_suite", lambda *asked: records)
    assert module.main() == status


@pytest.mark.parametrize(
    ("rate", "left", "status"), [(90.0, [], 0), (89.0, [], 1), (90.0, ["process 7"], 1)], ids=["kept", "slow", "left"]
)
def test_adversaries(
    rate: float, left: list[str], status: int, load: Load, monkeypatch: Patch, capsys: Printed
) -> None:
    module = load("adversaries")
    rates = {module.ALONE: 100.0, "memory hog": rate, "one busy loop": 40.0}

    def neighbour_rate(place: Path, deed: str, isolation: str) -> float:
        return rates[deed] if isolation == "auto" else 10.0

    monkeypatch.setattr(module, "neighbour_rate", neighbour_rate)
    monkeypatch.setattr(module, "left_behind", lambda scratch: left)
    assert module.main([*rates.keys() - {module.ALONE}, "--rounds", "1"]) == status
    assert f"Left behind after 6 launches: {', '.join(left) or 'nothing'}" in capsys.readouterr().out


def bounds(module: ModuleType, shares: tuple[float, ...], unknown: int) -> list[Any]:
    return [
        module.Bound("A", "foreign load", shares, unknown, "0.1 processors"),
        module.Bound("B", "steal", (0.0,) * 5, 0, "1 % of all processors"),
    ]


@pytest.mark.parametrize(
    ("shares", "unknown", "said"),
    [
        ((0.5,) * 5, 0, "Shown: none of 1 jobs is FASTER or SLOWER (1 SAME) with 5 launches a side."),
        ((0.5,), 4, "No job looks different, but nobody knows of foreign load in 4 launches of A: this is no proof."),
        ((), 5, "No job looks different, but nobody knows of foreign load in 5 launches of A: this is no proof."),
        ((0.5, 1.6), 3, "No job looks different, but the machine was not quiet: this is no proof."),
    ],
    ids=["quiet", "most unknown", "all unknown", "busy"],
)
def test_aa_claims_quiet_only_of_launches_that_are_known(
    shares: tuple[float, ...], unknown: int, said: str, load: Load
) -> None:
    module = load("aa")
    same = SimpleNamespace(job="vae", verdict=Verdict.SAME, comparison=SimpleNamespace(n=(5, 5)))
    found = bounds(module, shares, unknown)
    assert module._said(SimpleNamespace(lines=[same]), found) == (said, 0 if said.startswith("Shown") else 1)
    assert found[0].quiet == said.startswith("Shown")


@pytest.mark.parametrize(
    ("shares", "quiet"),
    [((0.5, 0.9, 5.0), True), ((0.5, 0.9, 5.1), False), ((0.5, 1.1, 1.2), False), ((), False)],
    ids=["a burst", "too long a burst", "all the time", "unknown"],
)
def test_aa_allows_one_launch_more_than_most(shares: tuple[float, ...], quiet: bool, load: Load) -> None:
    assert load("aa").Bound("A", "steal", shares, 0, "1 %").quiet == quiet
