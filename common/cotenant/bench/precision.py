"""Precisions: a request in any spelling becomes one setting, applied in one place.

fp32 is fp32: TF32, which torch leaves on in convolutions, is switched off for it. bf16 and fp16 are torch.amp's
autocast around the step, fp16 with a gradient scaler. `half` also has fp16 weights with fp32 norms, like apex's O3
with `keep_batchnorm_fp32`, and steps fp32 copies of them, like apex's FP16_Optimizer: without the copies a GPU's
Adam divides zero by zero.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.optim import Optimizer
from torch.utils._pytree import tree_map_only

from cotenant.bench.device import Device
from cotenant.bench.outcome import UnsupportedError
from cotenant.errors import CotenantError


class MasterWeights:
    """The fp32 copies that an optimizer steps in place of its 16-bit weights; its fp32 weights need no copy.

    An fp16 weight loses every step below 1/2048 of its size, and Adam's eps of 1e-8 is zero in fp16: 0 / 0 once a
    gradient's square has faded, too (Micikevicius et al. 2018, "Mixed precision training").
    """

    def __init__(self, optimizer: Optimizer) -> None:
        """Give the optimizer the copies instead of the model's weights; it must not have stepped before."""
        assert not optimizer.state
        self._weights: list[Tensor] = []
        self._masters: list[Tensor] = []
        for group in optimizer.param_groups:
            group["params"] = [self._master(weight) for weight in group["params"]]

    def _master(self, weight: Tensor) -> Tensor:
        if weight.dtype not in (torch.float16, torch.bfloat16):
            return weight
        master = weight.detach().float()
        self._weights.append(weight)
        self._masters.append(master)
        return master

    @property
    def dtype(self) -> torch.dtype | None:
        """The dtype of the model's copied weights; None if the optimizer has no 16-bit weights."""
        return self._weights[0].dtype if self._weights else None

    def forget_gradients(self) -> None:
        for weight in self._weights:
            weight.grad = None

    def take_gradients(self) -> None:
        """Give the copies the weights' gradients, in fp32; a weight without one leaves its copy without."""
        copies, gradients = list[Tensor](), list[Tensor]()
        for master, weight in zip(self._masters, self._weights, strict=True):
            if weight.grad is not None:
                master.grad = torch.empty_like(master)
                copies.append(master.grad)
                gradients.append(weight.grad)
        if gradients:
            # One kernel or a few, not one per weight.
            torch._foreach_copy_(copies, gradients)

    def give_weights(self) -> None:
        """Round the copies to the model's weights; after a skipped step these stay as they are."""
        if self._weights:
            with torch.no_grad():
                torch._foreach_copy_(self._weights, self._masters)


_NORMS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)
_BY_LEVEL = {"O0": "fp32", "O1": "fp16", "O2": "fp16", "O3": "half"}
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "half": torch.float16}


def asked_precision(precision: str | None, half: bool, fp16: bool, opt_level: str | None) -> str:
    """Return fp32, tf32, bf16, fp16 or half for every spelling.

    `--precision` overrides its aliases, such as a job's own. Raises CotenantError if two aliases disagree without it.
    """
    if precision is not None:
        return precision
    aliases = {
        "--half": "half" if half else None,
        "--fp16": "fp16" if fp16 else None,
        "--opt-level": _BY_LEVEL[opt_level] if opt_level else None,
    }
    given = {name: value for name, value in aliases.items() if value}
    if len(set(given.values())) > 1:
        raise CotenantError(
            "Two precisions are asked for: "
            + ", ".join(f"{name} means {value}" for name, value in given.items())
            + ".",
            "Keep one of them, or say --precision, which wins.",
        )
    return next(iter(given.values()), "fp32")


