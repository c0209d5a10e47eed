"""What really ran: the dtype of the heaviest products of one step, seen by torch's dispatcher."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode

T = TypeVar("T")

_PRODUCTS = [
    "mm",
    "addmm",
    "bmm",
    "baddbmm",
    "convolution",
    "convolution_backward",
    "mkldnn_rnn_layer",
    "_cudnn_rnn",
    "miopen_rnn",
    "linear",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    "mv",
    "dot",
]
_SHORT = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16", torch.float64: "fp64"}


class _Watch(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.weight: Counter[torch.dtype] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket.__name__ in _PRODUCTS:
            operands = [a for a in args if isinstance(a, torch.Tensor) and a.is_floating_point()]
            if operands:
                heaviest = max(operands, key=torch.Tensor.numel)
                self.weight[heaviest.dtype] += sum(operand.numel() for operand in operands)
        return func(*args, **(kwargs or {}))


def observed_dtype(step: Callable[[], T]) -> tuple[T, str | None]:
    """Run `step` once and return its result and the dtype most of its products' operands had.

    On CUDA an fp32 product under TF32 is called tf32. `None` where the step has no product.
    """
    watch = _Watch()
    stance = torch.compiler.set_stance("force_eager")
    with stance, watch:
        result = step()
    if not watch.weight:
        return result, None
    dtype = watch.weight.most_common(1)[0][0]
    name = _SHORT.get(dtype, str(dtype).removeprefix("torch."))
    if name == "fp32" and torch.backends.cuda.matmul.fp32_precision == "tf32":
        name = "tf32"
    return result, name
