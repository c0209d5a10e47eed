from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from cotenant.bench import Run, UnsupportedError
from cotenant.errors import CotenantError
from tasks.loading import ROOT, TASKS, main_of
from tenants.suites import Suites

PLACE = TASKS / "image_classification" / "scaling" / "pytorch"
SMALL: dict[str, Any] = {"cuda": False, "network": "resnet18", "size": 32, "batch_size": 4}


@pytest.fixture(autouse=True)
def _one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)


@pytest.fixture(scope="module")
def scaling() -> Any:
    return main_of("image_classification/scaling")


def test_resnet101_has_its_parameters(scaling: Any) -> None:
    benchmark = scaling.Scaling(cuda=False)
    benchmark.build(Run(benchmark))
    assert sum(parameter.numel() for parameter in benchmark.model.parameters()) == 44_549_160


@pytest.mark.parametrize(("asked", "started"), [(0, 3), (3, 3)])
def test_devices_are_the_processes_that_were_started(
    scaling: Any, monkeypatch: pytest.MonkeyPatch, asked: int, started: int
) -> None:
    monkeypatch.setenv("WORLD_SIZE", str(started))
    assert scaling.Scaling(devices=asked).devices == started


def test_devices_without_their_processes_are_an_error(scaling: Any) -> None:
    with pytest.raises(CotenantError, match=r"--devices 4 takes as many processes, not 1\. Start it with run\.sh\."):
        scaling.Scaling(devices=4)


def test_an_unknown_network_is_named(scaling: Any) -> None:
    benchmark = scaling.Scaling(cuda=False, network="resnet51")
    with pytest.raises(CotenantError, match="Did you mean 'resnet50'"):
        benchmark.build(Run(benchmark))


def test_input_is_random(scaling: Any) -> None:
    benchmark = scaling.Scaling(**SMALL)
    images, labels = next(iter(benchmark.batches(Run(benchmark))))
    assert (images.shape, labels.dtype) == ((4, 3, 32, 32), torch.int64)
    assert 0.8 < images.std() < 1.2


def test_more_devices_than_there_are_end_as_unsupported(scaling: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVICE_TOTAL", "4")
    with pytest.raises(UnsupportedError, match=r"--devices 8 is more than DEVICE_TOTAL, 4\. Ask for fewer\."):
        scaling.Scaling(devices=8)


@pytest.mark.slow
def test_the_cells_of_the_profile_run_as_far_as_the_devices_go(loose: Suites) -> None:
    """A number of devices that is asked for alone, and is too large, is told by the benchmark."""
    (job,) = json.loads((ROOT / "profiles/scaling.json").read_text())
    small = {"--network": "resnet18", "--size": 32, "--batch-size": 2, "--repeat": 3, "--number": 1, "--no-cuda": ""}
    job = job | {"cmd": str(PLACE / "run.sh"), "args": small | {"--devices": job["args"]["--devices"]}}
    ended = loose.run([job], "--users", 1, limit_s=180)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "scaling: cells of --devices 2-16 are left out, as DEVICE_TOTAL is 1." in ended.stdout
    assert loose.run([job | {"args": small | {"--devices": 2}}], "--users", 1, limit_s=180).returncode == 1
    assert loose.outcomes() == ["completed", "unsupported"]
    assert "--devices 2 is more than DEVICE_TOTAL, 1." in loose.records()[1]["message"]
