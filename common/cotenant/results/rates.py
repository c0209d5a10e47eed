"""A record's numbers, computed from its observations: rates, quantiles of steps, the share that a user keeps."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from statistics import median, pstdev
from typing import Any

import msgspec

from cotenant.decoding import Nanoseconds
from cotenant.machine.accelerators import peak_of
from cotenant.results.record import Observed, Record, Train, TrainItem, counts, rated
from cotenant.stats.describe import Description, describe
from cotenant.stats.kept import BlockSum, Kept, kept
from cotenant.stats.kept import block_sums as sums_of_blocks
from cotenant.stats.quantiles import quantile

STEP_QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
LIKE = 1.01
"""The largest ratio between a device's clock and the host's (`clocks`)."""


def numbers_of(measured: Sequence[Observed]) -> tuple[Train, TrainItem, Description] | tuple[None, None, None]:
    """Return train, train_item and statistics of kept observations; None three times without any."""
    if not measured:
        return None, None, None
    seconds = [observed.took_ns / 1e9 for observed in measured]
    items = [observed.items for observed in measured if observed.items is not None]
    average, per_observation = sum(seconds) / len(seconds), sum(items) / len(items)
    train = Train(avg=average, count=len(seconds), max=max(seconds), min=min(seconds), sd=pstdev(seconds))
    best, worst = per_observation / train.min, per_observation / train.max
    train_item = TrainItem(avg=per_observation / average, max=best, min=worst, range=best - worst)
    return train, train_item, describe(items, seconds)


def kept_by_blocks(observations: Sequence[Observed]) -> Kept | None:
    """Return the share of its rate alone that a tenant keeps, from its observations' blocks; None without blocks, or if
    an observation is impossible."""
    sums = observed_block_sums(observations)
    return None if sums is None else kept(sums)


def observed_block_sums(observations: Sequence[Observed]) -> list[BlockSum] | None:
    """Return the sums of each block's kept observations, in order of time; None if an observation is impossible."""
    rows = [made for made in observations if made.kept and made.block is not None]
    if not all(made.possible for made in rows):
        return None
    return sums_of_blocks((made.block or 0, made.kind == "only", made.items or 0.0, made.took_ns) for made in rows)


def derived_meters(record: Record) -> dict[str, dict[str, Any]]:
    """Return `compute`, `steps` and `steps_alone` for a record's meters, from its observations and `observed` facts.

    Parts without data are left out; a tenant that did not complete has none. `steps_alone` is of the tenant's solo
    blocks.
    """
    if not record.completed:
        return {}
    measured, flags = rated(record.observations, record.skip), counts(record.observations, record.skip)
    alone = [bool(row.kept) and row.kind == "only" for row in record.observations]
    made = {
        "compute": _utilisation(record, measured),
        "steps": _steps(record, flags if measured else [False] * len(flags)),
        "steps_alone": _steps(record, alone),
    }
    return {name: values for name, values in made.items() if values}


def _steps(record: Record, flags: Sequence[bool]) -> dict[str, Any]:
    """Return quantiles, with intervals, of the times of all steps in observations with a set flag.

    Empty if the benchmark times no steps, or if the steps do not fit into their observations.
    """
    try:
        steps_ns = msgspec.convert(record.observed.get("steps_ns"), list[list[Nanoseconds]])
    except msgspec.ValidationError:
        return {}
    kept_steps = [*itertools.compress(steps_ns, flags)]
    spans = [made.end_ns - made.start_ns for made in itertools.compress(record.observations, flags)]
    times = [ns for steps in kept_steps for ns in steps]
    too_long = map(operator.gt, map(sum, kept_steps), (LIKE * ns for ns in spans))
    if not times or len(steps_ns) != len(flags) or any(too_long):
        return {}
    quantiles = {name: quantile(times, q) for name, q in STEP_QUANTILES.items()}
    return {
        "n": len(times),
        **{f"{name}_ns": found.value for name, found in quantiles.items()},
        **{f"{name}_interval_ns": found.interval for name, found in quantiles.items()},
    }


def _utilisation(record: Record, measured: Sequence[Observed]) -> dict[str, Any]:
    """Return `compute` for a record's meters: the MFU of one device (Chowdhery et al. 2022, PaLM, appendix B).

    Empty if operations, time or the number of steps in an observation are unknown. `mfu` is null if the device's peak
    in the observed precision is unknown. With several ranks it is the first rank's, on its own device. `mfu_least` is
    its value if convolutions that can be computed with fewer products took a quarter of the products.
    """
    observed, number = record.observed, record.arguments.get("number")
    flops = observed.get("flops_per_step")
    if not measured or not isinstance(flops, (int, float)) or not isinstance(number, int) or flops <= 0 or number <= 0:
        return {}
    reducible = observed.get("flops_reducible")
    least = 1 - 0.75 * min(1.0, reducible / flops) if isinstance(reducible, (int, float)) and reducible > 0 else 1.0
    tflops = flops * number / median(made.took_ns for made in measured) / 1e3
    precision, on_processor = observed.get("dtype"), observed.get("device") == "cpu"
    peak = None if on_processor or not isinstance(precision, str) else peak_of(record.gpu, precision)
    return {
        "tflops": tflops,
        "peak_tflops": peak and peak.tflops,
        "peak_source": peak and peak.source,
        "mfu": peak and tflops / peak.tflops,
        "mfu_least": peak and least * tflops / peak.tflops,
    }
