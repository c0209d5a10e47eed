"""Precisions, their updates, the fp32 copies of 16-bit weights, and fused optimizers."""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Callable, Iterable
from types import ModuleType, SimpleNamespace
from typing import Any, Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from bench.small import Small
from cotenant.bench import Run, UnsupportedError
from cotenant.bench.device import Device
from cotenant.bench.observed import FlopCount, described_optimizer
from cotenant.bench.optimizers import fused
from cotenant.bench.precision import MasterWeights, Precision, asked_precision, set_precision
from cotenant.errors import CotenantError
from tasks.loading import built

CPU = Device(torch.device("cpu"))
CUDA = Device(torch.device("cuda", 0))


def scaled(scale: float = 1024.0, name: str = "fp16") -> Precision:
    """Return a precision that updates as fp16 does, but computes in bf16, which a CPU can train."""
    return Precision(
        name,
        autocast=torch.autocast("cpu", torch.float16 if name == "half" else torch.bfloat16),
        outside=torch.autocast("cpu", enabled=False),
        scaler=torch.amp.GradScaler("cpu", init_scale=scale),
    )


def half(scale: float = 128.0) -> Precision:
    return scaled(scale, "half")


def asked(**spelling: Any) -> str:
    return asked_precision(**({"precision": None, "half": False, "fp16": False, "opt_level": None} | spelling))


def test_every_level_is_a_precision() -> None:
    levels = {level: asked(opt_level=level) for level in ("O0", "O1", "O2", "O3")}
    assert levels == {"O0": "fp32", "O1": "fp16", "O2": "fp16", "O3": "half"}


@given(
    st.sampled_from([None, "fp32", "tf32", "bf16", "fp16"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, "O0", "O1", "O2", "O3"]),
)
def test_conflicting_precision_aliases_are_refused(
    precision: str | None, half: bool, fp16: bool, level: str | None
) -> None:
    meant = {"half"} if half else set()
    meant |= {"fp16"} if fp16 else set()
    meant |= {asked(opt_level=level)} if level else set()
    if precision or len(meant) < 2:
        assert asked_precision(precision, half, fp16, level) == (precision or next(iter(meant), "fp32"))
    else:
        with pytest.raises(CotenantError, match=r"Two precisions are asked for: .* means .* means .*\. Keep one"):
            asked_precision(precision, half, fp16, level)


def test_fp32_is_bit_equal_to_a_loop_by_hand() -> None:
    benchmark, run = built(Small, seed=3)
    batch = next(iter(benchmark.batches(run)))
    step = run.precision.around(benchmark.step)
    assert step == benchmark.step
    ours = [step(run, batch).item() for _ in range(20)]

    torch.manual_seed(3)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batch, by_hand = torch.randn(4, 3), []
    for _ in range(20):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        by_hand.append(loss.item())
    assert ours == by_hand


@pytest.mark.parametrize("name, products, convolutions", [("fp32", "highest", False), ("tf32", "high", True)])
def test_torchs_switches(name: str, products: str, convolutions: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    assert set_precision(name, CUDA) == Precision(name)
    # Both of torch's ways of reading the switches: it raises if the two disagree.
    assert torch.get_float32_matmul_precision() == products
    assert torch.backends.cuda.matmul.allow_tf32 is torch.backends.cudnn.allow_tf32 is convolutions
    assert (torch.backends.cuda.matmul.fp32_precision == "tf32") is convolutions
    assert (torch.backends.cudnn.conv.fp32_precision == "tf32") is convolutions
    assert (torch.backends.cudnn.rnn.fp32_precision == "tf32") is convolutions


def test_cudnn_tries_convolutions_only_if_shapes_are_constant() -> None:
    class Alike(Small):
        same_shapes = True

    Run(Alike())
    assert torch.backends.cudnn.benchmark is True
    Run(Small())
    assert torch.backends.cudnn.benchmark is False


def test_precisions_are_refused_where_they_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("fp16", "half"):
        with pytest.raises(UnsupportedError, match=r"fp16 training on a CPU is emulated.*Use --precision bf16\."):
            set_precision(name, CPU)
    with pytest.raises(UnsupportedError, match=r"CPU has no TF32\. Use --precision fp32"):
        set_precision("tf32", CPU)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "V100")
    with pytest.raises(UnsupportedError, match="V100 has no TF32"):
        set_precision("tf32", CUDA)
    monkeypatch.setattr(torch.version, "hip", "7.2")
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "AMD Instinct MI300X")
    with pytest.raises(UnsupportedError, match="MI300X is not NVIDIA's, and only these have tf32"):
        set_precision("tf32", CUDA)


