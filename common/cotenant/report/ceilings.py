"""The jobs' FLOP/s against the datasheet's, and against a matrix product's in the same slices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cotenant.checkout import PROGRAM
from cotenant.frames import pl
from cotenant.report.numbers import rate
from cotenant.results.columns import schema
from cotenant.results.table import Rows

FLOP = "FLOP"
"""The unit of jobs that are ceilings: their rates are operations per second."""
SAME = ("hostname", "gpu", "isolation", "slice", "precision")
"""The columns that a tenant and its ceiling share."""
_MOST = pl.Schema({**{name: schema()[name] for name in SAME}, "ceiling": pl.Float64(), "upper": pl.Float64()})


class Compute(NamedTuple):
    """Medians over a job's tenants of their medians over the launches that count; None if unknown.

    `mfu` is the share of the datasheet's peak, `of_ceiling` the share of the ceiling. `above` is a sentence on a
    tenant above the interval of its ceiling.
    """

    tflops: float
    mfu: float | None
    ceiling_tflops: float | None
    of_ceiling: float | None
    above: str = ""


def ceilings(products: Iterable[Rows]) -> pl.DataFrame:
    """Return each slice's fastest matrix product: its median FLOP/s, and the highest end of its launches' intervals."""
    highest = [
        _taken(members, "rate_items_s", "interval_high_items_s", "world_size")
        .filter(pl.col("world_size").fill_null(1) == 1)
        .group_by(SAME)
        .agg(ceiling=pl.col("rate_items_s").median(), upper=pl.col("interval_high_items_s").max())
        for members in products
    ]
    return pl.concat([pl.DataFrame(schema=_MOST), *highest]).sort("ceiling").unique(SAME, keep="last")


def compute(members: Rows, most: pl.DataFrame) -> Compute | None:
    """Return the FLOP/s of a job's launches as shares of these ceilings; None if no operations were counted."""
    counted = _taken(members, "tflops", "mfu").drop_nulls("tflops")
    if counted.is_empty():
        return None
    tenants = counted.group_by(SAME).agg(flops=1e12 * pl.col("tflops").median(), mfu=pl.col("mfu").median())
    held = tenants.join(most, on=SAME, how="left").with_columns(share=pl.col("flops") / pl.col("ceiling"))
    flops, mfu, ceiling, share = held.select(pl.col("flops", "mfu", "ceiling", "share").median()).row(0)
    above = _above(held.filter(pl.col("flops") > pl.col("upper")))
    return Compute(flops / 1e12, mfu, ceiling and ceiling / 1e12, share, above)


def _taken(records: Rows, *names: str) -> pl.DataFrame:
    """Return these columns of records, with fp16 in place of `half`: both have the same products."""
    return records.columns(*SAME, *names).with_columns(pl.col("precision").replace("half", "fp16"))


def _above(beyond: pl.DataFrame) -> str:
    """Return a sentence on the tenant farthest above its ceiling, if any."""
    if beyond.is_empty():
        return ""
    worst = beyond.sort("share", *SAME).row(-1, named=True)
    return (
        f"{rate(worst['flops'])} FLOP/s in {worst['precision']} are {worst['share']:.3g} times the ceiling measured in "
        f"the same slice, {rate(worst['ceiling'])} FLOP/s ({rate(worst['upper'])} FLOP/s at most). Either fewer "
        "operations ran than were counted, or the ceiling was measured under other conditions: measure it again beside "
        f"this suite with {PROGRAM} --jobs ceilings."
    )
