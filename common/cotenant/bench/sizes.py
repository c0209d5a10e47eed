"""The sizes of batches: the words, or the non-zero numbers, per counted item in a random sample of them.

The first batches show the size of an item. Later ones that are shorter, or padded, would be credited with as many
items. Looking at a batch takes longer than some steps, so it is done when the clock has stopped.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from statistics import fmean
from typing import Any, NamedTuple

import torch

from cotenant.bench.contract import Benchmark
from cotenant.bench.loader import ORDERED, tensors_in

ONE_IN = 10
"""One of this many batches of an observation is looked at."""
MOST_HELD_BYTES = 1 << 24
"""The most bytes of batches held for that, though always one batch: a device may be full."""
LOOKED_AT = 1 << 16
"""The most numbers of a tensor that are looked at."""
SMALLER = 0.05
"""Batches of one data set differ in size, but not all of them by this share."""
FEW = 3

_chance = random.SystemRandom()


def chosen(number: int, batch_bytes: int) -> set[int]:
    """Return the batches out of `number` to look at: drawn anew each time."""
    many = max(1, min(number // ONE_IN, MOST_HELD_BYTES // max(1, batch_bytes)))
    return set(_chance.sample(range(number), many))


def bytes_of(batch: Any) -> int:
    return sum(tensor.nbytes for tensor in tensors_in(batch))


class Contents(NamedTuple):
    """The contents of a batch: its items, words and places for words, and the amount it holds per item."""

    items: float
    words: int
    places: int
    amount: float


class ObservedSizes:
    """The sizes of the warm-up's batches, and of a sample of each observation's."""

    def __init__(self, benchmark: Benchmark) -> None:
        self._benchmark = benchmark
        self._warm_up: list[Contents] = []
        self._observed: list[list[Contents]] = []

    def take_first(self, batch: Any, items: float) -> None:
        """Look at a batch of the warm-up, counted as `items` items."""
        self._warm_up.append(self._size(batch, items))

    def take(self, held: Sequence[Any], items: Callable[[Any], float]) -> None:
        """Look at the batches that an observation has held, each once."""
        different = {id(batch): batch for batch in held}.values()
        self._observed.append([self._size(batch, items(batch)) for batch in different])

    def _size(self, batch: Any, items: float) -> Contents:
        words, places = words_in_batch(self._benchmark, batch)
        return Contents(items, words, places, (words if places else filled(batch)) / items if items > 0 else 0.0)

    @property
    def _kept(self) -> list[Contents]:
        """The sizes in the observations that are kept, as far as known here: a budget may keep more."""
        skip = min(self._benchmark.skip or 0, len(self._observed) // 3)
        return list(chain.from_iterable(self._observed[skip:]))

    def results(self) -> dict[str, Any]:
        """Return the record's part on sizes, and on words that are no padding for batches that hold words."""
        seen = self._kept
        told = seen or self._warm_up
        places, words = sum(size.places for size in told), sum(size.words for size in told)
        sizes = {"warm_up": _mean(self._warm_up), "observed": _mean(seen), "batches": len(seen)}
        if not places:
            return {"size_per_item": sizes}
        per_step = {"items_per_step": sum(size.items for size in told) / len(told), "words_per_step": words / len(told)}
        return per_step | {"padding": 1 - words / places, "size_per_item": sizes}

    def differences(self) -> list[str]:
        unit = "words" if any(size.places for size in self._warm_up) else "numbers"
        return smaller(_amounts(self._warm_up), _amounts(self._kept), unit)


def smaller(before: Sequence[float], after: Sequence[float], unit: str) -> list[str]:
    """Return a sentence if every batch holds less than every warm-up batch: sizes within one data set overlap."""
    if len(after) < FEW or not before or min(before) <= 0 or not falls_short(before, after):
        return []
    return [f"batches of {fmean(after):.4g} {unit} per item, not {fmean(before):.4g}"]


def falls_short(before: Sequence[float], after: Sequence[float]) -> bool:
    """Return whether all of `after` lie below `before`, by SMALLER and by more than they differ from each other."""
    most = max(after)
    gap = min(before) - most
    return gap > SMALLER * min(before) and gap > most - min(after)


def _amounts(sizes: Iterable[Contents]) -> list[float]:
    return [size.amount for size in sizes if size.items > 0]


def _mean(sizes: Iterable[Contents]) -> float:
    return fmean(_amounts(sizes) or [0.0])


def words_in_batch(benchmark: Benchmark, batch: Any) -> tuple[int, int]:
    """Return the words of a batch that are no padding, and its places for words; zeros if it declares no padding."""
    padding = benchmark.padding
    if padding is None:
        return 0, 0
    texts = list(benchmark.texts(batch))
    return sum(int(text.ne(padding).sum()) for text in texts), sum(text.numel() for text in texts)


def filled(batch: Any) -> float:
    """Return the approximate number of non-zero numbers in the largest tensor of a batch; 0 without a tensor."""
    largest: torch.Tensor | None = max(tensors_in(batch), key=torch.Tensor.numel, default=None)
    if largest is None or not largest.numel():
        return 0.0
    if largest.layout is not torch.strided or largest.dtype not in ORDERED or not largest.is_contiguous():
        return float(largest.numel())
    flat = largest.detach().view(-1)
    some = flat[:: max(1, flat.numel() // LOOKED_AT)]
    return largest.numel() * int(torch.count_nonzero(some)) / some.numel()
