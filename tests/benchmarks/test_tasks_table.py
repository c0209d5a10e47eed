from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.conftest import BENCHMARKS, Load


def found(pairs: int, ours_ns: int, other: float, same: float = 1.0, harness_ns: float = 700.0) -> dict[str, Any]:
    """Return one start's result: our rate is `other` times the other code's, and `same` times a bare loop's."""
    return {
        against: ([ours_ns] * pairs, [round(ours_ns * rate)] * pairs)
        for against, rate in (("other", other), ("same", same))
    } | {"harness_ns": [harness_ns] * 9}


def test_every_job_of_the_reference_suite_is_there(load: Load) -> None:
    profile = json.loads((BENCHMARKS.parent / "profiles" / "cpu.json").read_text())
    assert list(load("jobs").JOBS)[: len(profile)] == [job["name"] for job in profile]


@pytest.mark.parametrize(
    "pairs, ours_ns, rates, verdict",
    [
        (200, 1_000_000, {"other": 1.0}, "kept"),
        (200, 1_000_000, {"other": 0.995}, "kept"),
        (200, 1_000_000, {"other": 0.994}, "BROKEN: slower than other code"),
        (200, 1_000_000, {"other": 1.0, "same": 0.99}, "BROKEN: slower than a bare loop"),
        (200, 1_000_000, {"other": 1.0, "harness_ns": 6000.0}, "BROKEN: slower than a bare loop"),
        (199, 1_000_000, {"other": 1.0}, "open: fewer than 400 pairs"),
        (10, 20_000_000, {"other": 1.0, "same": 0.9}, "kept"),
        (10, 20_000_000, {"other": 1.0, "harness_ns": 110_000.0}, "BROKEN: slower than a bare loop"),
        (2, 20_000_000, {"other": 1.0}, "open: fewer than 6 pairs"),
        (10, 20_000_000, {"other": 0.99}, "BROKEN: slower than other code"),
    ],
)
def test_verdicts(load: Load, pairs: int, ours_ns: int, rates: dict[str, float], verdict: str) -> None:
    module = load("tasks")
    job = load("jobs").Job("a/task", "page")
    row = module.row_of(job, [found(pairs, ours_ns, **rates)] * 2)
    assert (row.other.n, row.step_ns) == (2 * pairs, ours_ns)
    assert row.verdict == verdict


def test_a_job_that_fails_is_a_row_of_the_table(
    load: Load, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = load("tasks")
    asked: list[str] = []

    def start(name: str, *arguments: str, **how: Any) -> dict[str, Any]:
        asked.append(name)
        if name == "vae":
            raise module.StartError("ValueError: It has no numbers.")
        return found(4, 20_000_000, other=1.01)

    monkeypatch.setattr(module, "start", start)
    assert module.main(["vae", "reso", "--pairs", "16"]) == 1
    shown = capsys.readouterr().out
    assert "ValueError: It" in shown
    assert "1.0100 [1.0100, 1.0100]" in shown
    assert asked == ["vae", "reso", "reso"]


def test_an_unknown_job_is_named(load: Load, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        load("tasks").main(["vea"])
    assert "there is no job vea; the jobs are toy_reg" in capsys.readouterr().err


def test_the_reason_is_the_first_error_named(load: Load) -> None:
    reason = load("tasks").reason
    assert reason("x\nTraceback:\n  line\nValueError: bad size\nat exit\n") == "ValueError: bad size"
    assert reason("[rank1]: torch.cuda.OutOfMemoryError: full\nChildFailedError: 1\n").endswith(
        "OutOfMemoryError: full"
    )
    assert reason("killed\n") == "killed"
    assert reason("") == ""


def test_a_start_that_takes_too_long_is_ended(load: Load, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = load("tasks")
    endless, wrong, right = (tmp_path / f"{name}.py" for name in ("endless", "wrong", "right"))
    endless.write_text("import time\ntime.sleep(60)\n")
    wrong.write_text("raise KeyError('what')\n")
    right.write_text(
        "import pathlib, sys\npathlib.Path(sys.argv[sys.argv.index('--to') + 1]).write_text('{\"a\": 1}')\n"
    )
    for script, limit_s, said in ((endless, 0.2, "longer than 0.2 s"), (wrong, 60, "KeyError: 'what'")):
        monkeypatch.setattr(module, "VERSUS", script)
        monkeypatch.setattr(module, "LIMIT_S", limit_s)
        with pytest.raises(module.StartError, match=said):
            module.start("vae")
    monkeypatch.setattr(module, "VERSUS", right)
    assert module.start("vae") == {"a": 1}


def test_pairs_draw_the_same_numbers_and_take_turns(load: Load) -> None:
    import torch

    drawn: list[tuple[str, float]] = []

    def side(name: str) -> Any:
        return lambda: drawn.append((name, torch.rand(()).item())) or len(drawn)

    a, b = load("measure").interleaved(side("a"), side("b"), 4)
    names = [name for name, _ in drawn]
    assert names == ["a", "b", "b", "a"] * 2 + ["a", "b"]
    numbers = [number for _, number in drawn]
    assert numbers[::2] == numbers[1::2]
    assert len(set(numbers)) == 5
    assert (len(a), len(b)) == (4, 4)
    assert sorted(a + b) == list(range(3, 11))
