"""Every set that can be made, by name."""

from __future__ import annotations

from collections.abc import Mapping

from cotenant.datasets.maker import Maker
from cotenant.datasets.makers.bsds500 import BSDS500
from cotenant.datasets.makers.coco import COCO
from cotenant.datasets.makers.imagenet import IMAGENET
from cotenant.datasets.makers.ml_20m import ML_20M
from cotenant.datasets.makers.mnist import MNIST
from cotenant.datasets.makers.wikitext import WIKITEXT
from cotenant.datasets.makers.wmt16 import WMT16
from cotenant.errors import CotenantError, did_you_mean

MAKERS: Mapping[str, Maker] = {maker.name: maker for maker in (MNIST, IMAGENET, COCO, ML_20M, WMT16, WIKITEXT, BSDS500)}


def find_maker(name: str) -> Maker:
    """Return the maker of this name; raises CotenantError with the names there are."""
    maker = MAKERS.get(name)
    if maker is None:
        raise CotenantError(
            f"There is no data set '{name}'.",
            f"{did_you_mean(name, MAKERS)} The sets: {', '.join(MAKERS)}.".strip(),
        )
    return maker
