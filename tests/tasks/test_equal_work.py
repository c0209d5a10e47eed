"""Tenants differ in their seed alone: what one counts on its resident batch, all count."""

from __future__ import annotations

from typing import Any

import pytest

from cotenant.bench import Run
from tasks.loading import SMALL, of

COUNTED: dict[str, dict[str, Any]] = {
    "natural_language_processing/rnn_translator": {"batch_size": 5, "count": "tokens"},
    "natural_language_processing/transformer_xl": {},
    "speech_synthesis/tacotron2": {"batch_size": 5, "frames": 40},
    "speech_synthesis/waveglow": {},
}
"""Tasks whose items are no rows of the batch."""


@pytest.mark.parametrize("place", COUNTED)
def test_items_do_not_depend_on_the_seed(place: str) -> None:
    items, batches = [], []
    for seed in (100, 200):
        benchmark = of(place)(cuda=False, **SMALL[place] | COUNTED[place], seed=seed)
        run = Run(benchmark)
        benchmark.build(run)
        batches.append(next(iter(benchmark.batches(run))))
        items.append(benchmark.items(batches[-1]))
    assert items[0] == items[1] > 0
    first, second = (batch if hasattr(batch, "shape") else batch[0] for batch in batches)
    assert first.shape == second.shape
    assert not first.equal(second)
