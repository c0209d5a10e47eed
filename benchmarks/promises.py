"""The promises that tables print: a bound, and whether a measured number keeps it."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Literal

SIGNS = {"<": operator.lt, "<=": operator.le, ">=": operator.ge}


@dataclass(frozen=True, slots=True)
class Promise:
    """An upper or lower bound in a unit; `of` names the number that it bounds, if that is not the median."""

    sign: Literal["<", "<=", ">="]
    bound: float
    unit: str = ""
    of: str = ""

    def __str__(self) -> str:
        return " ".join(word for word in (self.of, self.sign, f"{self.bound:g}", self.unit) if word)

    def kept(self, value: float) -> bool:
        """Return whether a number keeps the promise; NaN keeps none."""
        return bool(SIGNS[self.sign](value, self.bound))

    def verdict(self, value: float) -> str:
        """Return the promise as a table says it, `<= 3 ms: kept`."""
        return f"{self}: {'kept' if self.kept(value) else 'BROKEN'}"
