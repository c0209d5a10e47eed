"""The losses of a run: kept on the device inside the clock, looked at outside it."""

from __future__ import annotations

import math
from typing import Any

import torch

from cotenant.bench.chrono import Observation

LOSSES_KEPT = 100


class Losses:
    """Copies each observation's losses off the device, after its clock has stopped, and counts what is not finite."""

    def __init__(self) -> None:
        self._recent: list[float] = []
        self._means: list[float] = []
        self._checked = 0
        self._non_finite = 0

    @property
    def last(self) -> float | None:
        return self._recent[-1] if self._recent else None

    def take(self, seen: Observation) -> None:
        if not seen.losses:
            return
        values = torch.stack(seen.losses).cpu().tolist()
        non_finite = sum(not math.isfinite(value) for value in values)
        self._recent = (self._recent + values)[-LOSSES_KEPT:]
        self._means.append(math.nan if non_finite else math.fsum(values) / len(values))
        self._checked += len(values)
        self._non_finite += non_finite

    def summary(self) -> dict[str, Any]:
        """Return batch_loss (the last 100), epoch_loss (a mean per observation) and what the check saw."""
        return {
            "batch_loss": [_json(loss) for loss in self._recent],
            "epoch_loss": [_json(loss) for loss in self._means],
            "losses_checked": self._checked,
            "losses_non_finite": self._non_finite,
        }


def _json(loss: float) -> float | None:
    return loss if math.isfinite(loss) else None
