"""How large batches are: the words of a random part of them, or the numbers that are not zero, for each item counted.

The first batches tell how large an item is. Later ones that are shorter, or filled up with padding, would be credited
as many items. Looking at a batch takes longer than some steps, so that it is done when the clock has stopped.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from cotenant.bench.audit import falls_short
from cotenant.bench.contract import Benchmark
from cotenant.bench.loader import ORDERED, tensors_in

ONE_IN = 10
"""One batch of an observation is looked at for every so many."""
MOST_HELD_BYTES = 1 << 24
"""Where batches are larger, only one is held for that: a device may be full."""
LOOKED_AT = 1 << 16
"""So many numbers of a tensor are looked at."""
SMALLER = 0.05
"""Batches of one set differ in their size; by this much all of them do not."""
FEW = 3

_chance = random.SystemRandom()


def chosen(number: int, batch_bytes: int) -> set[int]:
    """Return which of `number` batches are looked at: drawn anew each time, so that nobody can know."""
    many = max(1, number // ONE_IN) if batch_bytes <= MOST_HELD_BYTES else 1
    return set(_chance.sample(range(number), many))


def bytes_of(batch: Any) -> int:
    return sum(tensor.nbytes for tensor in tensors_in(batch))


@dataclass(slots=True)
class Sizes:
    """Adds up the contents of the batches that were looked at; `filled` has the amount for an item of each."""

    items: float = 0.0
    words: int = 0
    places: int = 0
    batches: int = 0
    filled: list[float] = field(default_factory=list)

    def take(self, benchmark: Benchmark, batch: Any, items: float) -> None:
        """Look at a batch that counts so many items."""
        words, places = words_of(benchmark, batch)
        self.batches += 1
        self.items += items
        self.words += words
        self.places += places
        if items > 0:
            self.filled.append((words if places else filled(batch)) / items)

    def __add__(self, other: Sizes) -> Sizes:
        return Sizes(
            self.items + other.items,
            self.words + other.words,
            self.places + other.places,
            self.batches + other.batches,
            [*self.filled, *other.filled],
        )

    @property
    def mean(self) -> float:
        """The mean content of an item."""
        return sum(self.filled) / len(self.filled) if self.filled else 0.0


class ObservedSizes:
    """The sizes of the warm-up's batches, and of those of each observation that were looked at."""

    def __init__(self, benchmark: Benchmark) -> None:
        self._benchmark = benchmark
        self.warm_up = Sizes()
        self._observed: list[Sizes] = []

    def take(self, held: Sequence[Any], items: Callable[[Any], float]) -> None:
        """Look at the batches that an observation has held, each once."""
        self._observed.append(Sizes())
        for batch in {id(batch): batch for batch in held}.values():
            self._observed[-1].take(self._benchmark, batch, items(batch))

    @property
    def _kept(self) -> Sizes:
        """The sizes in the observations that are kept, as far as is known here: a budget may keep more."""
        skip = min(self._benchmark.skip or 0, len(self._observed) // 3)
        return sum(self._observed[skip:], Sizes())

    def results(self) -> dict[str, Any]:
        """Return the part of a record on them: sizes, and words that are no padding where batches have any."""
        seen = self._kept
        sizes = {"warm_up": self.warm_up.mean, "observed": seen.mean, "batches": seen.batches}
        told = seen if seen.batches else self.warm_up
        if not told.places:
            return {"size_per_item": sizes}
        each = {"items_per_step": told.items / told.batches, "words_per_step": told.words / told.batches}
        return each | {"padding": 1 - told.words / told.places, "size_per_item": sizes}

    def differences(self) -> list[str]:
        return smaller(self.warm_up, self._kept)


def words_of(benchmark: Benchmark, batch: Any) -> tuple[int, int]:
    """Return the words of a batch that are no padding, and the places for words; none where it declares no padding."""
    padding = benchmark.padding
    if padding is None:
        return 0, 0
    texts = list(benchmark.texts(batch))
    return sum(int(text.ne(padding).sum()) for text in texts), sum(text.numel() for text in texts)


def filled(batch: Any) -> float:
    """Return about how many numbers of the largest tensor of a batch are not zero; 0 without a tensor."""
    largest: torch.Tensor | None = max(tensors_in(batch), key=torch.Tensor.numel, default=None)
    if largest is None or not largest.numel():
        return 0.0
    if largest.layout is not torch.strided or largest.dtype not in ORDERED or not largest.is_contiguous():
        return float(largest.numel())
    flat = largest.detach().view(-1)
    some = flat[:: max(1, flat.numel() // LOOKED_AT)]
    return largest.numel() * int(torch.count_nonzero(some)) / some.numel()


def smaller(warm_up: Sizes, observed: Sizes) -> list[str]:
    """Return the difference of batches that all hold less than those of the warm-up, as none of one set does."""
    if len(observed.filled) < FEW or not warm_up.filled or min(warm_up.filled) <= 0:
        return []
    if not falls_short(warm_up.filled, observed.filled, SMALLER):
        return []
    unit = "words" if warm_up.places else "numbers"
    return [f"batches of {observed.mean:.4g} {unit} for an item, not {warm_up.mean:.4g}"]
