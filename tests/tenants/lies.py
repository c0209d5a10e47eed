#!/usr/bin/env python
"""Programs that are credited work which they do not do. Each has to be INVALID, without being known.

    ./lies.py HalfTheWords --repeat 9 --number 20

Programs that cheat a launch, not its loop (tenants that never load each other, an interpreter that is changed) have a
place here, too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import torch

from cotenant.bench import Run, loop, main
from cotenant.bench.chrono import Observation, Work
from tenants.honest import CLASSES, WIDTH, Plain, Sentences

HONEST = 6
"""For so many steps somebody may look: those of the warm-up and of its audit."""
MOVED = 0.23


def fresh_rows(self: Plain, run: Run) -> Iterator[Any]:
    """Yield rows and labels that are drawn anew: nothing is learned by heart, so that weights move to the end."""
    while True:
        yield torch.randn(self.batch_size, WIDTH), torch.randint(CLASSES, (self.batch_size,))


class SkippingSGD(torch.optim.SGD):
    """Steps in one of eight calls, once nobody looks any more."""

    calls = 0

    def step(self, closure: Any = None) -> Any:
        self.calls += 1
        return super().step(closure) if self.calls <= HONEST or self.calls % 8 == 0 else None


class SkipsSteps(Plain):
    """Its optimizer skips seven of eight steps."""

    def build(self, run: Run) -> None:
        super().build(run)
        self.optimizer = SkippingSGD(self.model.parameters(), lr=0.05)


class SomeWeights(torch.optim.SGD):
    """Steps the first of its weights alone, once nobody looks any more."""

    calls = 0

    def step(self, closure: Any = None) -> Any:
        self.calls += 1
        (group,) = self.param_groups
        every = group["params"]
        group["params"] = every if self.calls <= HONEST else every[:1]
        try:
            return super().step(closure)
        finally:
            group["params"] = every


class LosesWeights(Plain):
    """All weights but one leave its optimizer."""

    batches = fresh_rows

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        if self.steps == HONEST:
            (group,) = self.optimizer.param_groups
            group["params"] = group["params"][:1]
        return super().step(run, batch)


class SkipsWeights(Plain):
    """Its optimizer steps one of six weights."""

    batches = fresh_rows

    def build(self, run: Run) -> None:
        super().build(run)
        self.optimizer = SomeWeights(self.model.parameters(), lr=0.05)


class Timed(Plain):
    """Says that its steps last a time, and trains on a quarter of each batch."""

    timed: ClassVar[bool] = True

    def loss(self, batch: Any) -> torch.Tensor:
        rows = len(batch[0]) if self.steps <= HONEST else len(batch[0]) // 4
        return super().loss((batch[0][:rows], batch[1][:rows]))


class Quarter(Timed):
    """Says that its steps differ, and they all do a quarter of the first."""

    timed = False

    def build(self, run: Run) -> None:
        super().build(run)
        run.uneven = True

    def loss(self, batch: Any) -> torch.Tensor:
        # Such steps have an audit of sixteen in the warm-up.
        rows = len(batch[0]) if self.steps <= HONEST + 16 else len(batch[0]) // 4
        return Plain.loss(self, (batch[0][:rows], batch[1][:rows]))


class FirstStepAlone(Plain):
    """Only the step that is said to be watched does the whole work."""

    def loss(self, batch: Any) -> torch.Tensor:
        rows = len(batch[0]) if self.steps <= 1 else len(batch[0]) // 2
        return super().loss((batch[0][:rows], batch[1][:rows]))


class HalfTheWords(Sentences):
    """Rows have 64 words in the warm-up, and 33 behind it; rows are counted."""

    item = "sentence"
    padding = None
    words_before, words_after = 64, 33

    def batches(self, run: Run) -> Iterator[torch.Tensor]:
        for number in range(1 << 30):
            yield self.made(self.words_before if number < HONEST else self.words_after)

    def made(self, words: int) -> torch.Tensor:
        return self.batch_of([words] * self.batch_size)

    def items(self, batch: torch.Tensor) -> int:
        return len(batch)


class PaddedLater(HalfTheWords):
    """The first batches are full, and the later ones are padding for the most part; every place is counted."""

    item = "word"
    padding = 0

    def made(self, words: int) -> torch.Tensor:
        batch = super().made(self.words_before)
        batch[:, words:] = 0
        return batch

    def items(self, batch: torch.Tensor) -> int:
        return batch.numel()


class PaddedRows(PaddedLater):
    """The same, and rows are counted."""

    item = "sentence"

    def items(self, batch: torch.Tensor) -> int:
        return len(batch)


class SilentPadding(PaddedRows):
    """The same, and it does not say that 0 is padding."""

    padding = None


class BeginsLate(Plain):
    """Its clock starts when a part of the observation's batches are done, and all of them are counted.

    Of few batches the 2 ms between two observations, which an honest harness may take, would hide most of that part.
    """

    number: int = 1500

    def build(self, run: Run) -> None:
        super().build(run)
        honest = loop.observe

        def late(work: Work, number: int) -> Observation:
            ahead = max(1, round(MOVED * number))
            for _ in range(ahead):
                work.step(work.run, next(work.batches))
            seen = honest(work, number - ahead)
            return replace(seen, items=seen.items * number / (number - ahead))

        loop.observe = late


LIES: dict[str, type[Plain]] = {
    kind.__name__: kind
    for kind in list(globals().values())
    if isinstance(kind, type) and issubclass(kind, Plain) and kind.__module__ == __name__
}

if __name__ == "__main__":
    main(LIES[sys.argv[1]], sys.argv[2:])
