"""Observes one step by torch's dispatcher: the operations that ran, and the dtype of each product."""

from __future__ import annotations

import contextlib
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from cotenant.bench.precision import Precision, weights_of
from cotenant.bench.run import Run
from cotenant.errors import CotenantError

_SHORT = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16", torch.float64: "fp64"}


def _runs_in_tf32(product: str, operand: Tensor) -> bool:
    """Return whether torch's switches let this product run under TF32: each library has its own switch."""
    if operand.dtype != torch.float32 or not operand.is_cuda:
        return False
    cudnn: Any = torch.backends.cudnn
    if product.startswith("convolution"):
        return cudnn.conv.fp32_precision == "tf32"
    return (cudnn.rnn if product == "_cudnn_rnn" else torch.backends.cuda.matmul).fp32_precision == "tf32"


_kernels: list[object] = []
"""The kernels that Triton has compiled since `compiled_graphs` first found it."""


def compiled_graphs() -> int:
    """Return the number of graphs by torch.compile and kernels by Triton compiled in this process, repeats included."""
    dynamo: Any = sys.modules.get("torch._dynamo.utils")
    triton: Any = sys.modules.get("triton.knobs")
    if triton is not None and triton.compilation.listener is None:
        triton.compilation.listener = _heard
    return len(_kernels) + (0 if dynamo is None else int(dynamo.counters["stats"]["unique_graphs"]))


def _heard(*, src: object, cache_hit: bool, **rest: object) -> None:
    """Note a kernel that Triton has compiled, or loaded from its cache, which takes some milliseconds."""
    _kernels.append(src)


@contextlib.contextmanager
def watched_updates(run: Run) -> Iterator[list[Optimizer]]:
    """Yield a list that gets each optimizer that updates weights in this context, by `run.update` or its own step."""
    update, seen = run.update, list[Optimizer]()

    def see(optimizer: Optimizer, *_: Any) -> None:
        if optimizer not in seen:
            seen.append(optimizer)

    def noting(loss: Tensor, optimizer: Optimizer, clip_norm: float | None = None) -> None:
        see(optimizer)
        try:
            update(loss, optimizer, clip_norm)
        except TypeError as error:
            if "closure" not in str(error):
                raise
            raise CotenantError(
                f"{type(optimizer).__name__} computes its loss several times a step.",
                "Give `run.minimize` a function that returns the loss.",
            ) from error

    run.update = noting
    hook = register_optimizer_step_pre_hook(see)
    try:
        yield seen
    finally:
        hook.remove()
        run.update = update


def described_optimizer(optimizer: Optimizer, precision: Precision) -> dict[str, Any]:
    """Return an optimizer's kind, the dtype of the model's weights, and the dtype of the stepped weights or copies.

    `parameters`: the number of trained numbers.
    """
    sizes: Counter[torch.dtype] = Counter()
    for weight in weights_of([optimizer]):
        sizes[weight.dtype] += weight.numel()
    stepped, masters = sizes.most_common(1)[0][0], precision.masters.get(optimizer)
    package = type(optimizer).__module__.partition(".")[0]
    return {
        "name": type(optimizer).__name__,
        "package": package,
        "fused": package == "apex" or bool(optimizer.defaults.get("fused")),
        "weights": _short((masters and masters.dtype) or stepped),
        "stepped": _short(stepped),
        "parameters": sizes.total(),
    }


def _short(dtype: torch.dtype) -> str:
    return _SHORT.get(dtype, str(dtype).removeprefix("torch."))


_aten = torch.ops.aten


