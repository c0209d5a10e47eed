"""Which optimizer a task gets: torch's fused one, and apex's where that is installed and loses nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from bench.small import Small
from cotenant.bench import Run, optimizers
from cotenant.bench.device import Device
from cotenant.bench.observed import described
from cotenant.bench.precision import Precision

CPU, CUDA = Device(torch.device("cpu")), Device(torch.device("cuda", 0))
PLAIN = Precision("fp32")


class FusedAdam(torch.optim.Adam):
    """apex's, with the options that differ from torch's."""

    def __init__(self, parameters: Iterable[torch.Tensor], *, adam_w_mode: bool = True, **options: Any) -> None:
        super().__init__(parameters, **options)
        self.decouples = adam_w_mode


class FusedSGD(torch.optim.SGD):
    """apex's."""


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
    adam = optimizers.adam(weights(), device, precision, lr=1e-3, betas=(0.5, 0.9), eps=1e-5)
    sgd = optimizers.sgd(weights(), device, precision, lr=0.1, momentum=0.9, weight_decay=1e-4)
    return [described(one, precision) for one in (adam, sgd)]


def told(package: str, *names: str) -> list[dict[str, Any]]:
    return [{"name": name, "package": package, "fused": True, "weights": "fp32", "stepped": "fp32"} for name in names]


@pytest.mark.parametrize("device", [CPU, CUDA])
def test_without_apex_it_is_torchs(device: Device) -> None:
    assert made(device) == told("torch", "Adam", "SGD")


def test_on_cuda_apex_is_used_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    assert made(CUDA) == told("apex", "FusedAdam", "FusedSGD")
    adam = optimizers.adam(weights(), CUDA, PLAIN, lr=1e-3, weight_decay=0.1)
    assert isinstance(adam, FusedAdam)
    assert not adam.decouples
    assert (adam.defaults["lr"], adam.defaults["weight_decay"]) == (1e-3, 0.1)


def test_weights_that_apex_passes_over_are_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    double = nn.Linear(3, 2, dtype=torch.float64).parameters()
    assert type(optimizers.sgd(double, CUDA, PLAIN, lr=0.1)) is torch.optim.SGD
    (weight,) = nn.Linear(3, 2, bias=False, dtype=torch.float64).parameters()
    assert type(optimizers.adam([*weights(), weight], CUDA, PLAIN, lr=0.1)) is torch.optim.Adam


def test_elsewhere_or_with_a_scaler_or_without_its_kernels_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    assert made(CPU) == told("torch", "Adam", "SGD")
    assert made(CUDA, Precision("fp16", scaler=torch.amp.GradScaler("cpu"))) == told("torch", "Adam", "SGD")
    install(monkeypatch, available=False)
    assert made(CUDA) == told("torch", "Adam", "SGD")


def test_the_other_package_of_this_name_is_not_taken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apex", ModuleType("apex"))
    assert made(CUDA) == told("torch", "Adam", "SGD")


@pytest.mark.parametrize("kind", ["adam", "sgd"])
def test_a_run_gives_the_same_steps_as_torchs_own(kind: str) -> None:
    def after(own: bool) -> torch.Tensor:
        run = Run(Small(seed=4))
        model = nn.Linear(3, 1)
        options = {"lr": 0.1, "weight_decay": 0.01}
        plain = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[kind]
        optimizer = getattr(run, kind)(model.parameters(), **options) if own else plain(model.parameters(), **options)
        for _ in range(5):
            run.update(model(torch.ones(2, 3)).square().sum(), optimizer)
        return model.weight.detach()

    torch.testing.assert_close(after(own=True), after(own=False))


@pytest.mark.parametrize("half", [False, True])
def test_a_momentum_that_begins_with_an_overflow_begins_with_zeros(half: bool) -> None:
    """torch's fused SGD begins it with memory as it is found, and the overflow leaves that in place."""
    autocasts = torch.autocast("cpu", torch.bfloat16), torch.autocast("cpu", enabled=False)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    precision = Precision("half" if half else "fp16", *autocasts, scaler=scaler)
    model = precision.convert(nn.Linear(3, 1, bias=False))
    optimizer = optimizers.sgd(model.parameters(), CPU, precision, lr=0.1, momentum=0.9)
    before = model.weight.detach().clone()
    inputs = torch.ones(2, 3, dtype=model.weight.dtype)
    torch.use_deterministic_algorithms(True)  # What is not written is NaN then.
    try:
        for times in (float("inf"), 1.0):
            precision.update(model(inputs).float().sum() * times, optimizer)
    finally:
        torch.use_deterministic_algorithms(False)
    torch.testing.assert_close(model.weight.detach(), before - 0.1 * 2, atol=1e-3, rtol=0)
    assert precision.skipped == 1
