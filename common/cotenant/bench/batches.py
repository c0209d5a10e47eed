"""A benchmark's endless batches, and the number of items of each."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor

from cotenant.bench.contract import Benchmark
from cotenant.bench.loader import constant_input, rows
from cotenant.bench.outcome import MissingDataError
from cotenant.bench.run import Run
from cotenant.errors import CotenantError


class Batches:
    """The batches of a benchmark: `first`, then `endless`; `items` counts the items of a batch.

    `resident`: every batch is the first one. Raises MissingDataError for an input without a batch, and CotenantError
    if its items cannot be counted.
    """

    def __init__(self, benchmark: Benchmark, run: Run) -> None:
        self._benchmark, self._run = benchmark, run
        self.resident = False
        batches: Iterator[Any] = itertools.chain.from_iterable(self._begun_again())
        self.first = next(batches)
        self.endless: Iterator[Any] = itertools.chain([self.first], batches)
        self.items = counter(benchmark, self.first, self.resident)
        if (finding := constant_input(self.first)) is not None:
            run.findings.append(finding)
        if benchmark.cached_batch and not self.resident:
            self._cache_first()

    def _cache_first(self) -> None:
        run = self._run
        run.heeded.add("cached_batch")
        self.resident = True
        # The source of input is no longer referenced: its processes end before READY.
        self.endless = itertools.repeat(self.first)
        self.items = counter(self._benchmark, self.first, self.resident)
        run.uneven = False
        run.observed.pop("loaded_ahead", None)
        run.note(
            "cached_batch",
            "warning",
            "Every step trained on the first batch: this is the rate of the step without its input.",
            "Leave --cached-batch out for the rate of the task.",
        )

    def _begun_again(self) -> Iterator[Iterator[Any]]:
        """Yield the benchmark's batches, starting them again at their end, which is a finding."""
        for start in itertools.count():
            if start == 1:
                self._run.note(
                    "input_restarted",
                    "warning",
                    "The input ended and was started again inside the measured loop.",
                    "Let `batches` go on without end, as run.loader does.",
                )
            batches = iter(self._benchmark.batches(self._run))
            # An endless `repeat` has no length; a limited one has.
            self.resident = isinstance(batches, itertools.repeat) and operator.length_hint(batches, -1) == -1
            for first in batches:
                yield itertools.chain([first], batches)
                break
            else:
                raise MissingDataError("The benchmark's input holds no batch.")


def counter(benchmark: Benchmark, batch: Any, resident: bool) -> Callable[[Any], float]:
    """Return the benchmark's `items`, or if that is the default, its cheapest equivalent for batches of this type.

    `resident`: every batch is this very one. Raises CotenantError if `items` returns no plain number for `batch`.
    """
    try:
        counted = benchmark.items(batch)
    except (TypeError, IndexError, KeyError) as error:
        raise CotenantError(f"The items of a batch cannot be counted: {error}.", "Define `items(batch)`.") from error
    if not isinstance(counted, (int, float)):
        raise CotenantError(f"`items` returned {counted!r:.60}.", "Let it return a plain number, known on the host.")
    if not benchmark.item_is_row:
        return benchmark.items
    if resident:
        return lambda batch: counted
    if isinstance(batch, Tensor):
        return _size
    if isinstance(batch, (tuple, list)) and isinstance(batch[0], Tensor):
        return _size_of_first
    return rows


# torch.Tensor's own len() is written in Python around this one, and takes three times as long.
_size: Callable[[Any], int] = super(Tensor, Tensor).__len__


def _size_of_first(batch: Any) -> int:
    return _size(batch[0])
