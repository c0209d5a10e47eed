"""LAMB (You et al. 2020, arXiv:1904.00962): Adam's step, scaled for each tensor to the tensor's own norm.

As in NVIDIA's Transformer-XL: moments without bias correction, and a tensor's norm counted as 10 at most.
The host reads nothing of a step, neither a norm nor a gradient scaler's verdict.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

LONGEST = 10.0

Tensors = list[Tensor]


class LAMB(torch.optim.Optimizer):
    """Moves each tensor along its Adam step by `lr` times the tensor's norm."""

    _step_supports_amp_scaling = True
    """A scaler then sets `grad_scale` and `found_inf` during a step."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Do one step; a `closure`, for optimizers that compute several losses, is refused."""
        assert closure is None
        for group in self.param_groups:
            if weights := [weight for weight in group["params"] if weight.grad is not None]:
                self._step_of(group, weights)

    def _step_of(self, group: dict[str, Any], weights: Tensors) -> None:
        moments, squares = ([self._state(weight, name) for weight in weights] for name in ("moment", "square"))
        gradients = self._gradients(weights)
        beta, beta_2 = group["betas"]
        found_inf = getattr(self, "found_inf", None)
        learned = 1.0 if found_inf is None else 1.0 - found_inf
        _mix(moments, gradients, (1 - beta) * learned)
        _mix(squares, list(torch._foreach_mul(gradients, gradients)), (1 - beta_2) * learned)
        steps = torch._foreach_sqrt(squares)
        torch._foreach_add_(steps, group["eps"])
        steps = torch._foreach_div(moments, steps)
        if group["weight_decay"]:
            torch._foreach_add_(steps, weights, alpha=group["weight_decay"])
        lengths = torch._foreach_norm(weights), torch._foreach_norm(steps)
        of_weight, of_step = torch.stack(lengths[0]).clamp(max=LONGEST), torch.stack(lengths[1])
        ratio = torch.where((of_weight > 0) & (of_step > 0), of_weight / (of_step + group["eps"]), 1.0)
        torch._foreach_mul_(steps, list((-group["lr"] * learned * ratio).unbind()))
        torch._foreach_add_(weights, steps)

    def _gradients(self, weights: Tensors) -> Tensors:
        """Return the gradients divided by the scale; 0 replaces non-finite ones, for a step without effect."""
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        if (scale := getattr(self, "grad_scale", None)) is not None:
            gradients = list(torch._foreach_div(gradients, scale))
        if getattr(self, "found_inf", None) is not None:
            gradients = [torch.nan_to_num(gradient, 0.0, 0.0, 0.0) for gradient in gradients]
        return gradients

    def _state(self, weight: Tensor, name: str) -> Tensor:
        state: dict[str, Tensor] = self.state[weight]
        if name not in state:
            state[name] = torch.zeros_like(weight)
        return state[name]


def _mix(averages: Tensors, values: Tensors, share: float | Tensor) -> None:
    """Move each average toward its new value by `share` of the difference."""
    differences = torch._foreach_sub(values, averages)
    torch._foreach_mul_(differences, share)
    torch._foreach_add_(averages, differences)
