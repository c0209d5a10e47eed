"""torchvision's classifiers, by torchvision's names."""

from __future__ import annotations

from typing import Any

import torchvision
from torch import nn

from cotenant.errors import CotenantError, did_you_mean

CLASSES = 1000
"""The number of ImageNet's classes (Russakovsky et al. 2015)."""
_WITH_AUXILIARY = ("googlenet", "inception_v3")
"""Classifiers that return the logits of auxiliary classifiers, too, unless built without them."""
USUAL_SIZE = 224


def classifier(name: str, flag: str, size: int = USUAL_SIZE) -> nn.Module:
    """Return torchvision's classifier of this name with fresh weights, for images of `size` x `size` pixels.

    Raises CotenantError, naming `flag`, for an unknown name, and for a size that its patches do not fill.
    """
    names = torchvision.models.list_models(module=torchvision.models)
    if name not in names:
        raise CotenantError(f"{flag} {name}: torchvision has no such classifier.", did_you_mean(name, names))
    options: dict[str, Any] = {"aux_logits": False, "init_weights": True} if name in _WITH_AUXILIARY else {}
    # Only these two families are built for one size of images and refuse any other.
    if name.startswith("vit_"):
        options["image_size"] = size
    elif name.startswith("maxvit_"):
        options["input_size"] = (size, size)
    try:
        return torchvision.models.get_model(name, weights=None, num_classes=CLASSES, **options)
    except (AssertionError, ValueError) as error:
        reason = str(error).partition("\n")[0].rstrip(".! ")
        raise CotenantError(
            f"{flag} {name} cannot be built for --size {size}: {reason}.",
            f"Give a multiple of {USUAL_SIZE}, or leave --size out.",
        ) from error
