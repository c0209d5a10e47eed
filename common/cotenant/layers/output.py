"""The output layer of a language model and its cross entropy in one, never holding the logits of all positions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

ROWS = 2048
"""The number of positions with logits at a time: enough for products of full speed."""


def cross_entropy_of(x_nw: Tensor, weight_vw: Tensor, bias_v: Tensor, target_n: Tensor) -> Tensor:
    """Return the mean cross entropy of softmax(x W^T + b), as F.cross_entropy of F.linear gives it.

    Logits, their softmax and its gradient, n x v numbers each, exist of ROWS positions at a time: gradients are made
    in the forward pass. Products are of the type that autocast multiplies in, the softmax is in fp32.
    """
    return _CrossEntropy.apply(x_nw, weight_vw, bias_v, target_n)


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_nw: Tensor, weight_vw: Tensor, bias_v: Tensor, target_n: Tensor) -> Tensor:
        kind, count = x_nw.device.type, len(x_nw)
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight_vw.dtype
        stored = weight_vw.dtype, bias_v.dtype
        loss = torch.zeros((), device=x_nw.device)
        grad_x, grad_bias = torch.empty_like(x_nw), torch.zeros_like(bias_v, dtype=torch.float32)
        grad_weight = torch.zeros_like(weight_vw, dtype=torch.float32)
        with torch.autocast(kind, enabled=False):
            weight_vw, bias_v, input_nw = weight_vw.to(dtype), bias_v.to(dtype), x_nw.to(dtype)
            for x_rw, target_r, grad_rw in zip(
                input_nw.split(ROWS), target_n.split(ROWS), grad_x.split(ROWS), strict=True
            ):
                logits_rv = torch.addmm(bias_v, x_rw, weight_vw.T).float()
                target_r1 = target_r.unsqueeze(1)
                loss -= logits_rv.gather(1, target_r1).sum()
                logits_rv -= (highest_r1 := logits_rv.amax(1, keepdim=True))
                total_r1 = logits_rv.exp_().sum(1, keepdim=True)
                loss += (highest_r1 + total_r1.log()).sum()
                # The softmax less 1 at the target, in the same memory. It is not divided by n here: fp16 would lose it.
                logits_rv /= total_r1
                logits_rv.scatter_add_(1, target_r1, torch.full_like(total_r1, -1.0))
                grad_bias += logits_rv.sum(0)
                slope_rv = logits_rv.to(dtype)
                grad_rw.copy_(slope_rv @ weight_vw)
                grad_weight += slope_rv.T @ x_rw
        ctx.save_for_backward(grad_x, grad_weight, grad_bias)
        ctx.count, ctx.dtypes = count, (x_nw.dtype, *stored)
        return loss / count

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        grads = zip(ctx.saved_tensors, ctx.dtypes, strict=True)
        return (*((grad * (slope / ctx.count)).to(dtype) for grad, dtype in grads), None)
