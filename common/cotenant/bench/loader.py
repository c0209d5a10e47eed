"""Input from a dataset: one iterator for the whole launch, full batches without end.

A loader that is restarted inside the clock times its workers' start-up, so samples are drawn without end: a batch may
cross the border of two shufflings, and every batch is full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, Sampler, TensorDataset

from cotenant.bench.device import Device
from cotenant.bench.outcome import MissingDataError


class EndlessSampler(Sampler[int]):
    """The indices of `size` samples, shuffled anew each time all were drawn."""

    def __init__(self, size: int, seed: int) -> None:
        if size < 1:
            raise MissingDataError("The data set is empty.", "Make it again with ./download_datasets.sh.")
        self._size = size
        self._generator = torch.Generator().manual_seed(seed)

    def __iter__(self) -> Iterator[int]:
        while True:
            yield from torch.randperm(self._size, generator=self._generator).tolist()


def loader(
    dataset: Dataset[Any],
    batch_size: int,
    workers: int,
    seed: int,
    device: Device,
    collate: Callable[[list[Any]], Any] | None = None,
) -> Iterator[Any]:
    """Return an endless iterator over batches of `batch_size` samples, on the device.

    A TensorDataset is indexed a batch at a time in this process; any other dataset goes through torch's DataLoader with
    `workers` processes. Raises MissingDataError for an empty dataset.
    """
    sampler = EndlessSampler(len(dataset), seed)  # type: ignore[arg-type]
    if isinstance(dataset, TensorDataset):
        return _from_memory(dataset.tensors, sampler, batch_size, device)
    batches = iter(
        DataLoader(
            dataset,
            batch_sampler=BatchSampler(sampler, batch_size, drop_last=True),
            num_workers=workers,
            collate_fn=collate,
            pin_memory=device.is_accelerator,
            persistent_workers=workers > 0,
            generator=torch.Generator().manual_seed(seed),
        )
    )
    return map(_mover(device), batches) if device.is_accelerator else batches


def _from_memory(
    tensors: tuple[torch.Tensor, ...], sampler: EndlessSampler, batch_size: int, device: Device
) -> Iterator[Any]:
    size, generator = sampler._size, sampler._generator
    move = _mover(device)
    left = torch.empty(0, dtype=torch.int64)
    while True:
        while len(left) < batch_size:
            left = torch.cat([left, torch.randperm(size, generator=generator)])
        chosen, left = left[:batch_size], left[batch_size:]
        yield move(tuple(tensor[chosen] for tensor in tensors))


def _mover(device: Device) -> Callable[[Any], Any]:
    def move(batch: Any) -> Any:
        if isinstance(batch, torch.Tensor):
            return batch.to(device.torch_device, non_blocking=True)
        if isinstance(batch, (tuple, list)):
            return type(batch)(move(part) for part in batch)
        if isinstance(batch, dict):
            return {key: move(part) for key, part in batch.items()}
        return batch

    return move
