"""The table of records: every column of a record's row, declared once.

The declarations decide how records and exports are read and checked, which values an export writes, which values must
be equal in a comparison of rates, and `help records`. Reports compute with rows: only the records have raw
observations, samples of meters and the sentences of findings.
"""

from __future__ import annotations

import functools
import operator
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from cotenant.decoding import MOST, Number, Whole
from cotenant.finding import Severity
from cotenant.frames import pl
from cotenant.results.as_read import ReadRecord
from cotenant.results.decoded import first_of, list_of, part_of, text_of, value_at
from cotenant.results.drawn import own_meters, own_power_w
from cotenant.results.export_form import OBSERVATIONS, ROWS
from cotenant.results.fields import Field, field_at
from cotenant.results.legacy import LegacyRecord
from cotenant.results.record import IN_MIX, SOLO, Observed, Record

Check = Callable[[pl.Expr], pl.Expr]
KINDS: dict[type, tuple[pl.DataType, Callable[[Any], Any]]] = {
    str: (pl.String(), text_of),
    int: (pl.Int64(), lambda value: part_of(value, Whole)),
    float: (pl.Float64(), lambda value: part_of(value, Number)),
    bool: (pl.Boolean(), lambda value: None if value is None else bool(value)),
}
"""For each Python type, the column's type, and a function that returns a value of an open mapping in it, or None."""


def positive(value: pl.Expr) -> pl.Expr:
    """Return whether values in items or seconds are possible: all others would overflow in sums and ratios."""
    return value.is_between(1 / MOST, MOST, closed="none")


def not_negative(value: pl.Expr) -> pl.Expr:
    return value.is_between(0, MOST, closed="left")


def count(value: pl.Expr) -> pl.Expr:
    return value > 0


@dataclass(frozen=True, slots=True)
class RecordColumn:
    """One column: `kind` is str, int, float or bool."""

    name: str
    kind: type
    meaning: str
    at: str = ""
    """The value's place in `Record`: names of attributes, and of an open mapping's keys, joined by dots; if empty, the
    attribute of `ReadRecord` or `Record` with the column's name."""
    of: Callable[[ReadRecord], Any] | None = None
    """Computes the value from a record, if no attribute has it."""
    check: Check | None = None
    """Returns whether values are possible, if the attribute's type sets no bounds; impossible values become unknown."""
    measured: bool = False
    """True if only tenants that completed and have a rate have a value."""
    default: Any = None
    """Stands for an unknown value; for texts the empty text."""
    needed: bool = False
    """True if an exported row without it is invalid."""
    equal: bool = False
    """True if it must be equal in records with compared rates."""
    word: str = ""
    """Its name in comparisons, if that differs."""


def text(name: str, meaning: str, at: str = "", **more: Any) -> RecordColumn:
    return RecordColumn(name, str, meaning, at, default="", **more)


def whole(name: str, meaning: str, at: str = "", **more: Any) -> RecordColumn:
    return RecordColumn(name, int, meaning, at, **more)


def number(name: str, meaning: str, at: str = "", **more: Any) -> RecordColumn:
    return RecordColumn(name, float, meaning, at, **more)


def flag(name: str, meaning: str, default: bool | None = None, **more: Any) -> RecordColumn:
    return RecordColumn(name, bool, meaning, default=default, **more)


def measured(name: str, meaning: str, at: str = "", **more: Any) -> RecordColumn:
    """Return a column of numbers that only tenants that completed and have a rate have."""
    return number(name, meaning, at, measured=True, **more)


def ends(low: str, high: str, at: str, meaning: str, upper: str = "upper end", **more: Any) -> Iterator[RecordColumn]:
    """Yield the columns of both ends of the interval at this place."""
    for end, (name, said) in enumerate(((low, meaning), (high, upper))):
        yield number(name, said, f"{at}.{end}", **more)


