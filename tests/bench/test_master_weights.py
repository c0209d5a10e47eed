"""fp16 weights train like fp32 ones: their fp32 copies are scaled, clipped, skipped and stepped, and given back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from cotenant.bench.observed import described
from cotenant.bench.precision import MasterWeights, Precision

Optimizer = Callable[..., torch.optim.Optimizer]


def half(scale: float = 1024.0) -> Precision:
    """fp16 weights on a CPU, which no run would be given."""
    return Precision(
        "half",
        autocast=torch.autocast("cpu", torch.float16),
        outside=torch.autocast("cpu", enabled=False),
        scaler=torch.amp.GradScaler("cpu", init_scale=scale),
    )


def linear(precision: Precision) -> nn.Linear:
    torch.manual_seed(0)
    model = nn.Linear(4, 1, bias=False)
    return precision.convert(model)  # type: ignore[return-value]


def one_update(precision: Precision, model: nn.Module, optimizer: torch.optim.Optimizer, factor: float = 1.0) -> None:
    def step(run: Any, batch: torch.Tensor) -> torch.Tensor:
        loss = factor * model(batch).float().sum()
        precision.update(loss, optimizer)
        return loss

    precision.around(step)(None, torch.ones(2, 4, dtype=model.weight.dtype))


@pytest.mark.parametrize("fused", [False, True])
def test_adam_moves_weights_where_without_copies_it_divides_by_zero(fused: bool) -> None:
    precision, gradient = half(), 1e-6
    model = linear(precision)
    before = model.weight.detach().clone()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=fused)
    for _ in range(3):
        one_update(precision, model, optimizer, gradient / 2)
    torch.testing.assert_close(model.weight, before - 0.03, atol=1e-3, rtol=0)

    plain = linear(precision)
    optimizer = torch.optim.Adam(plain.parameters(), lr=0.01)
    plain.weight.grad = torch.full_like(plain.weight, gradient)
    optimizer.step()
    assert not plain.weight.isfinite().any()


def test_steps_too_small_for_fp16_add_up() -> None:
    precision = half()
    model = linear(precision)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    model.weight.data.fill_(1.0)
    for _ in range(100):
        one_update(precision, model, optimizer)
    torch.testing.assert_close(model.weight.float(), torch.full((1, 4), 1 - 100 * 2e-5), atol=5e-4, rtol=0)
    assert (torch.ones((), dtype=torch.float16) - 2e-5 == 1).item()


def test_an_overflow_leaves_weights_and_copies_and_halves_the_scale() -> None:
    precision = half(scale=1024.0)
    model = linear(precision)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model.weight.detach().clone()
    one_update(precision, model, optimizer, 1e4)
    assert precision.scaler is not None
    assert torch.equal(model.weight, before)
    assert torch.equal(optimizer.param_groups[0]["params"][0], before.float())
    assert precision.scaler.get_scale() == 512.0
    one_update(precision, model, optimizer, 1e-3)
    assert not torch.equal(model.weight, before)


def test_clipping_is_of_unscaled_gradients() -> None:
    precision = half()
    model = linear(precision)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    before = model.weight.detach().clone()
    precision.update(model(torch.ones(2, 4, dtype=torch.float16)).float().sum(), optimizer, clip_norm=0.5)
    # The gradient is 2 in each of 4 places, its norm 4: an eighth of it is left.
    torch.testing.assert_close(model.weight, before - 0.25)


def test_several_optimizers_share_a_scaler_and_keep_their_copies_apart() -> None:
    precision = half(scale=4.0)
    one, two = linear(precision), linear(precision)
    first, second = (torch.optim.SGD(model.parameters(), lr=0.1) for model in (one, two))
    before = one.weight.detach().clone()
    one_update(precision, one, first, float("inf"))
    one_update(precision, two, second)
    assert precision.scaler is not None
    assert precision.scaler.get_scale() == 2.0
    assert torch.equal(one.weight, before)
    torch.testing.assert_close(two.weight, before - 0.2)
    assert precision.masters.keys() == {first, second}


def test_norms_are_stepped_themselves() -> None:
    precision = half()
    model = precision.convert(nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    precision.update(model[1](model[0](torch.randn(2, 4, dtype=torch.float16)).float()).square().sum(), optimizer)
    stepped = optimizer.param_groups[0]["params"]
    assert stepped[2] is model[1].weight
    assert {parameter.dtype for parameter in stepped} == {torch.float32}
    assert described(optimizer, precision) == {
        "name": "SGD",
        "package": "torch",
        "fused": False,
        "weights": "fp16",
        "stepped": "fp32",
    }


def test_only_norms_is_possible_too() -> None:
    precision = half()
    norm = precision.convert(nn.LayerNorm(4))
    optimizer = torch.optim.SGD(norm.parameters(), lr=0.1)
    precision.update((norm(torch.randn(2, 4)) * torch.arange(4.0)).sum(), optimizer)
    assert not torch.equal(norm.bias, torch.zeros(4))
    assert described(optimizer, precision)["weights"] == "fp32"


def test_a_weight_without_a_gradient_is_left_alone() -> None:
    precision = half()
    used, unused = linear(precision), linear(precision)
    optimizer = torch.optim.SGD([*used.parameters(), *unused.parameters()], lr=0.1, weight_decay=0.1)
    before = unused.weight.detach().clone()
    for _ in range(2):
        one_update(precision, used, optimizer)
    assert torch.equal(unused.weight, before)
    assert not torch.equal(used.weight, before)
    # Nor does it keep the gradient of an earlier step.
    one_update(precision, unused, optimizer)
    after = used.weight.detach().clone()
    one_update(precision, unused, optimizer)
    assert torch.equal(used.weight, after)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_memory_format_and_groups_are_kept(dtype: torch.dtype) -> None:
    conv = nn.Conv2d(3, 8, 3).to(dtype=dtype, memory_format=torch.channels_last)
    groups = [{"params": [conv.weight], "lr": 0.5}, {"params": [conv.bias]}]
    optimizer = torch.optim.SGD(groups, lr=0.1)
    masters = MasterWeights(optimizer)
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.1]
    (copy,) = optimizer.param_groups[0]["params"]
    assert (copy.dtype, copy.is_contiguous(memory_format=torch.channels_last)) == (torch.float32, True)
    assert masters.dtype == dtype
