"""Every real set, by name."""

from __future__ import annotations

from collections.abc import Mapping

from cotenant.datasets.real.bsds500 import BSDS500
from cotenant.datasets.real.coco import COCO
from cotenant.datasets.real.imagenet import IMAGENET
from cotenant.datasets.real.mnist import MNIST
from cotenant.datasets.real.real_set import RealSet
from cotenant.datasets.real.texts import LJSPEECH, ML_20M, SQUAD, WIKITEXT, WIKITEXT_103
from cotenant.datasets.real.wmt16 import WMT16
from cotenant.errors import CotenantError, did_you_mean

REAL_SETS: Mapping[str, RealSet] = {
    one.name: one for one in (MNIST, IMAGENET, COCO, ML_20M, WMT16, WIKITEXT, WIKITEXT_103, BSDS500, LJSPEECH, SQUAD)
}


def find_real(name: str) -> RealSet:
    """Return the real set of this name; raises CotenantError with the names there are."""
    found = REAL_SETS.get(name)
    if found is None:
        raise CotenantError(
            f"There is no real data set '{name}'.",
            f"{did_you_mean(name, REAL_SETS)} The sets: {', '.join(REAL_SETS)}.".strip(),
        )
    return found