def argument(name: str, *others: str) -> Callable[[ReadRecord], Any]:
    """Return a function that gets a benchmark's argument: the value of the first of these names that has one."""
    return lambda read: first_of(read.record.arguments, name, *others)


def _rules(*severities: Severity) -> Callable[[ReadRecord], str]:
    """Return a function that joins the rules of findings by commas; commas in foreign rules' names are replaced."""
    return lambda read: ",".join(
        finding.rule.replace(",", ";") for finding in read.all_findings if finding.severity in severities
    )


def _kernels(read: ReadRecord) -> str:
    """Return choices that change only the speed of work: `torch.Adam fused, convolutions tried, channels_last`."""
    observed, machine = read.record.observed, read.record.machine
    names = {
        f"{text_of(made.get('package'))}.{text_of(made.get('name'))}{' fused' if made.get('fused') is True else ''}"
        for made in list_of(observed.get("optimizers"))
        if isinstance(made, dict)
    }
    tried = value_at(machine, "torch", "cudnn_benchmark") is True and observed.get("device") != "cpu"
    layout = [text_of(observed["memory_format"])] if observed.get("memory_format") else []
    return ", ".join([*sorted(names), *(["convolutions tried"] if tried else []), *layout])


def _observed_s(read: ReadRecord) -> float:
    """Return the seconds of all observations, except observations across a border, in which the tenant may rest."""
    made = (row for row in read.record.observations if row.kind != "")
    return sum(row.took_ns for row in made if 0 <= row.start_ns <= row.end_ns) / 1e9


def _loaded_s(read: ReadRecord) -> float | None:
    meeting = read.record.rendezvous
    return (meeting.load_end_ns - meeting.t0_ns) / 1e9 if meeting and meeting.t0_ns <= meeting.load_end_ns else None


def _load(read: ReadRecord) -> float | None:
    loads = [meter.mean for meter in own_meters(read.record) if meter.quantity == "load_percent"]
    return fmean(loads) if loads else None


