"""One model over several ranks: replicas that average their gradients, or shards that gather their weights.

`ddp` is Li et al. (2020), `fsdp` Zhao et al. (2023) as torch's `fully_shard` does it. Either can send gradients in 16
bits: half the traffic, and rounded sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import torch
from torch import distributed, nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

from cotenant.bench.precision import DTYPES

Form = Literal["ddp", "fsdp"]
Compression = Literal["none", "fp16", "bf16"]
_HOOKS = {"fp16": default_hooks.fp16_compress_hook, "bf16": default_hooks.bf16_compress_hook}


def over_all_ranks(module: nn.Module, form: Form, compression: Compression) -> nn.Module:
    """Return a module with equal weights on all ranks, which averages their gradients."""
    if form == "fsdp":
        return _sharded(module, compression)
    # Given device ids, DDP would move every input there, even one that a model wants on the host.
    # A view of the buckets saves a copy of all gradients in every step.
    spread = DistributedDataParallel(module, gradient_as_bucket_view=True)
    if compression != "none":
        spread.register_comm_hook(None, _HOOKS[compression])
    return spread


def take_first(module: nn.Module) -> None:
    """Give every rank the first rank's weights and buffers."""
    for tensor in (*module.parameters(), *module.buffers()):
        distributed.broadcast(tensor.detach(), src=0)


def described_form(form: str, compression: Compression) -> str:
    """Return the record's description of the form: `ddp`, or `fsdp, bf16 gradients`."""
    return form if compression == "none" else f"{form}, {compression} gradients"


def local(tensor: torch.Tensor) -> torch.Tensor:
    """Return this rank's part of a sharded tensor, sharing its memory; any other tensor as it is."""
    return tensor.to_local() if is_sharded(tensor) else tensor  # type: ignore[attr-defined] # a DTensor


def is_sharded(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a DTensor, sharded over ranks, without importing DTensor, which takes 0.8 s."""
    return hasattr(tensor, "to_local")


def _sharded(module: nn.Module, compression: Compression) -> nn.Module:
    """Shard each block by itself, so that one is gathered while another computes, then the rest as a last block."""
    # This import takes 0.8 s, which other forms need not pay.
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    # DDP takes the first rank's weights; here every rank would keep its own random part.
    take_first(module)
    # The default is an accelerator's mesh, even if the model is on the CPU of a host that has one.
    mesh = init_device_mesh(next(module.parameters()).device.type, (distributed.get_world_size(),))
    policy = MixedPrecisionPolicy(reduce_dtype=DTYPES.get(compression))
    for part in (*_blocks(module), module):
        fully_shard(part, mesh=mesh, mp_policy=policy)
    return module


def _blocks(module: nn.Module) -> Iterator[nn.Module]:
    """Yield the members of a module's outermost sequences that have weights: a network's repeated blocks."""
    for child in module.children():
        if isinstance(child, (nn.Sequential, nn.ModuleList)):
            yield from (block for block in child if any(True for _ in block.parameters()))
        else:
            yield from _blocks(child)