class FlopCount(TorchDispatchMode):
    """A context that counts the operations of its products in `flops`, and sees the dtype of their operands.

    `uncounted` names products that their formula did not fit.

    Formulas are from torch.utils.flop_counter; ours replace them if they count nothing (recurrent layers, attention on
    a processor), do not fit (grouped queries), or count too much (the backward of grouped convolutions, 32 times for 64
    depthwise channels; scores that a fused kernel of attention computes again). A product of (m, k) and (k, n) counts
    2 m n k; sums, norms and activations count nothing, and a causal mask saves nothing.

    `reducible` is the part of convolutions that a device may do with fewer products than a formula counts, down to a
    quarter of them: kernels of 3 and more in steps of one, by Winograd's algorithm (Lavin and Gray 2015) or by FFT.
    """

    def __init__(self) -> None:
        super().__init__()
        self.flops = 0
        self.reducible = 0
        self.uncounted: set[str] = set()
        self._elements: Counter[str] = Counter()
        self._products: dict[str, set[str]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        packet = func.overloadpacket
        formula = _FORMULAS.get(packet) or flop_registry.get(packet)
        if formula is None:
            # Inference mode dispatches some layers as a whole instead of their products.
            with self:
                parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        out = func(*args, **kwargs)
        if formula is None:
            return out
        operands = [a for a in args if isinstance(a, Tensor) and a.is_floating_point()]
        if operands:
            heaviest = max(operands, key=Tensor.numel)
            ran = "tf32" if _runs_in_tf32(packet.__name__, heaviest) else _short(heaviest.dtype)
            self._elements[ran] += sum(operand.numel() for operand in operands)
            self._products.setdefault(ran, set()).add(packet.__name__)
        try:
            counted = int(formula(*args, **kwargs, out_val=out))
            self.flops += counted
            self.reducible += counted if packet in _KERNEL_AT and _reduces(*args[_KERNEL_AT[packet] :]) else 0
        except (AssertionError, IndexError, TypeError, ValueError):
            # Shapes unknown to a formula, such as grouped queries, are no reason to end a benchmark.
            self.uncounted.add(packet.__name__)
        return out

    @property
    def dtype(self) -> str | None:
        """The dtype of most elements of the products' operands, None without any; `tf32` is fp32 under CUDA's TF32."""
        return next((dtype for dtype, _ in self._elements.most_common(1)), None)

    @property
    def products(self) -> dict[str, list[str]]:
        """The names of all products, by the dtype in which they ran; one may have run in several."""
        return {dtype: sorted(names) for dtype, names in sorted(self._products.items())}

    @property
    def total(self) -> int | None:
        """The count; None if it is incomplete, or if there was nothing to count."""
        return None if self.uncounted else self.flops or None


def _convolution(x: Any, weight: Any, bias: Any, *rest: Any, out_val: Any) -> int:
    """Return the operations of a convolution: rest = stride, padding, dilation, transposed, output_padding, groups."""
    return _products(x.shape if rest[3] else out_val.shape, weight.shape)


def _convolution_backward(grad: Any, x: Any, weight: Any, bias_sizes: Any, *rest: Any, out_val: Any) -> int:
    """Return the operations of the requested gradients, each equal to the forward; `rest` as above, then a mask."""
    wanted = rest[6]
    return (wanted[0] + wanted[1]) * _products(x.shape if rest[3] else grad.shape, weight.shape)


def _products(swept: Any, weight: Any) -> int:
    """Return the operations of a kernel that sweeps over `swept`, (n, c, *space).

    At each place all weights are used once: (out, in / groups, *kernel), transposed (in, out / groups, *kernel).
    """
    return 2 * swept[0] * math.prod(swept[2:]) * math.prod(weight)


def _reduces(weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: Any, *rest: Any) -> bool:
    return max(weight.shape[2:]) >= 3 and max(stride) == max(dilation) == 1 and not transposed


def _recurrent(times: int) -> Callable[..., int]:
    """Return a formula for layers over (*tokens, in): every weight matrix once a token; `times` is 2 for a backward."""

    def formula(x: Any, *args: Any, **kwargs: Any) -> int:
        # cuDNN and MIOpen take all weights as one list, oneDNN the two matrices and biases of one layer.
        weights = args[0] if isinstance(args[0], (list, tuple)) else args[:2]
        return times * 2 * math.prod(x.shape[:-1]) * sum(weight.numel() for weight in weights if weight.dim() == 2)

    return formula


def _grouped(left: Any, right: Any, *args: Any, **kwargs: Any) -> int:
    """Return the operations of products of row groups, (n, k) by (e, k, m), and of their backward, (k, n) by (n, m)."""
    rows = left.shape[-2:] if left.dim() == 3 and right.dim() == 2 else left.shape
    return 2 * math.prod(rows) * right.shape[-1]


def _attention(query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> int:
    """Return the operations of the scores and their product with the values, for shapes of query (b, h, m, d), key
    (b, g, n, d) and value (b, g, n, e). Each of the h heads counts; with fewer key heads g, several share a key.
    """
    return 2 * math.prod(query.shape[:3]) * key.shape[2] * (query.shape[3] + value.shape[3])


def _attention_backward(grad: Any, *args: Any, **kwargs: Any) -> int:
    """Return the operations of two gradients per product; products that a kernel repeats are not the model's."""
    return 2 * _attention(*args, **kwargs)


_FORMULAS: dict[Any, Callable[..., int]] = {
    _aten.convolution: _convolution,
    _aten.convolution_backward: _convolution_backward,
    _aten._cudnn_rnn: _recurrent(1),
    _aten._cudnn_rnn_backward: _recurrent(2),
    _aten.miopen_rnn: _recurrent(1),
    _aten.miopen_rnn_backward: _recurrent(2),
    _aten.mkldnn_rnn_layer: _recurrent(1),
    _aten.mkldnn_rnn_layer_backward: _recurrent(2),
    _aten._grouped_mm: _grouped,
}

for _kernel in ("flash_attention", "flash_attention_for_cpu", "efficient_attention", "cudnn_attention"):
    _FORMULAS[getattr(_aten, f"_scaled_dot_product_{_kernel}")] = _attention
    _FORMULAS[getattr(_aten, f"_scaled_dot_product_{_kernel}_backward")] = _attention_backward

_KERNEL_AT = {_aten.convolution: 1, _aten.convolution_backward: 2}
"""The index of a convolution's weights among the arguments; stride, padding and so on follow."""
