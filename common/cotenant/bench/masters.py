"""fp32 copies of 16-bit weights, which the optimizer steps (Micikevicius et al. 2018, "Mixed precision training").

An fp16 weight loses every step below 1/2048 of its size, and Adam's eps of 1e-8 is zero in fp16: 0 / 0 where a
gradient's square has faded too.
"""

from __future__ import annotations

import torch


class MasterWeights:
    """The fp32 copies of one optimizer's 16-bit weights; its fp32 weights (those of norms) are their own."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        """Give the optimizer the copies instead of the model's weights; it must not have stepped before."""
        assert not optimizer.state
        self._weights: list[torch.Tensor] = []
        self._masters: list[torch.Tensor] = []
        for group in optimizer.param_groups:
            group["params"] = [self._master(weight) for weight in group["params"]]

    def _master(self, weight: torch.Tensor) -> torch.Tensor:
        if weight.dtype not in (torch.float16, torch.bfloat16):
            return weight
        master = weight.detach().float()
        self._weights.append(weight)
        self._masters.append(master)
        return master

    @property
    def dtype(self) -> torch.dtype | None:
        """What the model's copied weights are; None where the optimizer has no 16-bit weights."""
        return self._weights[0].dtype if self._weights else None

    def forget_gradients(self) -> None:
        for weight in self._weights:
            weight.grad = None

    def take_gradients(self) -> None:
        """Give the copies the weights' gradients, in fp32; a weight without one leaves its copy without."""
        copies, gradients = list[torch.Tensor](), list[torch.Tensor]()
        for master, weight in zip(self._masters, self._weights, strict=True):
            if weight.grad is not None:
                master.grad = torch.empty_like(master)
                copies.append(master.grad)
                gradients.append(weight.grad)
        if gradients:
            # In one kernel or a few, not in one per weight.
            torch._foreach_copy_(copies, gradients)

    def give_weights(self) -> None:
        """Round the copies to the model's weights; after a skipped step these stay as they are."""
        if self._weights:
            with torch.no_grad():
                torch._foreach_copy_(self._weights, self._masters)
