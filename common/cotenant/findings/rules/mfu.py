"""A rate that the device cannot have had: operations were credited that did not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record


def check(record: Record) -> Finding | None:
    if (found := excess(record)) is None or found[1] <= 1:
        return None
    return Finding(
        "mfu_impossible",
        "error",
        found[0],
        "Let every step do the whole work, and count only steps that ran; see that the device is synchronised.",
    )


def excess(record: Record) -> tuple[str, float] | None:
    """Return a sentence about a rate above its device's peak, and the least share of the peak that it can be."""
    compute = record.meters.get("compute") or {}
    if (mfu := compute.get("mfu")) is None or mfu <= 1:
        return None
    sentence = (
        f"This rate takes {compute['tflops']:.1f} TFLOP/s, {mfu:.2f} times the peak of {record.gpu} in "
        f"{record.observed['dtype']} ({compute['peak_tflops']:g} TFLOP/s)."
    )
    return sentence, compute.get("mfu_least", mfu)
