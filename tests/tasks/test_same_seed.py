"""One seed, one list of losses: bit for bit, on a processor, with two threads, wherever in memory things lie."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from cotenant.bench import Run
from tasks.loading import PLACES, ROOT, SMALL, TASKS, benchmark_in, built, main_of

SEED = 5
STEPS = {"reinforcement/cart_pole": 120, "object_detection/single_stage_detector": 2}
QUICK = ("generative_adversarial_networks/dcgan", "natural_language_processing/rnn_translator")

pytestmark = pytest.mark.usefixtures("small_tables", "two_threads")


@pytest.fixture
def two_threads() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(threads)


def losses(place: str, seed: int, precision: str = "fp32") -> list[float]:
    parameters: dict[str, Any] = SMALL[place] | {"seed": seed, "precision": precision}
    benchmark, run = built(benchmark_in(main_of(place)), **parameters)
    batches, step = iter(benchmark.batches(run)), run.precision.around(benchmark.step)
    values = [step(run, next(batches)) for _ in range(STEPS.get(place, 4))]
    return [loss.item() for loss in values if loss is not None]


def assert_the_same(place: str, times: int) -> None:
    first = losses(place, SEED)
    assert len(set(first)) > 1
    elsewhere = []
    for number in range(1, times):
        elsewhere.append(torch.empty(1000 * number + 7))  # The next run's memory is not where the last one's was.
        assert losses(place, SEED) == first, number
    assert losses(place, SEED + 1) != first


@pytest.mark.parametrize("place", QUICK)
def test_two_runs_are_the_same(place: str) -> None:
    assert_the_same(place, 2)


@pytest.mark.slow
@pytest.mark.parametrize("place", SMALL)
def test_twenty_runs_are_the_same(place: str) -> None:
    assert_the_same(place, 20)


def test_a_run_asks_mkl_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MKL_CBWR")
    Run(benchmark_in(main_of("regression/polynome"))(cuda=False))
    assert os.environ["MKL_CBWR"] == "AUTO"


@pytest.mark.slow
@pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="this torch was built without MKL")
def test_a_benchmark_asks_before_mkl_listens(tmp_path: Path) -> None:
    words = ["--no-cuda", "--repeat", "1", "--number", "2", "--batch-size", "64"]
    ended = subprocess.run(
        [sys.executable, TASKS / PLACES["vae"] / "pytorch" / "main.py", *words],
        env={name: value for name, value in os.environ.items() if name != "MKL_CBWR"}
        | {"PYTHONPATH": str(ROOT / "common"), "MKL_VERBOSE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    products = [line for line in ended.stdout.splitlines() if line.startswith("MKL_VERBOSE SGEMM")]
    assert products
    assert all("CNR:AUTO" in line for line in products)
