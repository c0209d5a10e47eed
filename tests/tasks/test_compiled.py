"""`--compile` on a shipped task: what is compiled says so, and learns what the plain form learns."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cotenant.bench import Run
from cotenant.bench.facts import tenant_facts
from cotenant.bench.loop import Loop
from tasks.loading import PLACES, ROOT, TASKS, benchmark_of, draw_pictures

COMPILERS = ("g++", "clang++", "c++")
STEPS = 9


def ran(folder: Path, *words: str) -> dict[str, Any]:
    """Return the record of a run of toy_reg with these words; what is compiled lies below `folder`."""
    report = folder / f"{len(words)}.json"
    program = TASKS / PLACES["toy_reg"] / "pytorch" / "main.py"
    common = ["--no-cuda", "--repeat", str(STEPS), "--number", "1", "--report", str(report)]
    ended = subprocess.run(
        [sys.executable, str(program), *common, *words],
        env=os.environ | {"PYTHONPATH": str(ROOT / "common"), "TORCHINDUCTOR_CACHE_DIR": str(folder / "compiled")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    record: dict[str, Any] = json.loads(report.read_text())
    return record


@pytest.mark.slow
@pytest.mark.skipif(not any(map(shutil.which, COMPILERS)), reason="torch.compile needs a C++ compiler: apt install g++")
def test_a_compiled_task_says_so_and_learns_the_same(tmp_path: Path) -> None:
    plain = ran(tmp_path)
    assert not list(tmp_path.glob("compiled/**/*.cpp"))
    compiled = ran(tmp_path, "--compile")
    assert list(tmp_path.glob("compiled/**/*.cpp"))
    assert [one["observed"]["compiled"] for one in (plain, compiled)] == [False, True]
    assert [one["ignored"] for one in (plain, compiled)] == [[], []]
    # On a slow processor compiling takes so long that the warm-up ends a step earlier.
    late = len(plain["rendezvous"]["warm_up_ns"]) - len(compiled["rendezvous"]["warm_up_ns"])
    losses, expected = compiled["batch_loss"][late:], plain["batch_loss"][: STEPS - late]
    assert len(expected) == STEPS - late > 0
    assert losses == pytest.approx(expected, rel=1e-4)


def test_a_task_without_a_model_is_never_compiled(tmp_path: Path) -> None:
    pictures = draw_pictures(tmp_path / "train")
    loading: Any = benchmark_of("loader")
    benchmark = loading(cuda=False, compile=True, data=pictures, batch_size=2, size=8, workers=0, decoder="pil")
    loop = Loop(benchmark, run := Run(benchmark))
    assert tenant_facts(run, loop)["observed"]["compiled"] is False