COLUMNS: tuple[RecordColumn, ...] = (
    text("schema", f"`{ROWS}`", of=lambda read: ROWS),
    text("suite", "the suite's name"),
    text("name", "the job's", needed=True),
    whole("run_id", "the repetition of the suite: its uid", needed=True),
    text("vcd", "index of the device, of a launch that owns the machine all (`0,1`); else the tenant"),
    text("group", "`student`: a tenant among others; `all`: the launch owns the machine"),
    whole("tenant", "the tenant's number, from 0"),
    flag("solo", "whether the tenant ran alone in its slice; its job's name then ends in `.solo`", False),
    text(
        "baseline",
        "of a tenant alone `whole`, or `quick`: few observations, for all equal slices; empty beside the others",
    ),
    text("stands_for", "of a tenant alone: the tenants whose baseline this is, by commas"),
    whole("alike", "tenants of the launch that ran its cell: all of them, but in a mix", check=count),
    text("hostname", "the host"),
    text("suite_start_time", "when the suite run began that launched it, ISO 8601"),
    text("start_time", "when the launch began, ISO 8601"),
    text("end_time", "when it ended"),
    flag("completed", "whether the tenant came to its end", needed=True),
    text("outcome", "`completed`, or what happened instead", needed=True),
    text("message", "the reason, where it did not complete"),
    flag("invalid", "completed, but an error finding says that the number is none", of=lambda read: None),
    text("trust", "`clean`, `suspect` (a warning), `invalid` (also by its losses) or `failed`", of=lambda read: ""),
    flag("comparable", "false where another tenant of the launch was lost after GO", True),
    text("unit", "what is counted: `image`, `token` ..."),
    flag(
        "work_learned",
        "whether the work of a step follows what was learned, so that rates differ with the seed",
        False,
        at="observed.work_learned",
    ),
    # Values that must be equal, in the order in which differences are named.
    whole("batch_size", "items of a batch, over all devices of the tenant", of=argument("batch_size"), equal=True),
    text("unique_id", "hash of name, source and arguments: equal for equal work", equal=True, word="benchmark"),
    text("item_work", "the same without what tuning may change", equal=True, word="work_of_an_item"),
    text("precision", "`fp32`, `tf32`, `bf16` or `fp16`", of=argument("precision"), equal=True),
    whole("devices", "accelerators that the tenant trained on, 0 without any", equal=True),
    whole("tenants", "tenants of the launch", equal=True),
    whole(
        "sharers",
        "tenants of the launch with this tenant's processors, itself included",
        default=1,
        equal=True,
    ),
    text(
        "share",
        "how tenants share its device, as it was seen: `exclusive`, `time`, `mps` or `mps:25`",
        "share.seen",
        equal=True,
    ),
    whole(
        "device_sharers",
        "tenants of the launch on its device, itself included",
        "share.sharers",
        default=1,
        equal=True,
    ),
    text("share_asked", "the mode that was asked for", "share.asked"),
    number("entitlement", "the part of its device that it was promised", "share.entitlement"),
    text("mix", "name of its mix, of a launch whose tenants run different jobs", equal=True),
    text("neighbours", "in a mix the jobs of the other tenants, sorted, by commas", equal=True),
    text("isolation", "the backend that held the slices", "isolation.backend", equal=True),
    text("software", "torch's version", "machine.torch.version", equal=True),
    text(
        "kernels",
        "its optimizers, whether cuDNN tried its convolutions, and a memory format that is not the usual one",
        of=_kernels,
        equal=True,
    ),
    whole("processors", "processors of the tenant's slice", "cpu_cores", equal=True),
    flag("audited", "false for a program that speaks the protocol by itself, whose number is its own word", equal=True),
    text("gpu", "model of the device, without one of the processor", equal=True, word="device"),
    # Its outcome.
    measured(
        "rate_items_s",
        "median rate of the kept observations; of the original's records their mean",
        "statistics.median",
    ),
    *ends(
        "interval_low_items_s",
        "interval_high_items_s",
        "statistics.interval",
        "lower end of the median's exact 95 % interval",
        "its upper end",
        measured=True,
    ),
    measured("robust_spread", "1.4826 MAD / median of the rates", "statistics.robust_spread", check=not_negative),
    measured("rate_mean_items_s", "items over the mean time, as in the original (`train_item.avg`)", "train_item.avg"),
    measured("rate_min_items_s", "the same of the slowest observation", "train_item.min"),
    measured("rate_max_items_s", "and of the fastest", "train_item.max"),
    whole("n", "kept observations", "statistics.n"),
    number("mean_s", "mean seconds of an observation", "train.avg"),
    number("observed_s", "seconds inside its observations, kept or not, across no border of blocks", of=_observed_s),
    number("loaded_s", "seconds from GO to the end of its load", of=_loaded_s),
    number("sd_s", "their standard deviation (the population's)", "train.sd"),
    measured("tflops", "counted operations per second of the median observation, in 10^12", "meters.compute.tflops"),
    measured("mfu", "its share of the device's peak by the datasheet", "meters.compute.mfu"),
    whole("steps", "timed steps of kept observations, of a benchmark that serves", "meters.steps.n"),
    measured("step_p50_ns", "median time of a step", "meters.steps.p50_ns"),
    measured("step_p95_ns", "what 95 of 100 steps do not exceed", "meters.steps.p95_ns"),
    measured("step_p99_ns", "what 99 of 100 do not exceed", "meters.steps.p99_ns"),
    measured("alone_step_p50_ns", "median time of a step in blocks alone", "meters.steps_alone.p50_ns"),
    measured("alone_step_p95_ns", "what 95 of 100 do not exceed there", "meters.steps_alone.p95_ns"),
    measured("alone_step_p99_ns", "what 99 of 100 do not exceed", "meters.steps_alone.p99_ns"),
    *ends(
        "step_p99_low_ns",
        "step_p99_high_ns",
        "meters.steps.p99_interval_ns",
        "lower end of its exact 95 % interval, steps taken as independent",
        measured=True,
    ),
    number(
        "device_load_percent",
        "mean load of the tenant's own devices while it was timed",
        of=_load,
        check=not_negative,
    ),
    measured(
        "device_power_w",
        "mean power of its devices while tenants were timed, by their energy counters; of a shared one that of all; by "
        "blocks, in which not all of them ran, it is not known",
        of=lambda read: own_power_w(read.record) if read.record.blocks is None else None,
    ),
    text("slice", "what was planned of the machine: equal for equal slices"),
    text("version", "hash of the benchmark's source"),
    text("work", "the same, solo or not, and without a number of workers that nobody asked for"),
    text("work_but_precision", "as `item_work`, whatever its name and precision: what a speed-up by precision is of"),
    text("shape", "the arguments that decide an item's work, whatever its precision and source, as JSON"),
    whole("losses_non_finite", "losses that are NaN or infinite", default=0),
    whole("rows", "rows of a batch, as the harness sees them", "observed.rows"),
    number("items_per_row", "what the benchmark counts for a row: 1 where an item is one", "observed.items_per_row"),
    number(
        "overlap",
        "share of the kept observations' time in which all tenants ran",
        "rendezvous.overlap",
    ),
    measured("kept", "what it keeps of its rate alone beside the others, by the blocks of its launch", "kept.value"),
    *ends(
        "kept_low",
        "kept_high",
        "kept.interval",
        "lower end of its 95 % interval over the rounds of this launch",
        measured=True,
    ),
    whole("kept_rounds", "rounds of blocks that it goes over", "kept.n", measured=True),
    text("duet_side", "of a tenant of a duet `A` or `B`, else empty", "duet.side"),
    text(
        "duet_arguments",
        "the words that this side has behind those of the job; of `exec` its command",
        of=lambda read: shlex.join(read.record.duet.words) if read.record.duet else "",
    ),
    text(
        "run_words",
        "the words of the run that launched it, as a shell reads them",
        of=lambda read: shlex.join(read.record.run_words),
    ),
    number("duet_ratio", "the rate of B over that of A, in all records of the launch", "duet.ratio.value"),
    *ends(
        "duet_low",
        "duet_high",
        "duet.ratio.interval",
        "lower end of its 95 % interval over the rounds of this launch",
    ),
    whole("duet_rounds", "how many rounds it goes over", "duet.ratio.rounds"),
    number("duet_robust", "the ratio by rates that a busy host leaves alone; null in old records", "duet.ratio.robust"),
    number("duet_mean", "the ratio by all items over all time; null in old records", "duet.ratio.mean"),
    text("duet_verdict", "`SLOWER`, `FASTER`, `SAME` or `UNCLEAR`", "duet.ratio.verdict"),
    number("duet_settled_s", "about how long a launch would settle an UNCLEAR one", "duet.ratio.settled_s"),
    number(
        "efficiency",
        "rate of k devices over k times the rate of one, where the same suite run measured both",
        "meters.scaling.efficiency",
    ),
    text("findings", "rules of all findings, by commas", of=_rules("info", "warning", "error")),
    text("error_findings", "rules of the errors among them", of=_rules("error")),
    text("warning_findings", "and of the warnings", of=_rules("warning")),
    flag("ours", "false for a record of the original suite", True),
    text("model", "the argument that names a model", of=argument("network", "arch", "model")),
    whole("nodes", "hosts that took part", "observed.nodes", check=count, default=1),
    whole(
        "world_size",
        "ranks, or replicas of DataParallel, that took part",
        of=lambda read: first_of(read.record.observed, "replicas", "world_size"),
        check=count,
    ),
    whole(
        "batch_size_per_device",
        "items of a batch on one device",
        of=argument("batch_size_per_device", "batch_size"),
        check=count,
    ),
    text(
        "parallelism",
        "`ddp`, `fsdp` ...",
        of=lambda read: first_of(read.record.observed, "parallel") or first_of(read.record.arguments, "parallel"),
    ),
    text("input", "`files`, or `resident` in memory"),
    text("path", "the record's file", needed=True),
)

