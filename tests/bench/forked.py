"""Real ranks over gloo, forked from a test: torch is loaded once."""

from __future__ import annotations

import gc
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed.fsdp  # It takes 0.8 s, and ranks forked later have it already.
from torch import distributed

from patience import HANG_S


def forked(ranks: int, work: Callable[..., None], folder: Path, *arguments: Any) -> None:
    """Call `work(rank, ranks, folder, *arguments)` in one process for each rank."""
    gc.collect()  # A store that is collected in a child crashes it: its threads do not survive the fork.
    forking = multiprocessing.get_context("fork")
    children = [forking.Process(target=_rank_of, args=(work, rank, ranks, folder, *arguments)) for rank in range(ranks)]
    for child in children:
        child.start()
    for child in children:
        child.join(HANG_S)
        assert child.exitcode == 0


def _rank_of(work: Callable[..., None], rank: int, ranks: int, folder: Path, *arguments: Any) -> None:
    torch.set_num_threads(1)  # The parent's other threads do not survive a fork.
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
    work(rank, ranks, folder, *arguments)
    distributed.destroy_process_group()
