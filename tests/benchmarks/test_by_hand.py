"""Every loop written by hand does the work of its task: it trains as many parameters from a similar first loss."""

from __future__ import annotations

import inspect
import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.conftest import BENCHMARKS, Load
from tasks.loading import built, draw_pictures, of

SMALL: dict[str, dict[str, Any]] = {
    "toy_reg": {"batch_size": 64},
    "toy_lstm": {"length": 20},
    "vae": {"batch_size": 16},
    "reso": {"batch_size": 1, "crop": 32},
    "wlm": {"batch_size": 2, "words": 504, "emsize": 16, "nhid": 24},
    "wlmfp16": {"batch_size": 2, "words": 504, "emsize": 16, "nhid": 24, "precision": "bf16"},
    "cart": {},
    "dcgan": {"batch_size": 2},
    "convnet": {"batch_size": 4, "size": 32},
    "recom": {"batch_size": 64},
    "scaling": {"batch_size": 4, "size": 32},
}


def ours(task: str, arguments: dict[str, Any]) -> tuple[int, float]:
    """Return the number of parameters that a task trains, and its first loss."""
    benchmark, run = built(of(task), **arguments)
    batches, step = iter(benchmark.batches(run)), run.precision.around(benchmark.step)
    losses = (step(run, next(batches)) for _ in itertools.count())
    loss = next(loss for loss in losses if loss is not None).item()
    modules = (value for value in vars(benchmark).values() if isinstance(value, torch.nn.Module))
    return trained(*modules), loss


def trained(*modules: torch.nn.Module) -> int:
    return sum({one: one.numel() for part in modules for one in part.parameters() if one.requires_grad}.values())


def script(load: Load, page: str, arguments: dict[str, Any]) -> Any:
    torch.manual_seed(0)
    found = load(f"by_hand/{page}").script
    known = inspect.signature(found).parameters
    return found(**{name: value for name, value in arguments.items() if name in known})


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    "name", [name if name in ("vae", "cart") else pytest.param(name, marks=pytest.mark.slow) for name in SMALL]
)
def test_it_is_the_work_of_its_task(load: Load, name: str) -> None:
    job = load("jobs").JOBS[name]
    assert SMALL[name].keys() >= job.arguments.keys()
    parameters, loss = ours(job.task, SMALL[name])
    steps = script(load, job.page, SMALL[name])
    assert trained(next(steps)) == parameters > 0
    by_hand = next(one for one in steps if one is not None).item()
    # Random networks judge random pictures, so that the losses are only of the same size.
    assert loss / 5 < by_hand < loss * 5 or by_hand == pytest.approx(loss, abs=0.05)


@pytest.mark.filterwarnings("ignore:The image decoding:DeprecationWarning")
def test_images_are_read_as_by_the_task(load: Load, tmp_path: Path) -> None:
    folder = draw_pictures(tmp_path / "train")
    steps = script(load, "loader", {"batch_size": 4, "data": folder})
    assert trained(next(steps)) == 0
    assert list(itertools.islice(steps, 5)) == [None] * 5
    images, labels = steps.gi_frame.f_locals["_images"], steps.gi_frame.f_locals["_labels"]
    assert (images.shape, images.dtype, labels.shape) == ((4, 3, 224, 224), torch.float32, (4,))
    assert -2.2 < images.min() < 0 < images.max() < 2.7


def test_episodes_are_played_in_step(load: Load) -> None:
    """Both sides of a pair then have episodes of equal lengths."""
    benchmark, run = built(of(load("jobs").JOBS["cart"].task))
    steps = script(load, "cart", {})
    next(steps)
    for turn in range(10):
        torch.manual_seed(turn)
        expected = [benchmark.step(run, None) for _ in range(50)]
        torch.manual_seed(turn)
        assert list(itertools.islice(steps, 50)) == expected


@pytest.mark.parametrize("page", sorted(path.stem for path in (BENCHMARKS / "by_hand").glob("*.py")))
def test_it_knows_nothing_of_ours(page: str, load: Load) -> None:
    text = (BENCHMARKS / "by_hand" / f"{page}.py").read_text()
    assert "cotenant" not in text
    assert page in {job.page for job in load("jobs").JOBS.values()}