_OF_RECORD = ("suite", "name", "run_id", "vcd", "tenant", "solo", "hostname", "start_time")
OBSERVATION_COLUMNS: tuple[RecordColumn, ...] = (
    text("schema", f"`{OBSERVATIONS}`"),
    *(column for column in COLUMNS if column.name in _OF_RECORD),
    whole("observation", "number of the observation in its launch, from 0"),
    whole("block", "the block of the launch in which it lies; null across a border, and without blocks"),
    text("kind", "the tenants that ran in that block: `all`, or `only` this one; empty across a border"),
    flag(
        "kept",
        "whether it counts, of `kind` `only` for the rate alone, else for the record's rate: not before the first "
        "`skip`, and of blocks behind their leave-out",
    ),
    whole("start_ns", "CLOCK_MONOTONIC of the host"),
    whole("end_ns", "the same"),
    number("items", "what was counted"),
    number("rate_items_s", "items / (end - start); null where that is no number"),
    whole("data_wait_ns", "of it the wait for data"),
    whole("event_ns", "the same time by the device's own events, where it has them"),
    whole("issued_ns", "when the host had issued all work to the device, by the clock of `start_ns`"),
    text("path", "the record's file"),
)

TRUST = (
    pl.when(~pl.col("completed"))
    .then(pl.lit("failed"))
    .when(pl.col("invalid") | (pl.col("losses_non_finite") > 0))
    .then(pl.lit("invalid"))
    .when(pl.col("warning_findings") != "")
    .then(pl.lit("suspect"))
    .otherwise(pl.lit("clean"))
)
GOOD = pl.col("completed") & ~pl.col("invalid") & (pl.col("losses_non_finite") == 0)
_BESIDE_LEVEL = pl.col("mix").str.contains(r"\+pressure_[a-z0-9]+_[0-9]+$").fill_null(False)
BESIDE_PRESSURE = (GOOD & pl.col("comparable") & _BESIDE_LEVEL).fill_null(False)
"""True for a record of a launch beside a neighbour of known pressure."""
IN_DUET = (pl.col("duet_side") != "").fill_null(False)
"""True for a record of a duet: its tenant took turns with another program, so it is no launch of its job."""
TOGETHER = ~pl.col("solo") & ~IN_DUET
"""True for a record of all tenants at once: neither a baseline of one tenant alone nor a duet."""
OF_EQUALS = TOGETHER & (pl.col("mix") == "")
"""True for a record of all tenants at once, all with the same job."""
COUNTS = GOOD & pl.col("rate_items_s").is_not_null()
"""True for a record with a rate that may be summed, averaged or compared."""
CELL = (
    pl.when("solo")
    .then(pl.col("name").str.strip_suffix(SOLO))
    .when(pl.col("mix") != "")
    .then(pl.col("name").str.strip_suffix(pl.concat_str(pl.lit(IN_MIX), pl.col("mix"))))
    .otherwise("name")
)
"""The name without the marks of a tenant alone or in a mix."""
JOB = pl.when("solo").then(pl.col("name").str.strip_suffix(SOLO)).otherwise("name")
"""The name of the job: for a solo launch the name of the launch to which it belongs."""
LAUNCH = (
    pl.when(pl.col("mix") != "")
    .then("mix")
    .when(IN_DUET)
    .then(pl.col("name").str.strip_suffix(pl.concat_str(pl.lit("."), pl.col("duet_side"))))
    .otherwise("name")
)
"""The name that distinguishes launches of one repetition: the tenants of a mix or duet have several names."""
TENANT = pl.coalesce(pl.col("tenant").cast(pl.String), "vcd")
"""The label of a tenant: its number, or in the original's records its device."""


