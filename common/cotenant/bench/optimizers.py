"""Optimizers that pass over all weights in a few kernels: NVIDIA apex's where it is installed, else torch's own.

torch's take a gradient scaler's verdict without reading it on the host and apex's do not: with a scaler it is torch's.
So it is for float64, which apex's pass over.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from types import ModuleType
from typing import Any, Literal

import torch

from cotenant.bench.device import Device
from cotenant.bench.parallel import is_sharded
from cotenant.bench.precision import Precision

Parameters = Iterable[torch.Tensor | dict[str, Any]]
"""Weights, or groups of them with options of their own, each a dict with `params`."""


def fused(
    kind: Literal["Adam", "AdamW", "SGD"],
    parameters: Parameters,
    device: Device,
    precision: Precision,
    **options: Any,
) -> torch.optim.Optimizer:
    """Return Adam (Kingma and Ba 2015), AdamW (Loshchilov and Hutter 2019) or stochastic gradient descent.

    With the options of torch.optim's, and parameters or groups of them.
    """
    given = list(parameters)
    weights = list[torch.Tensor]()
    for each in given:
        weights += each["params"] if isinstance(each, dict) else [each]
    sharded = any(is_sharded(weight) for weight in weights)
    if sharded or (apex := _apex(device, precision, weights)) is None:
        # torch's fused SGD passes over no shards (torch 2.14); by `foreach` it is a few kernels, too.
        few = {"foreach": True} if sharded and kind == "SGD" else {"fused": True}
        return getattr(torch.optim, kind)(given, **few, **options)
    if kind == "SGD":
        return apex.FusedSGD(given, **options)
    return apex.FusedAdam(given, adam_w_mode=kind == "AdamW", **options)


def _apex(device: Device, precision: Precision, weights: Iterable[torch.Tensor]) -> ModuleType | None:
    """Return apex's optimizers where they can run: on CUDA, without a scaler, and with their kernels built."""
    if device.torch_device.type != "cuda" or precision.scaler is not None:
        return None
    if any(weight.dtype == torch.float64 for weight in weights):
        return None
    try:
        applying = importlib.import_module("apex.multi_tensor_apply")
        optimizers = importlib.import_module("apex.optimizers")
    except ImportError:  # The index has another package of this name, too.
        return None
    return optimizers if applying.multi_tensor_applier.available else None
