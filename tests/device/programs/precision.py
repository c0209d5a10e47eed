"""Prints the relative error against fp64 on the host of a product, a convolution and a recurrence in each precision,
computed on the device as tenants compute: {precision: {operation: error, or why there is none}}."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import torch

from cotenant.bench.device import Device
from cotenant.bench.outcome import UnsupportedError
from cotenant.bench.precision import set_precision

SIZE = 1024
Compute = Callable[..., Any]
"""Does an operation where and as its arguments say, which are those of Tensor.to."""


def product() -> Compute:
    a, b = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE)
    return lambda **to: a.to(**to) @ b.to(**to)


def convolution() -> Compute:
    x, weight = torch.randn(4, SIZE // 8, 24, 24), torch.randn(SIZE // 8, SIZE // 8, 3, 3)
    return lambda **to: torch.nn.functional.conv2d(x.to(**to), weight.to(**to))


def recurrence() -> Compute:
    layer, x = torch.nn.GRU(SIZE // 4, SIZE // 4), torch.randn(16, 8, SIZE // 4)
    return lambda **to: copy.deepcopy(layer).to(**to)(x.to(**to))[0]


def error_of(precision: str, compute: Compute) -> float | str:
    device = torch.device("cuda")
    exact = compute(dtype=torch.float64)
    try:
        around = set_precision(precision, Device(device)).around
    except UnsupportedError as error:
        return str(error)
    seen = around(lambda run, batch: compute(device=device))(None, None).cpu().double()
    return float((seen - exact).norm() / exact.norm())


def main() -> None:
    torch.manual_seed(0)
    computes = {"product": product(), "convolution": convolution(), "recurrence": recurrence()}
    with torch.no_grad():
        found = {
            precision: {name: error_of(precision, compute) for name, compute in computes.items()}
            for precision in ("fp32", "tf32", "bf16", "fp16")
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
