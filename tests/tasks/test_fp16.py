"""Every task in fp16 and in half: it trains in fp16 products, and what its optimizers step is fp32."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from cotenant.bench.observed import described, observed_dtype, watched_updates
from tasks.loading import SMALL, TASKS, benchmark_in, in_fp16, main_of

pytestmark = pytest.mark.usefixtures("one_thread")

SLOW = ("object_detection/single_stage_detector",)
SCALE = 64.0  # Small enough that no gradient overflows: a few steps have to do.
STEPS = {"reinforcement/cart_pole": 60, "object_detection/single_stage_detector": 0}
# An optimizer that is not fused reads the scaler's verdict on the host; this task reads its actions there anyway.
WAITS = ("reinforcement/cart_pole",)
PLACES = [pytest.param(place, marks=pytest.mark.slow) if place in SLOW else place for place in SMALL]


def test_every_task_that_trains_is_here() -> None:
    trains = {str(path.parents[1].relative_to(TASKS)) for path in TASKS.glob("*/*/pytorch/main.py")}
    nothing = {"image_loading/loader", *(f"ceilings/{what}" for what in ("product", "triad", "reading"))}
    assert trains - SMALL.keys() == nothing


@pytest.fixture
def without_onednn() -> Iterator[None]:
    """On many processors it has no LSTM in fp16."""
    torch.backends.mkldnn.set_flags(_enabled=False)
    yield
    torch.backends.mkldnn.set_flags(_enabled=True)


@pytest.mark.usefixtures("small_tables", "without_onednn")
@pytest.mark.parametrize("name", ["fp16", "half"])
@pytest.mark.parametrize("place", PLACES)
def test_a_task_trains(place: str, name: str) -> None:
    benchmark, run = in_fp16(benchmark_in(main_of(place)), name, SCALE, **SMALL[place])
    batches, step = iter(benchmark.batches(run)), run.precision.around(benchmark.step)
    with watched_updates(run) as optimizers:
        first, dtype = observed_dtype(lambda: step(run, next(batches)))
        steps = [first, *(step(run, next(batches)) for _ in range(STEPS.get(place, 2)))]
    assert dtype == "fp16"
    assert torch.stack([loss.detach().float() for loss in steps if loss is not None]).isfinite().all()
    assert optimizers
    for optimizer in optimizers:
        told = described(optimizer, run.precision)
        assert (told["weights"], told["stepped"]) == ("fp16" if name == "half" else "fp32", "fp32")
        assert told["fused"] == (place not in WAITS)
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        assert all(parameter.isfinite().all() for parameter in parameters)
        assert {parameter.dtype for parameter in parameters} == {torch.float32}
    assert run.precision.scaler is not None
    assert run.precision.scaler.get_scale() == SCALE
