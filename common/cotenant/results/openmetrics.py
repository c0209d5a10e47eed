"""Writes records as OpenMetrics text, for Prometheus: the newest launch of each job and host, a gauge per quantity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cotenant.frames import pl
from cotenant.results.columns import LAUNCH, TENANT

LABELS = ("suite", "name", "group", "tenant", "hostname", "gpu", "precision", "isolation", "share", "mix", "unit")
"""Columns that are labels of a series."""
KEY = ("suite", "name", "group", "tenant", "hostname", "isolation", "mix")
"""Columns that identify a series: a failure, which has fewer facts, must replace an older success."""


@dataclass(frozen=True, slots=True)
class Gauge:
    """A quantity: its name after `cotenant_`, ending in its unit, its column, and its meaning."""

    name: str
    column: str
    meaning: str
    per: float = 1.0


NANO = 1e9
GAUGES = (
    Gauge("completed", "completed", "1 where the tenant came to its end, else 0"),
    Gauge("invalid", "invalid", "1 where an error finding says that the rate is none"),
    Gauge("rate_items_per_second", "rate_items_s", "median rate of the kept observations"),
    Gauge("rate_low_items_per_second", "interval_low_items_s", "lower end of the median's 95 % interval"),
    Gauge("rate_high_items_per_second", "interval_high_items_s", "its upper end"),
    Gauge("rate_spread_ratio", "robust_spread", "1.4826 MAD / median of the rates"),
    Gauge("observations", "n", "kept observations"),
    Gauge("overlap_ratio", "overlap", "the part of its time in which all tenants of its launch were under load"),
    Gauge("kept_ratio", "kept", "what it keeps beside its neighbours of its rate alone"),
    Gauge("kept_low_ratio", "kept_low", "lower end of its 95 % interval"),
    Gauge("kept_high_ratio", "kept_high", "its upper end"),
    Gauge("error_findings", "error_findings", "rules that make the number none"),
    Gauge("warning_findings", "warning_findings", "rules that make the number suspect"),
    Gauge("mfu_ratio", "mfu", "counted operations over the device's peak by the datasheet"),
    Gauge("step_p50_seconds", "step_p50_ns", "median time of a step", NANO),
    Gauge("step_p99_seconds", "step_p99_ns", "what 99 of 100 steps do not exceed", NANO),
)
ENDED = "ended_timestamp_seconds"


def write_openmetrics(rows: pl.LazyFrame, path: Path) -> None:
    """The newest launch of each job for Prometheus; an unknown quantity has no sample.

    Tenants that only older launches have get no series, since they were not measured beside the newest ones.
    """
    alone = pl.when("solo").then("tenant")
    last = pl.col("start_time").max().over("suite", "group", "hostname", "isolation", "launch", alone)
    newest = (
        rows.with_columns(tenant=TENANT, launch=LAUNCH)
        .select(*LABELS, "ours", "solo", "launch", "start_time", "end_time", *(gauge.column for gauge in GAUGES))
        .group_by(KEY)
        .agg(pl.all().sort_by("start_time", nulls_last=False).last())
        .sort(KEY)
        .collect(engine="streaming")
        .filter(~pl.col("ours") | (pl.col("start_time") == last))
        .with_columns(
            pl.col("error_findings", "warning_findings").fill_null("").str.count_matches(r"[^,]+"),
            ended=pl.col("end_time").str.to_datetime(time_zone="UTC", strict=False).dt.epoch("ms") / 1000,
        )
    )
    path.write_text("".join(f"{line}\n" for line in _lines(newest.to_dicts())), encoding="utf-8")


def _lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    every = [*GAUGES, Gauge(ENDED, "ended", "when the launch ended, in seconds since 1970")]
    for gauge in every:
        name = f"cotenant_{gauge.name}"
        unit = next((unit for unit in ("ratio", "seconds", "items_per_second") if name.endswith(f"_{unit}")), "")
        yield f"# TYPE {name} gauge"
        if unit:
            yield f"# UNIT {name} {unit}"
        yield f"# HELP {name} {gauge.meaning}."
        for row in rows:
            if row[gauge.column] is not None:
                yield f"{name}{{{_labels(row)}}} {float(row[gauge.column]) / gauge.per!r}"
    yield "# EOF"


def _labels(row: dict[str, Any]) -> str:
    return ",".join(f'{_label(column)}="{_escaped(str(row[column]))}"' for column in LABELS if row[column] is not None)


def _label(column: str) -> str:
    """Return a column's label: a job's name is not labelled `job`, which has another meaning in Prometheus."""
    return "benchmark" if column == "name" else column


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
