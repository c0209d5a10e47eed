"""Input from a dataset, as one iterator over full batches without end for the whole launch; checks the first batch.

Restarting a loader inside the clock would time its workers' start-up, so samples are drawn without end: a batch may
cross the border of two shufflings, and every batch is full, even if the dataset is smaller than a batch.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.data import BatchSampler, DataLoader, Dataset, Sampler, TensorDataset

from cotenant.bench.outcome import MissingDataError
from cotenant.finding import Finding

Place = Callable[[Tensor], Tensor]
CHUNK = 4096
PREFETCH = 2
"""Batches that each process loads ahead: torch's own default."""
LONGEST_SOCKET_PATH = 107
_SOCKET = "/pymp-12345678/listener-12345678"


class EndlessSampler(Sampler[int]):
    """The indices of `size` samples, shuffled again each time all were drawn."""

    def __init__(self, size: int, seed: int) -> None:
        if size < 1:
            raise MissingDataError("The data set is empty.", "Make it again with ./download_datasets.sh.")
        self._size = size
        self._generator = torch.Generator().manual_seed(seed)

    def shufflings(self) -> Iterator[Tensor]:
        while True:
            yield torch.randperm(self._size, generator=self._generator)

    def __iter__(self) -> Iterator[int]:
        # A list of all indices would take four times the memory, and making it would take time inside the clock.
        for order in self.shufflings():
            for chunk in order.split(CHUNK):
                yield from chunk.tolist()


def usual_workers() -> int:
    """Return the default number of loader processes: one for each processor this process may use.

    With one processor there are none: a second process would only add the transfer.
    """
    processors = len(os.sched_getaffinity(0))
    return processors if processors > 1 else 0


def loader(
    dataset: Dataset[Any],
    batch_size: int,
    workers: int,
    seed: int,
    pin_memory: bool = False,
    place: Place | None = None,
    collate: Callable[[list[Any]], Any] | None = None,
) -> Iterator[Any]:
    """Return an endless iterator over batches of `batch_size` samples, each tensor passed through `place`.

    A TensorDataset is gathered a batch at a time in this process; any other dataset goes through torch's DataLoader
    with `workers` processes. Raises MissingDataError for an empty dataset.
    """
    sampler = EndlessSampler(len(dataset), seed)  # type: ignore[arg-type]
    if workers:
        _let_sockets_fit()
    if isinstance(dataset, TensorDataset):
        batches = _gathered(dataset.tensors, sampler, batch_size, pin_memory)
    else:
        batches = iter(
            DataLoader(
                dataset,
                batch_sampler=BatchSampler(sampler, batch_size, drop_last=True),
                num_workers=workers,
                prefetch_factor=PREFETCH if workers else None,
                collate_fn=collate,
                pin_memory=pin_memory,
                generator=torch.Generator().manual_seed(seed),
            )
        )
    return batches if place is None else (tree_map_only(Tensor, place, batch) for batch in batches)


def _let_sockets_fit() -> None:
    """Choose a temporary directory whose path is short enough for the sockets by which processes pass tensors.

    Otherwise a loader process drops its batches, and this process waits for them forever.
    """
    place = tempfile.gettempdir()
    if len(os.fsencode(place + _SOCKET)) > LONGEST_SOCKET_PATH:
        descriptor = os.open(place, os.O_PATH | os.O_DIRECTORY)
        tempfile.tempdir = f"/proc/{os.getpid()}/fd/{descriptor}"


def _gathered(tensors: tuple[Tensor, ...], sampler: EndlessSampler, batch_size: int, pin_memory: bool) -> Iterator[Any]:
    left = torch.empty(0, dtype=torch.int64)
    for order in sampler.shufflings():
        left = torch.cat([left, order])
        while len(left) >= batch_size:
            chosen, left = left[:batch_size], left[batch_size:]
            # index_select copies whole rows; tensor[chosen] took 14 times as long for 784 bytes each.
            parts = (tensor.index_select(0, chosen) for tensor in tensors)
            # A copy from unpinned memory may wait for the steps before it.
            yield tuple(part.pin_memory() if pin_memory else part for part in parts)


ORDERED = frozenset(
    (
        torch.float64,
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.int32,
        torch.int16,
        torch.int8,
        torch.uint8,
    )
)
LEAST_ELEMENTS = 16
"""Fewer elements may all be equal by chance."""


def constant_input(batch: Any) -> Finding | None:
    """Return the finding for a batch whose largest tensors all hold one value; labels may do so.

    Products of zeros take less power than products of varied numbers, and so run at higher clocks.
    """
    tensors = [leaf for leaf in tensors_in(batch) if leaf.layout is torch.strided and leaf.dtype in ORDERED]
    elements = max((tensor.numel() for tensor in tensors), default=0)
    if elements < LEAST_ELEMENTS:
        return None
    ends = [torch.aminmax(tensor) for tensor in tensors if tensor.numel() == elements]
    if any(low != high for low, high in ends):
        return None
    low = ends[0][0]
    return Finding(
        "constant_input",
        "error" if low == 0 else "warning",
        f"The first batch holds nothing but {low.item():g}, in all {elements} elements of its largest tensor.",
        "Fill batches with random or real data: devices compute faster with constants than with varied numbers.",
    )


def tensors_in(batch: Any) -> list[Tensor]:
    """Return the tensors of a batch, at any depth."""
    return [leaf for leaf in tree_leaves(batch) if isinstance(leaf, Tensor)]


def rows(batch: Any) -> int:
    """Return the rows of a batch: of the tensor itself, or of the first part of a tuple, list or dict."""
    if isinstance(batch, dict):
        batch = next(iter(batch.values()))
    elif isinstance(batch, (tuple, list)):
        batch = batch[0]
    return len(batch)


def rows_or_none(batch: Any) -> int | None:
    """Return the rows of a batch, None if it has none."""
    try:
        return rows(batch)
    except (TypeError, IndexError, KeyError, StopIteration):
        return None
