"""What really ran: the dtype of the heaviest products of one step, seen by torch's dispatcher, and who stepped what."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:
    from cotenant.bench.precision import Precision
    from cotenant.bench.run import Run

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
        self.weight: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if name in _PRODUCTS:
            operands = [a for a in args if isinstance(a, torch.Tensor) and a.is_floating_point()]
            if operands:
                heaviest = max(operands, key=torch.Tensor.numel)
                ran = "tf32" if _runs_in_tf32(name, heaviest) else _short(heaviest.dtype)
                self.weight[ran] += sum(operand.numel() for operand in operands)
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
    return result, watch.weight.most_common(1)[0][0]


def _runs_in_tf32(product: str, operand: torch.Tensor) -> bool:
    """Return whether torch's switches let a product of this name run under TF32: each library has its own."""
    if operand.dtype != torch.float32 or not operand.is_cuda:
        return False
    cudnn: Any = torch.backends.cudnn
    if product.startswith("convolution"):
        return bool(cudnn.conv.fp32_precision == "tf32")
    return bool((cudnn.rnn if product == "_cudnn_rnn" else torch.backends.cuda.matmul).fp32_precision == "tf32")


@contextlib.contextmanager
def watched_updates(run: Run) -> Iterator[list[torch.optim.Optimizer]]:
    """Yield a list that holds, in the end, every optimizer that was given to `run.update` in this context."""
    update, seen = run.update, list[torch.optim.Optimizer]()

    def noting(loss: torch.Tensor, optimizer: torch.optim.Optimizer, clip_norm: float | None = None) -> None:
        if optimizer not in seen:
            seen.append(optimizer)
        update(loss, optimizer, clip_norm)

    run.update = noting
    try:
        yield seen
    finally:
        run.update = update


def described(optimizer: torch.optim.Optimizer, precision: Precision) -> dict[str, Any]:
    """Return what an optimizer is, the dtype of the model's weights, and of what it steps: these, or copies."""
    sizes: Counter[torch.dtype] = Counter()
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            sizes[parameter.dtype] += parameter.numel()
    stepped, masters = sizes.most_common(1)[0][0], precision.masters.get(optimizer)
    package = type(optimizer).__module__.partition(".")[0]
    return {
        "name": type(optimizer).__name__,
        "package": package,
        "fused": package == "apex" or bool(optimizer.defaults.get("fused")),
        "weights": _short((masters and masters.dtype) or stepped),
        "stepped": _short(stepped),
    }


def _short(dtype: torch.dtype) -> str:
    return _SHORT.get(dtype, str(dtype).removeprefix("torch."))
