"""LAMB (You et al. 2020, arXiv:1904.00962): Adam's step of each tensor, as long as the tensor itself allows.

As NVIDIA's Transformer-XL trains: moments without correction of their bias, and a tensor's length of 10 at most.
Nothing of a step is read on the host, neither a length nor a gradient scaler's verdict.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

LONGEST = 10.0

Tensors = list[Tensor]


class LAMB(torch.optim.Optimizer):
    """`lr` times a tensor's length over that of its Adam step is how far it goes along that step."""

    _step_supports_amp_scaling = True
    """A scaler then sets `grad_scale` and `found_inf` for the time of a step."""

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
        """Do one step; a `closure` is for optimizers that ask for several losses, and is refused."""
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
        """Return the gradients, without a scaler's factor; non-finite values are 0, for a step that changes nothing."""
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
    """Let each average take so large a share of its new value."""
    differences = torch._foreach_sub(values, averages)
    torch._foreach_mul_(differences, share)
    torch._foreach_add_(averages, differences)
