"""torchvision's classifiers by their names there."""

from __future__ import annotations

import torchvision
from torch import nn

from cotenant.errors import CotenantError, did_you_mean

CLASSES = 1000
"""ImageNet's (Russakovsky et al. 2015)."""
_WITH_AUXILIARY = ("googlenet", "inception_v3")
"""These two also return the logits of auxiliary classifiers, unless they are built without them."""


def classifier(name: str, flag: str) -> nn.Module:
    """Return torchvision's classifier of this name with fresh weights.

    Raises CotenantError for an unknown one; `flag` is how it was asked for.
    """
    known = torchvision.models.list_models(module=torchvision.models)
    if name not in known:
        raise CotenantError(f"{flag} {name}: torchvision has no such classifier.", did_you_mean(name, known))
    options = {"aux_logits": False, "init_weights": True} if name in _WITH_AUXILIARY else {}
    model: nn.Module = torchvision.models.get_model(name, weights=None, num_classes=CLASSES, **options)
    return model
