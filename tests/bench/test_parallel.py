"""Real ranks over gloo: the gradients of their model equal those of a single process on all their batches."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from bench.forked import forked
from cotenant.bench.parallel import described_form
from cotenant.bench.world import World

FORMS: dict[str, tuple[Any, ...]] = {
    "ddp": ("ddp", "none"),
    "fsdp": ("fsdp", "none"),
    "ddp, fp16 gradients": ("ddp", "fp16"),
    "ddp, bf16 gradients": ("ddp", "bf16"),
    "fsdp, bf16 gradients": ("fsdp", "bf16"),
}
ROWS, RANKS = 4, 4


def network(rank: int) -> nn.Module:
    """Return a network whose weights differ by rank, until spreading gives all ranks those of rank 0.

    Of the last layer, which has one row, one rank has the only shard.
    """
    torch.manual_seed(rank)
    blocks = [nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(3)]
    return nn.Sequential(nn.Linear(5, 8), nn.Sequential(*blocks), nn.Linear(8, 1))


def batches(ranks: int) -> torch.Tensor:
    return torch.randn(ranks * ROWS, 5, generator=torch.Generator().manual_seed(7))


def gradients(model: nn.Module, batch: torch.Tensor) -> list[torch.Tensor]:
    model.zero_grad()
    model(batch).square().mean().backward()
    found: list[Any] = [parameter.grad for parameter in model.parameters()]
    return [grad.full_tensor() if hasattr(grad, "full_tensor") else grad.clone() for grad in found]


def rank_of(rank: int, ranks: int, folder: Path) -> None:
    world, own = World(rank, rank, ranks, ranks), batches(ranks)[rank * ROWS : (rank + 1) * ROWS]
    found: dict[str, Any] = {}
    for name, form in FORMS.items():
        model = world.spread(network(rank), *form)
        found[name] = gradients(model, own)
    torch.save(found, folder / f"rank{rank}")


def test_gradients_of_all_ranks_are_those_of_one_process(tmp_path: Path) -> None:
    forked(RANKS, rank_of, tmp_path)
    alone = gradients(network(0), batches(RANKS))
    for rank in range(RANKS):
        found = torch.load(tmp_path / f"rank{rank}")
        for name, form in FORMS.items():
            assert described_form(*form) == name
            differences = [(one - other).abs().max().item() for one, other in zip(found[name], alone, strict=True)]
            if form[1] == "none":
                assert max(differences) < 1e-6, (name, rank, differences)
            else:  # Compressed gradients are rounded to fewer bits.
                assert 1e-6 < max(differences) < 1e-2, (name, rank, differences)
