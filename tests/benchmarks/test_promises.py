"""A broken promise is printed, and the exit status is 1; the measurements here are invented."""

from __future__ import annotations

import itertools
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.conftest import Load
from cotenant.stats.kept import Kept

Patch = pytest.MonkeyPatch
Printed = pytest.CaptureFixture[str]


def test_a_bound_is_kept_up_to_itself_and_says_so(load: Load) -> None:
    promise = load("measure").Promise
    assert promise("<=", 3, "ms").verdict(3.0) == "<= 3 ms: kept"
    assert promise("<", 1, "s").verdict(1.0) == "< 1 s: BROKEN"
    assert not promise("<", 1, "s").kept(float("nan"))


@pytest.mark.parametrize(("reads", "status"), [(16.0, 0), (16.1, 1)])
def test_harness(reads: float, status: int, load: Load, monkeypatch: Patch, capsys: Printed) -> None:
    module, median_of = load("harness"), load("measure").median_of

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


@pytest.mark.parametrize(("seconds", "status"), [(0.01, 0), (0.2, 1)])
def test_commands(seconds: float, status: int, load: Load, monkeypatch: Patch, capsys: Printed) -> None:
    module = load("commands")
    monkeypatch.setattr(module, "make_records", lambda workplace, launches: None)
    monkeypatch.setattr(module, "user_seconds", lambda *asked: seconds)
    monkeypatch.setattr("sys.argv", ["commands.py", "--turns", "6"])
    assert module.main() == status
    assert f"{seconds:.2f} s" in capsys.readouterr().out


def test_shares_differ_if_each_is_outside_the_others_interval(load: Load) -> None:
    module = load("kept")

    def kept(value: float, low: float, high: float) -> Kept:
        return Kept(value, (low, high), 5, "launches")

    assert module.differ(kept(0.9, 0.88, 0.92), kept(0.8, 0.78, 0.82)) == "yes"
    assert module.differ(kept(0.9, 0.88, 0.92), kept(0.87, 0.80, 0.91)) == "no"
    assert module.differ(kept(0.9, 0.88, 0.92), None) == "-"
    assert module.shown(kept(0.9, 0.88, 0.92)) == ("0.900 [0.880, 0.920]", "5 launches")
