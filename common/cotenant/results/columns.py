"""The columns of an exported row, and of an exported observation: name, type, meaning, and what of a record it is.

A row is what reports compute with; it has no raw observations, no samples of meters and no sentences of findings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cotenant.finding import Severity
from cotenant.results.detail import Detail

ROWS = "cotenant-rows-1"
OBSERVATIONS = "cotenant-observations-1"


@dataclass(frozen=True, slots=True)
class Column:
    """`of` takes the value from a record; an empty text of it is null. `kind` is str, int, float or bool."""

    name: str
    kind: type
    meaning: str
    of: Callable[[Detail], Any]


def _row(name: str, kind: type, meaning: str, field: str = "") -> Column:
    return Column(name, kind, meaning, lambda detail: getattr(detail.row, field or name))


def _cell(name: str, kind: type, meaning: str) -> Column:
    return Column(name, kind, meaning, lambda detail: getattr(detail.cell, name))


def _rules(severity: Severity | None) -> Callable[[Detail], str]:
    return lambda detail: joined([one.rule for one in detail.findings if severity in (None, one.severity)])


def joined(rules: Sequence[str]) -> str:
    """Return rules as one text. A comma in a foreign rule's name would make two of it."""
    return ",".join(rule.replace(",", ";") for rule in rules)


def _end(of: int) -> Callable[[Detail], float | None]:
    def interval_end(detail: Detail) -> float | None:
        found = detail.statistics
        return None if found is None or found.interval is None else found.interval[of]

    return interval_end


COLUMNS = (
    Column("schema", str, f"`{ROWS}`", lambda detail: ROWS),
    _row("suite", str, "the suite's name"),
    _row("name", str, "the job's"),
    _row("run_id", int, "the repetition of the suite: its uid"),
    _row(
        "vcd",
        str,
        "index of the device, of a launch that owns the machine all (`0,1`); else the tenant",
    ),
    _row("group", str, "`student`: a tenant among others; `all`: the launch owns the machine"),
    _row("tenant", int, "the tenant's number, from 0"),
    _row("tenants", int, "tenants of the launch"),
    _row("solo", bool, "whether the tenant ran alone in its slice; its job's name then ends in `.solo`"),
    _row("hostname", str, "the host"),
    _row("gpu", str, "model of the device, without one of the processor"),
    _row("devices", int, "accelerators that the tenant trained on, 0 without any"),
    _row("suite_start_time", str, "when the suite run began that launched it, ISO 8601"),
    _row("start_time", str, "when the launch began, ISO 8601"),
    Column("end_time", str, "when it ended", lambda detail: detail.end_time),
    _row("completed", bool, "whether the tenant came to its end"),
    _row("outcome", str, "`completed`, or what happened instead"),
    _row("message", str, "the reason, where it did not complete"),
    _row("invalid", bool, "completed, but an error finding says that the number is none"),
    _row("comparable", bool, "false where another tenant of the launch was lost after GO"),
    _row("unit", str, "what is counted: `image`, `token` ..."),
    _row("rate_items_s", float, "median rate of the kept observations; of the original's records their mean", "rate"),
    Column("interval_low_items_s", float, "lower end of the median's exact 95 % interval", _end(0)),
    Column("interval_high_items_s", float, "its upper end", _end(1)),
    Column(
        "robust_spread",
        float,
        "1.4826 MAD / median of the rates",
        lambda detail: detail.statistics and detail.statistics.robust_spread,
    ),
    _row("rate_mean_items_s", float, "items over the mean time, as in the original (`train_item.avg`)", "rate_mean"),
    _row("rate_min_items_s", float, "the same of the slowest observation", "rate_min"),
    _row("rate_max_items_s", float, "and of the fastest", "rate_max"),
    _row("n", int, "kept observations"),
    _row("mean_s", float, "mean seconds of an observation"),
    _row("sd_s", float, "their standard deviation (the population's)"),
    _row("tflops", float, "counted operations per second of the median observation, in 10^12"),
    _row("mfu", float, "its share of the device's peak by the datasheet"),
    _row("batch_size", int, "items of a batch, over all devices of the tenant"),
    _row("precision", str, "`fp32`, `tf32`, `bf16` or `fp16`"),
    _row("isolation", str, "the backend that held the slices"),
    _row("cache", str, "the policy for the page cache of its input: `none`, `nocache`, `drop` or `warm`"),
    _row("processors", int, "processors of the tenant's slice"),
    Column("slice", str, "what was planned of the machine: equal for equal slices", lambda detail: detail.slice),
    _row("software", str, "torch's version"),
    _row("version", str, "hash of the benchmark's source"),
    _row("unique_id", str, "hash of name, source and arguments: equal for equal work"),
    Column(
        "work",
        str,
        "the same, solo or not, and without a number of workers that nobody asked for",
        lambda detail: detail.work,
    ),
    _row("losses_non_finite", int, "losses that are NaN or infinite"),
    Column(
        "overlap",
        float,
        "share of the kept observations' time in which all tenants ran",
        lambda detail: detail.rendezvous and detail.rendezvous.overlap,
    ),
    _row("efficiency", float, "rate of k devices over k times the rate of one, where the same suite run measured both"),
    Column("findings", str, "rules of all findings, by commas", lambda detail: joined(detail.row.findings)),
    Column("error_findings", str, "rules of the errors among them", _rules("error")),
    Column("warning_findings", str, "and of the warnings", _rules("warning")),
    _row("ours", bool, "false for a record of the original suite"),
    _cell("model", str, "the argument that names a model"),
    _cell("nodes", int, "hosts that took part"),
    _cell("world_size", int, "ranks, or replicas of DataParallel, that took part"),
    _cell("batch_size_per_device", int, "items of a batch on one device"),
    _cell("parallelism", str, "`ddp`, `fsdp` ..."),
    _cell("input", str, "`files`, or `resident` in memory"),
    _row("path", str, "the record's file"),
)

OBSERVATION_COLUMNS: dict[str, tuple[type, str]] = {
    "schema": (str, f"`{OBSERVATIONS}`"),
    "suite": (str, "the suite's name"),
    "name": (str, "the job's"),
    "run_id": (int, "the repetition of the suite: its uid"),
    "vcd": (str, "as in a row"),
    "tenant": (int, "the tenant's number, from 0"),
    "solo": (bool, "whether the tenant ran alone in its slice"),
    "hostname": (str, "the host"),
    "start_time": (str, "when the launch began, ISO 8601"),
    "observation": (int, "number of the observation in its launch, from 0"),
    "kept": (bool, "false for the first `skip`, which are in no statistic"),
    "start_ns": (int, "CLOCK_MONOTONIC of the host"),
    "end_ns": (int, "the same"),
    "items": (float, "what was counted"),
    "rate_items_s": (float, "items / (end - start); null where that is no number"),
    "data_wait_ns": (int, "of it the wait for data"),
    "event_ns": (int, "the same time by the device's own events, where it has them"),
    "path": (str, "the record's file"),
}