def schema(columns: Iterable[RecordColumn] | None = None) -> pl.Schema:
    """Return the types of these columns, or of the table's."""
    return pl.Schema({column.name: KINDS[column.kind][0] for column in columns or COLUMNS})


@functools.cache
def equal_columns() -> Mapping[str, RecordColumn]:
    """Return the columns that must be equal in a comparison of rates, by their words in comparisons."""
    return {column.word or column.name: column for column in COLUMNS if column.equal}


def values_of(record: ReadRecord | LegacyRecord, columns: tuple[RecordColumn, ...]) -> list[Any]:
    """Return a record's values in these columns, each in its column's type, not yet checked."""
    if isinstance(record, LegacyRecord):
        return [record.values.get(column.name) for column in columns]
    return [take(record) for take in _takers(columns)]


def observation_values(read: ReadRecord) -> list[tuple[Any, ...]]:
    """Return the values of OBSERVATION_COLUMNS for each observation, kept or not."""
    shared = tuple(column for column in COLUMNS if column.name in _OF_RECORD)
    place, skip = values_of(read, shared), read.record.skip
    rows = []
    for number, made in enumerate(read.record.observations):
        kept = number >= skip if made.kept is None else made.kept
        of_block = made.block, made.kind, kept
        rows.append((OBSERVATIONS, *place, number, *of_block, *_numbers(made), read.path))
    return rows


