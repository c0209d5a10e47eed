"""Cotenant: what does each user really get when everybody trains on this machine at once?"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cotenant.exec.measure import measure as measure

_PLACES = {"measure": "cotenant.exec.measure"}
"""The names that this package offers to programs, and the module of each: imported when it is first used."""


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
