"""A rate above the device's peak that its convolutions can explain: they may run with fewer products than counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding
from cotenant.findings.rules.mfu import excess

if TYPE_CHECKING:
    from cotenant.results.record import Record


def check(record: Record) -> Finding | None:
    if (found := excess(record)) is None or found[1] > 1:
        return None
    sentence, least = found
    return Finding(
        "mfu_above_peak",
        "warning",
        f"{sentence} Its convolutions can be done with a quarter of the products that are counted: {least:.2f} then.",
        "None is needed if a profile shows convolutions by Winograd's algorithm or FFT; else see what did not run.",
    )
