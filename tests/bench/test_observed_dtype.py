from __future__ import annotations

import functools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from bench.small import Small
from cotenant.bench import Run
from cotenant.bench.loop import Loop
from cotenant.bench.observed import _runs_in_tf32, observed_dtype


@pytest.mark.parametrize("dtype, name", [(torch.float32, "fp32"), (torch.bfloat16, "bf16"), (torch.float64, "fp64")])
@pytest.mark.parametrize(
    "product",
    [
        lambda x: x @ x,
        lambda x: nn.functional.conv1d(x[None], x[:, :, None]),
        lambda x: torch.bmm(x[None], x[None]),
        lambda x: nn.functional.linear(x, x, x[0]),
    ],
)
def test_products_are_seen(product: Any, dtype: torch.dtype, name: str) -> None:
    x = torch.ones(4, 4, dtype=dtype)
    result, seen = observed_dtype(lambda: product(x))
    assert (result.dtype, seen) == (dtype, name)


def test_the_heaviest_products_decide() -> None:
    small, large = torch.ones(4, 4), torch.ones(64, 64, dtype=torch.bfloat16)

    def step() -> None:
        for _ in range(10):
            small @ small
        large @ large

    assert observed_dtype(step)[1] == "bf16"


def test_a_recurrent_layer_is_seen() -> None:
    assert observed_dtype(lambda: nn.LSTM(4, 4)(torch.ones(3, 2, 4)))[1] == "fp32"


def test_no_product_no_dtype() -> None:
    assert observed_dtype(lambda: torch.ones(3) + 1) == (pytest.approx(torch.full((3,), 2.0)), None)


@pytest.mark.parametrize("products", [False, True])
@pytest.mark.parametrize("convolutions", [False, True])
def test_tf32_has_its_own_name_by_the_switch_of_each_library(products: bool, convolutions: bool) -> None:
    """One that another library turns on again, as torch has convolutions' by default, is seen under fp32."""
    torch.set_float32_matmul_precision("high" if products else "highest")
    torch.backends.cudnn.allow_tf32 = convolutions
    operand: Any = SimpleNamespace(dtype=torch.float32, is_cuda=True)
    asked = ("mm", "addmm", "convolution", "convolution_backward", "_cudnn_rnn")
    assert [_runs_in_tf32(one, operand) for one in asked] == [products] * 2 + [convolutions] * 3
    for other in ({"is_cuda": False}, {"dtype": torch.bfloat16}):
        assert not any(_runs_in_tf32(one, SimpleNamespace(**vars(operand) | other)) for one in asked)


def test_making_the_batch_does_not_count() -> None:
    class Made(Small):
        def batches(self, run: Run) -> Iterator[torch.Tensor]:
            while True:
                yield torch.ones(4, 500) @ torch.ones(500, 3)

    benchmark = Made(precision="bf16")
    loop = Loop(benchmark, Run(benchmark))
    loop.warm_up()
    assert loop.observed_dtype == "bf16"


def test_a_compiled_model_is_watched_uncompiled_and_then_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        compiled.append(graph)
        return graph.forward

    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend=backend))
    benchmark = Small(precision="bf16", compile=True)
    loop = Loop(benchmark, Run(benchmark))
    assert not compiled
    loop.warm_up()
    assert loop.observed_dtype == "bf16"
    assert len(compiled) == 1
    loop.observe(3)
    assert len(compiled) == 1
