"""WikiText-103, the longer text of the two of Merity et al. (2016): its sizes; layout and contents are WikiText-2's."""

from __future__ import annotations

from cotenant.datasets.sets.wikitext import dataset, recipe

VOCABULARY = 267_734

DATASET = dataset(
    "103",
    "wikitext_103",
    "running text, the published one Wikipedia's, 103 million tokens",
    {"small": recipe(400_000, 20_000, 20_000, VOCABULARY), "full": recipe(103_227_021, 217_646, 245_569, VOCABULARY)},
    542_000_000,
    1_200_000,
)
