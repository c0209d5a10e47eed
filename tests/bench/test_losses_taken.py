"""What becomes of an observation's losses after its clock has stopped."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from cotenant.bench.chrono import Observation
from cotenant.bench.facts import Losses


class SinglePrecision(TorchDispatchMode):
    """A device without fp64, as some of Intel's are: it refuses to make such a tensor."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if any(isinstance(one, torch.Tensor) and one.dtype == torch.float64 for one in tree_leaves(out)):
            raise RuntimeError("Required aspect fp64 is not supported on the device")
        return out


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_device_without_fp64_tells_its_losses(dtype: torch.dtype) -> None:
    kept = [torch.tensor(value, dtype=dtype) for value in (1.5, float("inf"), 0.25)]
    losses = Losses()
    with SinglePrecision():
        losses.take(Observation(0, 1, 3.0, 0, kept, None, True))
    assert losses.summary()["batch_loss"] == [1.5, None, 0.25]
    assert losses.summary()["losses_non_finite"] == 1
