"""The dispatcher's view of a step: the dtype of its products, and its operations against closed forms."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torchvision
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from bench.small import Small, loop_of, warmed
from cotenant.bench import Run, observed
from cotenant.bench.facts import tenant_facts
from cotenant.bench.observed import FlopCount, _runs_in_tf32


def test_products_are_seen() -> None:
    for dtype, name in ((torch.float32, "fp32"), (torch.bfloat16, "bf16"), (torch.float64, "fp64")):
        x = torch.ones(4, 4, dtype=dtype)
        for product in (
            lambda x: x @ x,
            lambda x: nn.functional.conv1d(x[None], x[:, :, None]),
            lambda x: torch.bmm(x[None], x[None]),
            lambda x: nn.functional.linear(x, x, x[0]),
        ):
            with FlopCount() as count:
                product(x)
            assert count.dtype == name


def test_the_heaviest_products_decide() -> None:
    small, large = torch.ones(4, 4), torch.ones(64, 64, dtype=torch.bfloat16)
    with FlopCount() as count:
        for _ in range(10):
            small @ small
        large @ large
    assert count.dtype == "bf16"
    with FlopCount() as count:
        nn.LSTM(4, 4)(torch.ones(3, 2, 4))
    assert count.dtype == "fp32"
    with FlopCount() as count:
        torch.ones(3).exp().sum()
    assert (count.dtype, count.total) == (None, None)


@pytest.mark.parametrize("products", [False, True])
@pytest.mark.parametrize("convolutions", [False, True])
def test_tf32_has_its_own_name_by_the_switch_of_each_library(products: bool, convolutions: bool) -> None:
    """TF32 that is on in one library alone, as it is for torch's convolutions by default, is seen under fp32."""
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

    loop, _ = warmed(Made(precision="bf16"))
    assert loop.auditor.dtype == "bf16"


@pytest.mark.slow
def test_a_compiled_model_is_first_watched_uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        compiled.append(graph)
        return graph.forward

    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend=backend))
    loop = loop_of(Small(precision="bf16", compile=True))
    assert not compiled
    loop.warm_up()
    assert loop.auditor.dtype == "bf16"
    assert len(compiled) == 1
    loop.observe(3)
    assert len(compiled) == 1


def forward_and_backward(module: nn.Module, *inputs: torch.Tensor) -> tuple[int, int]:
    """Return the operations of a module's forward pass, and of forward and backward with every gradient."""
    with FlopCount() as count:
        out = module(*(one.requires_grad_() for one in inputs))
        forward = count.flops
        (out[0] if isinstance(out, tuple) else out).sum().backward()
    assert not count.uncounted
    return forward, count.flops


def test_a_linear_layer_is_three_products() -> None:
    forward, step = forward_and_backward(nn.Linear(7, 5), torch.randn(3, 7))
    assert (forward, step) == (2 * 3 * 7 * 5, 3 * 2 * 3 * 7 * 5)
    # An input that needs no gradient costs no operations for one.
    layer, inputs = nn.Linear(7, 5), torch.randn(3, 7)
    with FlopCount() as count:
        layer(inputs).exp().sum().backward()
    assert count.flops == 2 * 2 * 3 * 7 * 5


@settings(max_examples=25, deadline=None)
@given(
    groups=st.integers(1, 4),
    inward=st.integers(1, 3),
    outward=st.integers(1, 3),
    kernel=st.integers(1, 3),
    stride=st.integers(1, 2),
    dilation=st.integers(1, 2),
    transposed=st.booleans(),
)
def test_a_grouped_convolution_is_its_groups_side_by_side(
    groups: int, inward: int, outward: int, kernel: int, stride: int, dilation: int, transposed: bool
) -> None:
    made = nn.ConvTranspose2d if transposed else nn.Conv2d
    how = {"stride": stride, "dilation": dilation}
    with torch.device("meta"):
        whole = made(groups * inward, groups * outward, kernel, groups=groups, **how)
        part = made(inward, outward, kernel, **how)
        image = (2, inward, 9, 8)
        together = forward_and_backward(whole, torch.randn(2, groups * inward, 9, 8))
        alone = forward_and_backward(part, torch.randn(image))
        rows, columns = part(torch.randn(image)).shape[2:]
    places = 9 * 8 if transposed else rows * columns
    assert alone == (2 * 2 * places * inward * outward * kernel**2, 3 * alone[0])
    assert together == (groups * alone[0], groups * alone[1])


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_a_recurrent_layer_uses_every_weight_once_a_token(batch_first: bool, bidirectional: bool) -> None:
    layer = nn.LSTM(6, 5, num_layers=2, batch_first=batch_first, bidirectional=bidirectional)
    matrices = sum(one.numel() for one in layer.parameters() if one.dim() == 2)
    forward, step = forward_and_backward(layer, torch.randn(4, 3, 6))
    assert (forward, step) == (2 * 4 * 3 * matrices, 3 * forward)


