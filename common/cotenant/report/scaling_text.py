"""Scaling in the forms that other suites' readers know, and with everything as CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from statistics import fmean

from cotenant.report.numbers import ABSENT
from cotenant.report.scaling import Curves, Point, of_one_series
from cotenant.results.read import drawn
from cotenant.stats.launches import INTERVAL_LAUNCHES, half_width
from cotenant.text import printable

MARKDOWN = ("node_num", "gpu_num_per_node", "batch_size_per_device", "samples/s", "speedup")
CSV = (
    *("model", "precision", "parallelism", "input", "batch_size_per_device", "nodes", "devices", "unit"),
    *("launches", "median", "mean", "geometric_mean", "low", "high", "spread"),
    *("speedup", "speedup_low", "speedup_high", "efficiency", "efficiency_low", "efficiency_high"),
)


def as_json(found: Curves) -> str:
    """Return one series by key, `1n8g`. Raises CotenantError where several would share their keys."""
    content = {
        point.key: {
            "average_speed": point.mean,
            "batch_size_per_device": point.series.batch_size_per_device,
            "median_speed": point.median,
            "speedup": point.speedup,
        }
        for point in of_one_series(found)
    }
    return json.dumps(content, indent=4, allow_nan=False) + "\n"


def as_markdown(found: Curves) -> str:
    """Return the median rates of one series. Raises CotenantError where several would share their rows."""
    lines = [MARKDOWN, ("---:",) * len(MARKDOWN)]
    for point in of_one_series(found):
        batch = point.series.batch_size_per_device
        speedup = ABSENT if point.speedup is None else f"{point.speedup:.2f}"
        lines.append((str(point.nodes), str(point.devices), str(batch or ABSENT), f"{point.median:.2f}", speedup))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def as_csv(found: Curves) -> str:
    """Return all series, each point with its n, its spread, and 95 % intervals of all but median and mean."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(CSV)
    for series, points in found.items():
        for point in points:
            low, high = point.across.interval or (None, None)
            texts = map(printable, (series.model, series.precision, series.parallelism, series.input))
            what = (*texts, series.batch_size_per_device)
            numbers = (
                point.across.n,
                point.median,
                point.mean,
                point.across.rate,
                low,
                high,
                point.across.spread,
                point.speedup,
                *(point.speedup_interval or (None, None)),
                point.worth.efficiency,
                *(point.worth.interval or (None, None)),
            )
            writer.writerow(
                "" if one is None else one
                for one in (*what, point.nodes, point.devices, printable(series.unit), *numbers)
            )
    return table.getvalue()


def as_text(found: Curves) -> str:
    """Return a block per point: a line for each launch, or, of fewer than three, for each observation of the newest.

    `+-` is the half-width of a 95 % t interval of the mean of these lines.
    """
    return "\n".join("\n".join(_block(point)) + "\n" for points in found.values() for point in points)


def _block(point: Point) -> Iterator[str]:
    item = "img" if point.series.unit in ("image", "") else printable(point.series.unit)
    devices, rates = point.total_devices, rates_of(point)
    yield f"Model: {printable(point.series.model)}"
    yield f"Batch size: {point.series.batch_size_per_device or ABSENT}"
    yield f"Number of GPUs: {devices}"
    for index, one in enumerate(rates):
        yield f"Iter #{index}: {one / devices:.1f} {item}/sec per GPU"
    mean, half = fmean(rates), half_width(rates)
    around = "n too small" if half is None else f"{half / devices:.1f}"
    total = "n too small" if half is None else f"{half:.1f}"
    yield f"{item.capitalize()}/sec per GPU: {mean / devices:.1f} +-{around}"
    yield f"Total {item}/sec on {devices} GPU(s): {mean:.1f} +-{total}"


def rates_of(point: Point) -> Sequence[float]:
    """Return the rates that `Iter` lines are of, in items per second over all ranks."""
    if point.across.n >= INTERVAL_LAUNCHES:
        return point.rates
    observed = [float(one) for seen in drawn(point.newest) for one in seen.spans.rates if math.isfinite(one)]
    return observed or point.rates