@dataclass(slots=True)
class Precision:
    """One precision on one device. `autocast` surrounds a 16-bit step, `outside` suspends it for the backward.

    `updates` is counted here, as another frame would cost a thousandth of the smallest step. With a scaler, `stepped`
    counts the updates that reached the optimizer, and `overflowed`, on the device, the ones among them that it
    ignored.
    """

    name: str
    autocast: torch.autocast | None = None
    outside: torch.autocast | None = None
    scaler: torch.amp.GradScaler | None = None
    masters: dict[Optimizer, MasterWeights] = field(default_factory=dict)
    updates: int = 0
    stepped: int = 0
    overflowed: Tensor | None = None
    watched: set[Optimizer] = field(default_factory=set)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype in which products are computed."""
        return DTYPES.get(self.name, torch.float32)

    @property
    def skipped(self) -> int | None:
        """The number of updates that changed no weight, as their gradients were not finite; None without a scaler.

        Waits for the device.
        """
        if self.scaler is None:
            return None
        return self.updates - self.stepped + (0 if self.overflowed is None else int(self.overflowed))

    def convert(self, module: nn.Module) -> nn.Module:
        """Return the module with the weights this precision trains: fp16 with fp32 norms for `half`.

        For bf16, recurrent layers on CUDA devices are made to compute in bf16.
        """
        if self.name == "half":
            module.half()
            for part in module.modules():
                if isinstance(part, _NORMS):
                    part.float()
        elif self.name == "bf16" and self.autocast and self.autocast.device == "cuda" and not torch.version.hip:
            for part in module.modules():
                if isinstance(part, nn.RNNBase):
                    part.forward = partial(_in_bf16, part.forward, part)
        return module

    def around(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """Return `step` as it must be called: itself for fp32 and tf32, under autocast for 16 bits."""
        autocast = self.autocast
        if autocast is None:
            return step

        def autocast_step(run: Any, batch: Any) -> Any:
            with autocast:
                return step(run, batch)

        return autocast_step

    def update(self, loss: Tensor, optimizer: Optimizer, clip_norm: float | None = None) -> None:
        """Call zero_grad, backward, clip and step, as this precision needs."""
        self.updates += 1
        if self.outside is None:
            optimizer.zero_grad()
            loss.backward()
            if clip_norm is not None:
                _clip(optimizer, clip_norm)
            optimizer.step()
            return
        with self.outside:
            if self.name == "half":
                self._update_half(loss, optimizer, clip_norm)
            else:
                optimizer.zero_grad()
                self._backward(loss)
                self._step(optimizer, clip_norm)
        # Autocast keeps 16-bit copies of the weights until its outermost context ends: a second forward in the
        # same step (a generator after its discriminator) must see the updated ones.
        torch.clear_autocast_cache()

    def minimize(self, compute: Callable[[], Tensor], optimizer: Optimizer, clip_norm: float | None = None) -> Tensor:
        """Make one step of an optimizer that computes the loss several times a step, like LBFGS; return the first loss.

        It counts as one update. Raises UnsupportedError if gradients are scaled.
        """
        if self.scaler is not None:
            raise UnsupportedError(
                f"{type(optimizer).__name__} computes its loss several times, which no gradient scaler allows for.",
                "Use --precision fp32 or bf16.",
            )
        self.updates += 1

        def closure() -> Tensor:
            # As after an update: the optimizer may have moved the weights since the last call.
            torch.clear_autocast_cache()
            optimizer.zero_grad()
            loss = compute()
            with self.outside or contextlib.nullcontext():
                loss.backward()
            if clip_norm is not None:
                _clip(optimizer, clip_norm)
            return loss

        first = optimizer.step(closure)  # type: ignore[arg-type]
        torch.clear_autocast_cache()
        return first  # type: ignore[return-value] # It is the closure's.

    def _update_half(self, loss: Tensor, optimizer: Optimizer, clip_norm: float | None) -> None:
        masters = self.masters.get(optimizer)
        if masters is None:
            masters = self.masters[optimizer] = MasterWeights(optimizer)
        optimizer.zero_grad()
        masters.forget_gradients()
        self._backward(loss.float())
        masters.take_gradients()
        self._step(optimizer, clip_norm)
        masters.give_weights()

    def _backward(self, loss: Tensor) -> None:
        (loss if self.scaler is None else self.scaler.scale(loss)).backward()

    def _step(self, optimizer: Optimizer, clip_norm: float | None) -> None:
        if self.scaler is None:
            if clip_norm is not None:
                _clip(optimizer, clip_norm)
            optimizer.step()
            return
        if optimizer not in self.watched:
            self.watched.add(optimizer)
            optimizer.register_step_pre_hook(self._steps)
            _zero_momentum(optimizer)
        if clip_norm is not None:
            self.scaler.unscale_(optimizer)
            _clip(optimizer, clip_norm)
        self.scaler.step(optimizer)
        # Once per update, not per step: every loss is scaled after the optimizer before it has stepped.
        self.scaler.update()

    def _steps(self, optimizer: Optimizer, *_: Any) -> None:
        """Count a step that the scaler allows, and on the device the steps that a fused optimizer ignores."""
        self.stepped += 1
        found_inf: Tensor | None = getattr(optimizer, "found_inf", None)
        if found_inf is not None:
            if self.overflowed is None:
                self.overflowed = found_inf.clone()
            else:
                self.overflowed += found_inf  # In place, as a replayed step uses this tensor.


def _in_bf16(forward: Callable[..., Any], layers: nn.RNNBase, *given: Any) -> Any:
    """Call recurrent layers with bf16 copies of their weights; gradients return in fp32.

    Under autocast to bf16 torch casts the layers to fp16, for which there is no scaler (torch 2.14, autocast's
    `_cudnn_rnn`).
    """
    if not torch.is_autocast_enabled("cuda"):
        return forward(*given)
    weights = {name: weight.to(torch.bfloat16) for name, weight in layers.named_parameters()}
    with torch.no_grad():  # In one piece of memory: cuDNN would copy scattered weights once more.
        torch._cudnn_rnn_flatten_weight(
            [weights[name] for name in layers._flat_weights_names],
            (4 if layers.bias else 2) + (layers.proj_size > 0),
            layers.input_size,
            torch.backends.cudnn.rnn.get_cudnn_mode(layers.mode),
            layers.hidden_size,
            layers.proj_size,
            layers.num_layers,
            layers.batch_first,
            layers.bidirectional,
        )
    kinds = Tensor, PackedSequence
    given = tree_map_only(kinds, lambda one: one.to(torch.bfloat16), given, is_leaf=lambda one: isinstance(one, kinds))
    with torch.autocast("cuda", enabled=False):
        out = torch.func.functional_call(layers, weights, given)
    # Otherwise the layers keep the copies, and with them the history of this step.
    layers._flat_weights = [getattr(layers, name) for name in layers._flat_weights_names]
    return out


def _zero_momentum(optimizer: Optimizer) -> None:
    """Start a fused SGD's momentum with zeros, which does not change its first step.

    torch starts it with uninitialised memory, which a first step that overflows leaves in place (torch 2.14).
    """
    for group in optimizer.param_groups:
        if isinstance(optimizer, torch.optim.SGD) and group["fused"] and group["momentum"]:
            for weight in group["params"]:
                optimizer.state[weight].setdefault("momentum_buffer", torch.zeros_like(weight))


def set_precision(name: str, device: Device) -> Precision:
    """Set torch's backends for `name` on `device`. Raises UnsupportedError if the device cannot train in it."""
    kind = device.torch_device.type
    if kind == "cpu" and name in ("fp16", "half"):
        raise UnsupportedError(
            "fp16 training on a CPU is emulated and up to 200 times slower, so it is not measured.",
            "Use --precision bf16.",
        )
    if name == "tf32" and not (device.is_nvidia and torch.cuda.get_device_capability(device.torch_device) >= (8, 0)):
        # An MI300X and Intel's devices have it, but this is not tested there.
        of_others = "is not NVIDIA's, and only these have tf32"
        lacks = of_others if device.is_accelerator and not device.is_nvidia else "has no TF32"
        raise UnsupportedError(f"{device.name} {lacks}.", "Use --precision fp32.")
    # By default torch counts emulation, and autocast takes it for support.
    if name == "bf16" and kind == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
        raise UnsupportedError(f"{device.name} has no bf16: torch would emulate it.", "Use --precision fp16.")
    # These two setters keep torch's older and newer switches in agreement. If the newer were set alone, reading the
    # older ones, as torch.compile does, would raise.
    torch.set_float32_matmul_precision("high" if name == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = name == "tf32"
    if name not in DTYPES:
        return Precision(name)
    return Precision(
        name,
        autocast=torch.autocast(kind, DTYPES[name]),
        outside=torch.autocast(kind, enabled=False),
        scaler=torch.amp.GradScaler(kind) if name in ("fp16", "half") else None,
    )


def _clip(optimizer: Optimizer, norm: float) -> None:
    nn.utils.clip_grad_norm_(weights_of([optimizer]), norm)


def weights_of(optimizers: Iterable[Optimizer]) -> list[Tensor]:
    return [weight for optimizer in optimizers for group in optimizer.param_groups for weight in group["params"]]
