"""What a device can do at most, by its maker's own word: the table `peaks.csv` beside this file."""

from __future__ import annotations

import csv
import functools
import re
from dataclasses import dataclass
from pathlib import Path

_TABLE = Path(__file__).with_name("peaks.csv")
_PART = re.compile(r"\bMIG\b|-\d+[ABCQV]\b")
_NO_VARIANT = r"(?! ?(?:Ti|SUPER|D|Laptop|Mobile|Max-Q)\b)"


@dataclass(frozen=True, slots=True)
class Peak:
    """Dense products in one precision, in TFLOP/s; `pattern` is whole words of the names that the driver gives."""

    pattern: str
    precision: str
    tflops: float
    source: str


@functools.cache
def peaks() -> tuple[Peak, ...]:
    """Return the table, in its own order."""
    with _TABLE.open(newline="", encoding="utf-8") as file:
        return tuple(
            Peak(row["pattern"], row["precision"], float(row["tflops"]), row["source"]) for row in csv.DictReader(file)
        )


def peak_of(device: str, precision: str) -> Peak | None:
    """Return the peak of a device by its name; None for an unknown one, and for a part of one (MIG, vGPU).

    Of several patterns that fit the longest counts (`H200 NVL` is no `H200`), then the fastest: a driver may name
    two devices that it cannot tell apart.
    """
    if _PART.search(device):
        return None
    fitting = [one for one in peaks() if one.precision == precision and _fits(one.pattern, device)]
    return max(fitting, key=lambda one: (len(one.pattern), one.tflops), default=None)


def _fits(pattern: str, device: str) -> bool:
    # `A10` is in the name of an A100, too, and an `RTX 3090 Ti` is another device.
    return re.search(rf"(?<![A-Za-z0-9]){re.escape(pattern)}(?![A-Za-z0-9]){_NO_VARIANT}", device) is not None