def _numbers(observed: Observed) -> tuple[float | None, ...]:
    start_ns, end_ns, items = observed.start_ns, observed.end_ns, part_of(observed.items, Number)
    rate = items * 1e9 / (end_ns - start_ns) if observed.possible and items is not None else None
    return start_ns, end_ns, items, rate, observed.data_wait_ns, observed.event_ns, observed.issued_ns


def field_of_column(column: RecordColumn) -> Field | None:
    """Return the field of `Record` with a column's values; None if these are computed.

    Raises AttributeError if no such field is declared.
    """
    computed = column.of is not None or (not column.at and hasattr(ReadRecord, column.name))
    return None if computed else field_at(Record, column.at or column.name)


@functools.cache
def _takers(columns: tuple[RecordColumn, ...]) -> list[Callable[[ReadRecord], Any]]:
    return [_taker(column) for column in columns]


def _taker(column: RecordColumn) -> Callable[[ReadRecord], Any]:
    place, of_kind = field_of_column(column), KINDS[column.kind][1]
    if place is None:
        getter = column.of or operator.attrgetter(column.name)
        return lambda read: of_kind(getter(read))
    take = place.take
    if place.keys:
        return lambda read: of_kind(take(read.record))
    return lambda read: take(read.record)


def _check_of(column: RecordColumn) -> Check | None:
    """Return the check for possible values of a column: its own, else one by the type of its field; None if all are."""
    if column.check is not None:
        return column.check
    place = field_of_column(column)
    if place is not None and place.bounds is not None:
        return place.bounds
    return positive if column.kind is float else None


@functools.cache
def _checks(columns: tuple[RecordColumn, ...]) -> dict[str, Check]:
    return {column.name: check for column in columns if (check := _check_of(column)) is not None}


def checked(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Return a table of values in their columns' types: impossible values are unknown, unknown ones have defaults."""
    possible = [pl.when(check(pl.col(name))).then(name) for name, check in _checks(COLUMNS).items()]
    measured = [column.name for column in COLUMNS if column.measured]
    defaults = [pl.col(column.name).fill_null(column.default) for column in COLUMNS if column.default is not None]
    return (
        frame.with_columns(possible)
        .with_columns(
            pl.when(pl.col("completed") & pl.col("rate_items_s").is_not_null()).then(pl.col(measured)), *defaults
        )
        .with_columns(invalid=pl.col("completed") & (pl.col("error_findings") != ""))
        .with_columns(trust=TRUST)
    )
