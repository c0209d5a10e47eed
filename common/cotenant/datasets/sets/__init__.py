"""Every data set that a benchmark reads: each is a module of its name, which is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module

from cotenant.datasets.dataset import Dataset
from cotenant.errors import CotenantError, did_you_mean

NAMES = ("mnist", "imagenet", "coco", "ml_20m", "wmt16", "wikitext", "wikitext_103", "bsds500")


def find_dataset(name: str) -> Dataset:
    """Return the data set of this name; raises CotenantError with the names there are."""
    if name not in NAMES:
        raise CotenantError(
            f"There is no data set '{name}'.", f"{did_you_mean(name, NAMES)} The sets: {', '.join(NAMES)}.".strip()
        )
    dataset: Dataset = import_module(f"{__name__}.{name}").DATASET
    return dataset
