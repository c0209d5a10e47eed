"""From the operations of a step to their share of the device's peak: MFU (Chowdhery et al. 2022, PaLM, appendix B)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from cotenant.machine.accelerators import peak_of
from cotenant.results.record import Observed
from cotenant.results.said import Said


def utilisation(part: Said, number: object, kept: Sequence[Observed], device: str) -> dict[str, Any]:
    """Return `compute` for a record's meters, of one device; empty where operations were not counted, or no time was.

    `number` is how many steps each observation made, as the record says it; what is no such number gives nothing.
    `mfu` is null for a device without a known peak in the precision that was observed. Of several ranks it is the
    first one's operations on its own device. `mfu_least` is what is left of it where convolutions that can be done with
    fewer products than are counted were done with a quarter of them.
    """
    flops = part.observed.get("flops_per_step")
    if not kept or not all(one.possible for one in kept):
        return {}
    if not isinstance(flops, (int, float)) or not isinstance(number, int) or flops <= 0 or number <= 0:
        return {}
    reducible = part.observed.get("flops_reducible")
    least = 1 - 0.75 * min(1.0, reducible / flops) if isinstance(reducible, (int, float)) and reducible > 0 else 1.0
    tflops = flops * number / median(one.end_ns - one.start_ns for one in kept) / 1e3
    precision, on_processor = part.observed.get("dtype"), part.observed.get("device") == "cpu"
    peak = None if on_processor or not isinstance(precision, str) else peak_of(device, precision)
    return {
        "tflops": tflops,
        "peak_tflops": peak and peak.tflops,
        "peak_source": peak and peak.source,
        "mfu": peak and tflops / peak.tflops,
        "mfu_least": peak and least * tflops / peak.tflops,
    }
