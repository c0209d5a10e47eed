"""Optimizers that pass over all weights in a few kernels: NVIDIA apex's if it is installed, else torch's own.

With a gradient scaler, torch's own are used: they read its verdict on the device, apex's on the host. They are also
used for float64, which apex's skip.
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

    Options and parameters are as for torch.optim.
    """
    given = list(parameters)
    weights = list[torch.Tensor]()
    for entry in given:
        weights += entry["params"] if isinstance(entry, dict) else [entry]
    sharded = any(is_sharded(weight) for weight in weights)
    if sharded or (apex := _apex(device, precision, weights)) is None:
        # torch's fused SGD skips shards (torch 2.14); `foreach` needs few kernels, too.
        few = {"foreach": True} if sharded and kind == "SGD" else {"fused": True}
        return getattr(torch.optim, kind)(given, **few, **options)
    if kind == "SGD":
        return apex.FusedSGD(given, **options)
    return apex.FusedAdam(given, adam_w_mode=kind == "AdamW", **options)


def _apex(device: Device, precision: Precision, weights: Iterable[torch.Tensor]) -> ModuleType | None:
    """Return apex's optimizers if they can run: on CUDA, without a scaler, and with their kernels built."""
    if device.torch_device.type != "cuda" or precision.scaler is not None:
        return None
    if any(weight.dtype == torch.float64 for weight in weights):
        return None
    try:
        applying = importlib.import_module("apex.multi_tensor_apply")
        optimizers = importlib.import_module("apex.optimizers")
    except ImportError:  # PyPI has another package of this name.
        return None
    return optimizers if applying.multi_tensor_applier.available else None