def test_bf16_is_refused_where_torch_would_emulate_it(monkeypatch: pytest.MonkeyPatch) -> None:
    board = SimpleNamespace(major=7)
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: board)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "T4")
    monkeypatch.setattr(torch.cuda, "_check_bf16_tensor_supported", lambda device: True)
    assert torch.cuda.is_bf16_supported()  # Autocast asks this, and it includes emulation.
    with pytest.raises(UnsupportedError, match=r"T4 has no bf16: torch would emulate it\. Use --precision fp16"):
        set_precision("bf16", CUDA)
    board.major = 8
    assert set_precision("bf16", CUDA).name == "bf16"


@pytest.mark.parametrize(
    "name, dtype, scales",
    [("bf16", torch.bfloat16, False), ("fp16", torch.float16, True), ("half", torch.float16, True)],
)
def test_what_16_bit_is_made_of(name: str, dtype: torch.dtype, scales: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **asked: True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that there is no CUDA here
        made = set_precision(name, CUDA)
    assert (made.autocast.device, made.autocast.fast_dtype) == ("cuda", dtype)
    assert (made.scaler is not None) is scales


def test_bf16_runs_in_bf16_and_its_backward_outside_autocast() -> None:
    seen: list[tuple[str, bool]] = []

    class Watching(Small):
        def step(self, run: Run, batch: Any) -> torch.Tensor | None:
            seen.append(("step", torch.is_autocast_enabled("cpu")))
            out = self.model(batch)
            assert out.dtype == torch.bfloat16
            out.register_hook(lambda grad: seen.append(("backward", torch.is_autocast_enabled("cpu"))))
            loss = out.float().square().mean()
            run.update(loss, self.optimizer)
            return loss

    benchmark, run = built(Watching, precision="bf16")
    batch = next(iter(benchmark.batches(run)))
    step = run.precision.around(benchmark.step)
    with FlopCount() as count:
        loss = step(run, batch)
    assert count.dtype == "bf16"
    assert loss.dtype == torch.float32
    assert seen == [("step", True), ("backward", False)]
    assert benchmark.model.weight.dtype == benchmark.model.weight.grad.dtype == torch.float32
    assert not torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("make", [lambda: set_precision("bf16", CPU), scaled])
def test_a_second_forward_in_one_step_sees_the_updated_weights(make: Callable[[], Precision]) -> None:
    precision, model, x = make(), nn.Linear(4, 4), torch.randn(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)

    def step(run: Any, batch: torch.Tensor) -> torch.Tensor:
        precision.update(model(batch).float().square().sum(), optimizer)
        return model(batch)

    second = precision.around(step)(None, x)
    expected = nn.functional.linear(*(tensor.bfloat16() for tensor in (x, model.weight, model.bias)))
    assert torch.equal(second, expected)


def test_a_loss_computed_again_sees_the_updated_weights() -> None:
    precision, model, x = set_precision("bf16", CPU), nn.Linear(4, 4), torch.randn(8, 4)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
    losses: list[float] = []

    def compute() -> torch.Tensor:
        loss = (model(x).float() - 3).square().mean()
        losses.append(loss.item())
        return loss

    def step(run: Any, batch: torch.Tensor) -> torch.Tensor:
        assert precision.minimize(compute, optimizer).item() == losses[0]
        return model(batch)

    after = precision.around(step)(None, x)
    assert losses[0] > losses[1]
    assert torch.equal(after, nn.functional.linear(*(part.bfloat16() for part in (x, model.weight, model.bias))))


def weights_after(
    precision: Precision, clip_norm: float | None, loss_of: Callable[[Any], torch.Tensor]
) -> torch.Tensor:
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    precision.update(loss_of(model(torch.ones(2, 4))), optimizer, clip_norm)
    return model.weight.detach()


@pytest.mark.parametrize("clip_norm", [None, 0.01, 1e6])
@pytest.mark.parametrize("make", [scaled, lambda: set_precision("bf16", CPU), half])
def test_scaling_and_clipping_update_as_fp32_does(make: Callable[[], Precision], clip_norm: float | None) -> None:
    def loss_of(out: torch.Tensor) -> torch.Tensor:
        return (out - 3).square().sum()

    plain = weights_after(Precision("fp32"), clip_norm, loss_of)
    torch.testing.assert_close(weights_after(make(), clip_norm, loss_of), plain)


def test_half_has_fp16_weights_and_fp32_norms() -> None:
    norms = [nn.BatchNorm2d(4), nn.InstanceNorm1d(4, affine=True), nn.LayerNorm(4), nn.GroupNorm(2, 4), nn.RMSNorm(4)]
    others = [nn.Conv2d(1, 4, 3), nn.Linear(4, 4), nn.Embedding(3, 4), nn.GRU(4, 4)]
    Precision("half").convert(nn.ModuleList([*norms, *others]))
    for norm in norms:
        dtypes = {tensor.dtype for tensor in itertools.chain(norm.parameters(), norm.buffers())}
        assert dtypes <= {torch.float32, torch.int64}
    for other in others:
        assert {parameter.dtype for parameter in other.parameters()} == {torch.float16}
    for name in ("fp32", "tf32", "bf16", "fp16"):
        assert Precision(name).convert(nn.Linear(2, 2)).weight.dtype == torch.float32


def test_half_scales_its_loss_within_the_backward_only() -> None:
    precision, grads = half(scale=64.0), []
    model = precision.convert(nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(run: Any, batch: torch.Tensor) -> torch.Tensor:
        out = model(batch)
        out.register_hook(grads.append)
        loss = out.float().sum()
        precision.update(loss, optimizer)
        return loss

    loss = precision.around(step)(None, torch.randn(2, 4))
    assert (grads[0] == 64.0).all()
    torch.testing.assert_close(model[1].bias.detach(), torch.full((4,), -0.2))
    assert model[0].weight.dtype == model[0].weight.grad.dtype == torch.float16
    assert abs(loss) < 64.0


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("clip_norm", [None, 1e9])
def test_updates_that_change_nothing_are_counted(fused: bool, clip_norm: float | None) -> None:
    """A gradient of 2^10 overflows fp32 at a scale of 2^118 or more, and each overflow halves the scale."""
    precision = scaled(2.0**120)
    weight = torch.nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.SGD([weight], lr=1e-3, fused=fused)
    seen = []
    for _ in range(5):
        before = weight.detach().clone()
        precision.update((weight * 1024).sum(), optimizer, clip_norm)
        seen.append(bool((weight.detach() != before).any()))
    assert seen == [False, False, False, True, True]
    assert (precision.updates, precision.skipped) == (5, 3)
    assert Precision("fp32").skipped is None


Optimizer = Callable[..., torch.optim.Optimizer]


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
def test_adam_with_master_copies_does_not_divide_by_zero(fused: bool) -> None:
    precision, gradient = half(1024.0), 1e-6
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
    precision = half(1024.0)
    model = linear(precision)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    model.weight.data.fill_(1.0)
    for _ in range(100):
        one_update(precision, model, optimizer)
    torch.testing.assert_close(model.weight.float(), torch.full((1, 4), 1 - 100 * 2e-5), atol=5e-4, rtol=0)
    assert (torch.ones((), dtype=torch.float16) - 2e-5 == 1).item()


def test_an_overflow_keeps_the_weights_and_halves_the_scale() -> None:
    plain = scaled(1024.0)
    weights_after(plain, None, lambda out: out.sum() * float("inf"))
    assert plain.scaler.get_scale() == 512.0
    precision = half(scale=1024.0)
    model = linear(precision)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model.weight.detach().clone()
    one_update(precision, model, optimizer, 1e4)
    assert torch.equal(model.weight, before)
    assert torch.equal(optimizer.param_groups[0]["params"][0], before.float())
    assert precision.scaler.get_scale() == 512.0
    one_update(precision, model, optimizer, 1e-3)
    assert not torch.equal(model.weight, before)


def test_optimizers_share_a_scaler_but_not_their_copies() -> None:
    precision = half(scale=4.0)
    one, two = linear(precision), linear(precision)
    first, second = (torch.optim.SGD(model.parameters(), lr=0.1) for model in (one, two))
    before = one.weight.detach().clone()
    one_update(precision, one, first, float("inf"))
    one_update(precision, two, second)
    assert precision.scaler.get_scale() == 2.0
    assert torch.equal(one.weight, before)
    torch.testing.assert_close(two.weight, before - 0.2)
    assert precision.masters.keys() == {first, second}


def test_norms_are_stepped_themselves() -> None:
    precision = half(1024.0)
    model = precision.convert(nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    precision.update(model[1](model[0](torch.randn(2, 4, dtype=torch.float16)).float()).square().sum(), optimizer)
    stepped = optimizer.param_groups[0]["params"]
    assert stepped[2] is model[1].weight
    assert {parameter.dtype for parameter in stepped} == {torch.float32}
    (plain,) = told("torch", "SGD")
    assert described_optimizer(optimizer, precision) == plain | {"fused": False, "weights": "fp16", "parameters": 28}


def test_a_weight_without_a_gradient_is_left_alone() -> None:
    precision = half(1024.0)
    used, unused = linear(precision), linear(precision)
    optimizer = torch.optim.SGD([*used.parameters(), *unused.parameters()], lr=0.1, weight_decay=0.1)
    before = unused.weight.detach().clone()
    for _ in range(2):
        one_update(precision, used, optimizer)
    assert torch.equal(unused.weight, before)
    assert not torch.equal(used.weight, before)
    # The optimizer does not reuse the gradient of an earlier step either.
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


PLAIN = Precision("fp32")


class FusedAdam(torch.optim.Adam):
    """Stands in for apex's class, with the options that differ from torch's."""

    def __init__(self, parameters: Iterable[torch.Tensor], *, adam_w_mode: bool = True, **options: Any) -> None:
        super().__init__(parameters, **options)
        self.decouples = adam_w_mode


class FusedSGD(torch.optim.SGD):
    """Stands in for apex's class."""


FusedAdam.__module__, FusedSGD.__module__ = "apex.optimizers.fused_adam", "apex.optimizers.fused_sgd"


def install(monkeypatch: pytest.MonkeyPatch, available: bool = True) -> None:
    modules: dict[str, Any] = {
        "apex": ModuleType("apex"),
        "apex.multi_tensor_apply": SimpleNamespace(multi_tensor_applier=SimpleNamespace(available=available)),
        "apex.optimizers": SimpleNamespace(FusedAdam=FusedAdam, FusedSGD=FusedSGD),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)


def weights() -> list[torch.Tensor]:
    return list(nn.Linear(3, 2).parameters())


def made(device: Device, precision: Precision = PLAIN) -> list[dict[str, Any]]:
    adam = fused("Adam", weights(), device, precision, lr=1e-3, betas=(0.5, 0.9), eps=1e-5)
    sgd = fused("SGD", weights(), device, precision, lr=0.1, momentum=0.9, weight_decay=1e-4)
    return [described_optimizer(one, precision) for one in (adam, sgd)]


def told(package: str, *names: str) -> list[dict[str, Any]]:
    of_all = {"package": package, "fused": True, "weights": "fp32", "stepped": "fp32", "parameters": 8}
    return [{"name": name} | of_all for name in names]


@pytest.mark.parametrize("device", [CPU, CUDA])
def test_without_apex_it_is_torchs(device: Device) -> None:
    assert made(device) == told("torch", "Adam", "SGD")


def test_on_cuda_apex_is_used_where_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    assert made(CUDA) == told("apex", "FusedAdam", "FusedSGD")
    adam = fused("Adam", weights(), CUDA, PLAIN, lr=1e-3, weight_decay=0.1)
    assert isinstance(adam, FusedAdam)
    assert not adam.decouples
    assert (adam.defaults["lr"], adam.defaults["weight_decay"]) == (1e-3, 0.1)
    groups = [{"params": [weight], "weight_decay": decay} for weight, decay in zip(weights(), (0.1, 0.0), strict=True)]
    adamw = fused("AdamW", groups, CUDA, PLAIN, lr=1e-3)
    assert isinstance(adamw, FusedAdam)
    assert adamw.decouples
    assert [group["weight_decay"] for group in adamw.param_groups] == [0.1, 0.0]
    # apex's is not used for float64, which it skips, on a processor, with a scaler, or without its kernels.
    (double,) = nn.Linear(3, 2, bias=False, dtype=torch.float64).parameters()
    assert type(fused("SGD", [double], CUDA, PLAIN, lr=0.1)) is torch.optim.SGD
    assert type(fused("Adam", [*weights(), double], CUDA, PLAIN, lr=0.1)) is torch.optim.Adam
    assert type(fused("AdamW", [*groups, {"params": [double]}], CUDA, PLAIN, lr=0.1)) is torch.optim.AdamW
    assert made(CPU) == told("torch", "Adam", "SGD")
    assert made(CUDA, Precision("fp16", scaler=torch.amp.GradScaler("cpu"))) == told("torch", "Adam", "SGD")
    install(monkeypatch, available=False)
    assert made(CUDA) == told("torch", "Adam", "SGD")
    # The package index has a different package named apex.
    for name in ("apex.multi_tensor_apply", "apex.optimizers"):
        monkeypatch.delitem(sys.modules, name)
    assert made(CUDA) == told("torch", "Adam", "SGD")


@pytest.mark.parametrize("kind", ["adam", "adamw", "sgd"])
def test_a_run_gives_the_same_steps_as_torchs_own(kind: str) -> None:
    def after(own: bool) -> torch.Tensor:
        run = Run(Small(seed=4))
        model = nn.Linear(3, 1)
        options = {"lr": 0.1, "weight_decay": 0.01}
        plain = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[kind]
        optimizer = getattr(run, kind)(model.parameters(), **options) if own else plain(model.parameters(), **options)
        for _ in range(5):
            run.update(model(torch.ones(2, 3)).square().sum(), optimizer)
        return model.weight.detach()

    torch.testing.assert_close(after(own=True), after(own=False))


@pytest.mark.parametrize("half", [False, True])
def test_momentum_begins_with_zeros_after_a_first_overflow(half: bool) -> None:
    """torch's fused SGD allocates momentum uninitialised, and an overflow in the first step leaves it so."""
    precision = scaled(8.0, "half" if half else "fp16")
    model = precision.convert(nn.Linear(3, 1, bias=False))
    optimizer = fused("SGD", model.parameters(), CPU, precision, lr=0.1, momentum=0.9)
    before = model.weight.detach().clone()
    inputs = torch.ones(2, 3, dtype=model.weight.dtype)
    torch.use_deterministic_algorithms(True)  # Then torch fills unwritten memory with NaN.
    try:
        for times in (float("inf"), 1.0):
            precision.update(model(inputs).float().sum() * times, optimizer)
    finally:
        torch.use_deterministic_algorithms(False)
    torch.testing.assert_close(model.weight.detach(), before - 0.1 * 2, atol=1e-3, rtol=0)
    assert precision.skipped == 1


@pytest.mark.parametrize(("precision", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_frozen_weights_are_built_in_the_precisions_type(
    precision: Literal["fp32", "bf16"], dtype: torch.dtype
) -> None:
    run = Run(Small(precision=precision))
    made = list[torch.dtype]()

    def make() -> nn.Module:
        module = nn.BatchNorm1d(3)
        made.append(module.weight.dtype)
        module.register_buffer("table", torch.arange(3, dtype=torch.float32))
        return module

    frozen = run.freeze(make)
    assert made == [dtype]
    assert {tensor.dtype for tensor in (frozen.weight, frozen.running_mean, frozen.table)} == {dtype}
    assert not any(weight.requires_grad for weight in frozen.parameters())
    assert (frozen.training, "compile" in run.heeded) == (False, True)
    assert torch.get_default_dtype() is torch.float32