def test_attention_counts_on_a_processor_as_it_does_elsewhere() -> None:
    def attend(device: str) -> tuple[int, int]:
        made = [torch.randn(2, 3, length, 8, device=device) for length in (6, 10, 10)]
        return forward_and_backward(_Attention(), *made)

    products = 2 * 2 * 3 * 6 * 10 * 8
    forward, step = attend("cpu")
    assert forward == 2 * products
    # The four gradients' products; the kernel computes the scores once more instead of keeping them, uncounted.
    assert step == 6 * products
    # On the meta device attention is a sequence of products, which keeps the scores.
    assert attend("meta") == (forward, step)


def test_groups_of_rows_count_as_their_products_one_by_one() -> None:
    rows, weights = torch.randn(20, 8, requires_grad=True), torch.randn(3, 8, 16, requires_grad=True)
    with FlopCount() as count:
        nn.functional.grouped_mm(
            rows, weights, offs=torch.tensor([4, 12, 20], dtype=torch.int32)
        ).square().sum().backward()
    assert (count.total, count.dtype) == (3 * 2 * 20 * 8 * 16, "fp32")


def test_inference_mode_counts_as_no_grad_does() -> None:
    model = nn.Sequential(nn.Linear(8, 6), nn.Conv1d(3, 4, 3), nn.LSTM(4, 5))
    counts = []
    for mode in (torch.no_grad, torch.inference_mode):
        with mode(), FlopCount() as count:
            model(torch.ones(2, 3, 8))
        counts.append((count.total, count.dtype))
    assert counts[0] == counts[1]
    assert counts[0][0] is not None


def test_attention_kernels_count_every_query_of_a_group() -> None:
    query, key, value = (torch.empty(2, heads, length, 8, device="meta") for heads, length in ((6, 5), (3, 7), (3, 7)))
    kernels = [kernel for kernel in observed._FORMULAS if kernel.__name__.startswith("_scaled_dot_product")]
    forward = 2 * 2 * 2 * 6 * 5 * 7 * 8
    for kernel in kernels:
        backward = kernel.__name__.endswith("_backward")
        operands = (query, query, key, value) if backward else (query, key, value)
        assert observed._FORMULAS[kernel](*operands, out_val=query) == (2 * forward if backward else forward)
    assert len(kernels) == 8


class _Attention(nn.Module):
    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(query, key, value)


def test_resnet50_by_the_book() -> None:
    with torch.device("meta"):
        model, images = torchvision.models.resnet50(), torch.randn(64, 3, 224, 224)
        with FlopCount() as count:
            out = model(images)
            forward = count.flops
            out.sum().backward()
    assert forward / 64 == pytest.approx(8.18e9, rel=0.001)
    assert count.flops == pytest.approx(1555e9, rel=0.001)


def test_what_can_be_done_with_fewer_products_is_counted_apart() -> None:
    for layer, part in (
        (nn.Conv2d(4, 6, 3, padding=1), 1.0),
        (nn.Conv2d(4, 6, 5, groups=2), 1.0),
        (nn.Conv1d(4, 6, 3), 1.0),
        (nn.Conv2d(4, 6, 1), 0.0),
        (nn.Conv2d(4, 6, 3, stride=2), 0.0),
        (nn.Conv2d(4, 6, 3, dilation=2), 0.0),
        (nn.ConvTranspose2d(4, 6, 3), 0.0),
        (nn.Linear(9, 9), 0.0),
    ):
        images = torch.randn(2, 4, 9) if isinstance(layer, nn.Conv1d) else torch.randn(2, 4, 9, 9)
        with FlopCount() as count:
            layer(images).sum().backward()
        assert count.flops > 0
        assert count.reducible == part * count.flops


@pytest.mark.parametrize("error", [AssertionError, IndexError, TypeError, ValueError])
def test_a_formula_that_does_not_fit_leaves_the_count_unsaid(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def misfit(*_args: Any, **_kwargs: Any) -> int:
        raise error("shapes")

    monkeypatch.setitem(observed._FORMULAS, torch.ops.aten.bmm, misfit)
    with FlopCount() as count:
        torch.randn(2, 2) @ torch.randn(2, 2)
        product = torch.randn(1, 2, 2) @ torch.randn(1, 2, 2)
    assert product.shape == (1, 2, 2)
    assert count.flops == 16
    assert count.uncounted == {"bmm"}
    assert count.total is None


def test_a_tenant_tells_what_one_step_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, run = warmed(Small())
    # One linear layer (3, 2) on 4 rows: forward, and the weights' gradient; the input needs no gradient.
    observed = tenant_facts(run, loop)["observed"]
    assert observed["flops_per_step"] == 2 * 2 * 4 * 3 * 2
    assert observed["flops_reducible"] == 0
    assert observed["flops_uncounted"] == []
    assert observed["flops_closed"] is None
    monkeypatch.setattr(Small, "flops", lambda self, batch: 2 * 2.0 * len(batch) * self.model.weight.numel())
    assert tenant_facts(run, loop)["observed"]["flops_closed"] == 96
    run.uneven = True
    assert tenant_facts(run, loop)["observed"]["flops_per_step"] is None
    loop.load_until(lambda: True)
