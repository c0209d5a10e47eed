"""The record: the result of one tenant of one launch, as one JSON file.

The benchmark's arguments stand flat at the top, then the fields the original suite's readers know, then our own keys.
`record.schema.json` beside this file is generated from these types; a test compares them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

import msgspec

from cotenant.decoding import MOST, AtLeastOne, Measured, Nanoseconds, NotNegative, Share, Whole, decoded
from cotenant.finding import Finding
from cotenant.nesting import DEEPEST, is_deep
from cotenant.stats.budget import Amount
from cotenant.stats.describe import Description
from cotenant.stats.duet import DuetRatio
from cotenant.stats.kept import Kept, Spent

Outcome = Literal[
    "completed",
    "failed",
    "out_of_memory",
    "host_out_of_memory",
    "device_out_of_memory",
    "timeout",
    "nan",
    "node_lost",
    "not_isolated",
    "interrupted",
    "aborted",
    "missing_data",
    "missing_package",
    "unsupported",
]


INTERRUPTED: Outcome = "interrupted"
"""The outcome of a tenant that a signal to the runner ended: nothing has failed."""
CLEAN, SUSPECT, INVALID = "clean", "suspect", "INVALID"
"""Verdicts on completed tenants: without a warning, with one, and with an error, so that the number does not count."""
UNAUDITED = "unaudited"
"""Marks a number that only its program reports."""
Baseline = Literal["quick", "whole"]
Side = Literal["A", "B"]
NO_BLOCKS = "no_blocks"
"""The rule of a launch that was planned by blocks, which were not possible."""
NOT_ALONE = "not_alone"
"""The rule of a launch without blocks that also could not observe a user alone at its end."""
SOLO = ".solo"
"""The suffix of a job's name in its solo launches."""
IN_MIX = ".in."
"""The part between a job's name and that of its mix, in the names of a mix's tenants."""


def name_of(cell: str, solo: bool, mix: str) -> str:
    """Return a record's name: a tenant alone or in a mix has a mark, so that it is no launch of its job."""
    return cell + SOLO if solo else f"{cell}{IN_MIX}{mix}" if mix else cell


def why_no_blocks(findings: Iterable[Finding]) -> Finding | None:
    """Return the finding on why a launch could not have blocks; None if it had them, or was not planned by blocks."""
    return next((finding for finding in findings if finding.rule == NO_BLOCKS), None)


def cell_of(name: str, solo: bool, mix: str) -> str:
    """Return the cell's label in a record's name."""
    return name.removesuffix(SOLO) if solo else name.removesuffix(f"{IN_MIX}{mix}") if mix else name


class Train(msgspec.Struct, frozen=True):
    """Seconds per kept observation; `sd` is the population's."""

    avg: Measured
    """Mean."""
    count: Whole
    """Kept observations."""
    max: Measured
    """The slowest."""
    min: Measured
    """The fastest."""
    sd: NotNegative
    """Standard deviation (the population's)."""
    unit: str = "s"
    """Always `s`."""


class TrainItem(msgspec.Struct, frozen=True):
    """Items per second: the items of one observation over `train`'s seconds."""

    avg: Measured
    """Mean items of an observation over `train.avg`."""
    max: float
    """The same over `train.min`."""
    min: float
    """The same over `train.max`."""
    range: float
    """`max - min`."""
    unit: str = "items/sec"
    """Always `items/sec`."""


class Observed(msgspec.Struct, frozen=True):
    """One observation as it was made, kept or not. Times are of CLOCK_MONOTONIC; `items` is null where it was NaN."""

    start_ns: Whole
    """When its clock started."""
    end_ns: Whole
    """When it stopped."""
    items: float | None
    """Items that were counted in between."""
    data_wait_ns: Whole
    """The part of the time in between that was a wait for data."""
    event_ns: Nanoseconds | None = None
    """The same time by the device's own events, where it has them."""
    issued_ns: Nanoseconds | None = None
    """When the host had issued all its work to the device; null where it computes itself."""
    block: Whole | None = None
    """The block of the launch in which it lies; null across a border, and in a launch without blocks."""
    kind: Literal["all", "only", "turn", ""] = "all"
    """The tenants that ran in that block: all tenants, of pairs both, `only` this one, or those whose `turn` it was in
    a duet; empty across a border."""
    kept: bool | None = None
    """Whether it counts, of `kind` `only` for the rate alone, else for the record's rate; null in records from before
    there were blocks, where those after `skip` do."""
    round: Whole | None = None
    """The round of that block; those of the warm-up are 0. Null where `block` is."""

    @property
    def took_ns(self) -> int:
        """The time from its start to its end."""
        return self.end_ns - self.start_ns

    @property
    def possible(self) -> bool:
        """Whether it took time and counted items, so that it has a rate, of which there may be sums and ratios."""
        if self.items is None or not (0 <= self.start_ns < self.end_ns < MOST and 1 / MOST < self.items < MOST):
            return False
        return 1 / MOST < self.items * 1e9 / self.took_ns < MOST


def counts(observations: Sequence[Observed], skip: int) -> list[bool]:
    """Return for each observation whether it counts for a record's numbers: it is kept, and was not made alone."""
    return [
        index >= skip if made.kept is None else made.kept and made.kind != "only"
        for index, made in enumerate(observations)
    ]


def counted(observations: Sequence[Observed], skip: int) -> list[Observed]:
    """Return the observations that count for a record's numbers."""
    return [*itertools.compress(observations, counts(observations, skip))]


def rated(observations: Sequence[Observed], skip: int) -> list[Observed]:
    """Return the observations that give a record its rate: those that count; none if one of them is impossible."""
    rows = counted(observations, skip)
    return rows if all(observed.possible for observed in rows) else []


class Blocks(msgspec.Struct, frozen=True):
    """The schedule of a launch by blocks, and the time that this tenant's slice spent in blocks of each kind."""

    rounds: int
    """Rounds that it went through, beside one for the warm-up: in each all run alone once, or every pair meets once."""
    passed: int
    """Blocks that the launch went through."""
    void: int
    """Those blocks in which nothing is kept: a tenant was not held still in time, or the runner was not there."""
    held_by: str
    """The means that held tenants still: the kernel's `freezer`, or signals that `stopped` their processes."""
    border_p50_ns: int
    """Median time from one block's end to the next one's begin."""
    border_longest_ns: int
    """The longest of these."""
    spent: dict[str, Spent] = {}
    """The use by kind of block: `all`, `only` this tenant, `rest` where it was held still; empty if nobody counts."""
    unheld: int = 0
    """How often this tenant was not held still in time."""
    residents: int | None = None
    """In a launch in which several pairs met: how many tenants lived in it, of which two were awake at a time."""
    complete: bool = True
    """Whether the launch went through all blocks: false where an interval was narrow enough, or a tenant ended."""


class DuetPart(msgspec.Struct, frozen=True):
    """A tenant's part of a duet: two programs that took turns in the same slices, or users and one process for all."""

    side: Side
    """`A`, or `B`, whose rate is held against that of A."""
    slice: int
    """Number of the slice, which a tenant of the other side had as well; 0 where one had all of them."""
    words: list[str]
    """The words that this side has behind those of the job; of `exec` its command."""
    ratio: DuetRatio | None
    """B over A: the same in all records of the launch. Null where one of its tenants did not complete."""


class Meeting(msgspec.Struct, frozen=True):
    """How this tenant met the others."""

    ready_ns: Nanoseconds
    """When the tenant was ready."""
    t0_ns: Nanoseconds
    """The moment of GO, at which all were to start."""
    start_ns: Nanoseconds
    """When it did."""
    load_end_ns: Nanoseconds
    """When its load ended, after its last observation."""
    overlap: Share
    """Share of the kept observations' time in which all tenants ran."""
    start_skew_ns: Whole
    """How long after the first tenant it started."""
    warm_up_ns: list[Nanoseconds]
    """How long each step of its warm-up took."""
    late_ns: Nanoseconds = 0
    """The longest time, by the runner's clock, from the end of an observation until it had been sent."""


class Enclosed(msgspec.Struct, frozen=True):
    """The slice of a tenant. Counters of time are of GO to the last DONE, the rest of the slice's life."""

    backend: str
    """The backend that held the slice: `v1`, `v2`, `affinity` or `none`."""
    planned: dict[str, Any]
    """Processors, NUMA nodes, memory and accelerators of the plan."""
    read_back: dict[str, Any]
    """The kernel's report of them."""
    counters: dict[str, Any]
    """The slice's use: processor time, memory, throttling, kills."""
    unenforced: list[str]
    """Limits that could not be enforced."""
    policies: dict[str, str | float] = {}
    """Policies of all tenants alike: `on_oom`; where they are set, `budget_s`, `until_interval`,
    `settle_s` and `at_least_s`; `memory_class` where the job takes its batch size from the table of
    sizes."""
    uncounted: list[str] = []
    """Counters that could not be had."""
    enabled_by: dict[str, str] = {}
    """The step that would enable each of these."""


class SharedDevice(msgspec.Struct, frozen=True):
    """How a tenant shared its device with others of its launch."""

    asked: str
    """The mode that was asked for: `time`, `mps` or `mps:25`; empty where none was."""
    seen: str
    """The mode as the tenant and the kernel have it, or `exclusive`; empty where the tenant could not say."""
    sharers: AtLeastOne
    """Tenants of the launch on its device, itself included."""
    entitlement: Share | None
    """The part of the device's computing that it was promised, at most 1; null where nothing was."""
    memory_bytes: int | None
    """Its limit on device memory; null without one."""
    memory_by: str
    """The mechanism that holds that limit; empty where nothing does."""
    mps_clients: int | None
    """Most clients of MPS that the driver listed on the device; null where it lists none."""


class Attested(msgspec.Struct, kw_only=True, frozen=True):
    """The facts of a record that the runner knows, or a benchmark that runs alone in its place.

    The `name` of a `solo` launch ends in `.solo`, that of a tenant of a mix in `.in.MIX`, so that no reader takes it
    for a launch of its job; its `tenant` is the number beside the others.
    """

    suite: str
    """Name of the suite: the job file's stem."""
    name: str
    """Name of the job, with its cell."""
    run_id: Whole
    """Repetition of the suite: its uid."""
    vcd: str
    """Index of the device that it trained on, of several all (`0,1`); without accelerators the tenant's number."""
    hostname: str
    """The host."""
    cpu_cores: Whole
    """Processors of the slice."""
    devices: Whole
    """Accelerators that it trained on: of its slice's, which `isolation` names, the first ones."""
    suite_start_time: str
    """When the suite run began that launched it, equal in all its records; empty without one."""
    start_time: str
    """When the launch began: ISO 8601."""
    end_time: str
    """When it ended."""
    outcome: Outcome
    """`completed`, or the other outcome."""
    message: str
    """The reason, where it did not complete."""
    tenant: Whole
    """Number of the tenant, from 0."""
    tenants: Whole
    """Tenants of the launch."""
    sharers: AtLeastOne = 1
    """Tenants of the launch with this tenant's processors, itself included; 1: they are its own."""
    share: SharedDevice | None = None
    """How it shared its device; null without one."""
    solo: bool = False
    """Whether the tenant ran alone in its slice, beside a launch of all tenants."""
    baseline: Baseline | None = None
    """For a tenant alone: `whole`, or `quick`, with few observations; null beside the others."""
    stands_for: list[Whole] = []
    """For a tenant alone: the tenants whose baseline this is, those of equal slices."""
    mix: str = ""
    """Name of the mix, of a launch whose tenants run different jobs; `name` then ends in `.in.` and this."""
    neighbours: list[str] = []
    """In a mix: the jobs of the other tenants, sorted."""
    group: str
    """`student`: a tenant among others; `all`: the launch owns the machine."""
    skip: Whole
    """How many observations, from the first, are in no statistic; 0 in a launch by blocks, where `kept` says it."""
    asked: Amount | None
    """How much the job asks for; null without a runner, or where the tenant sent none."""
    given: Amount | None
    """How much GO gave: less where a budget is tight, in a mix and by blocks a bound beyond the load; null where there
    was no GO."""
    comparable: bool
    """False where another tenant was lost after GO."""
    command: list[str]
    """The command that was run."""
    run_words: list[str] = []
    """The words of the run that launched it, without confidential values; a remedy is these with a change."""
    log: str
    """File with its output."""
    observations: list[Observed]
    """Every observation, kept or not, in order."""
    rank_observations: dict[str, list[Observed]]
    """Those of each rank by its number, where there are several."""
    rendezvous: Meeting | None
    """How it met the others; null if it did not."""
    isolation: Enclosed
    """Its slice."""
    machine: dict[str, Any]
    """The host: topology, memory, accelerators, software."""
    meters: dict[str, Any]
    """Samples while tenants were timed: load, power, memory, temperature, clocks, foreign work."""
    findings: list[Finding]
    """The findings on the number's validity."""
    blocks: Blocks | None = None
    """The schedule of its launch; null of a launch without blocks."""
    duet: DuetPart | None = None
    """Its part of a duet; null where it was in none."""


class Record(Attested, kw_only=True, frozen=True):
    """One tenant of one launch: the attested facts, the tenant's own words, and the numbers made of both.

    The benchmark's arguments stand flat, before everything else. Its `number` and `repeat` are those that it carried
    out, whatever was `asked` and `given`.
    """

    arguments: dict[str, Any]
    jr_id: int
    """Number of the tenant, by the original's name."""
    gpu: str
    """Model of the device; without one, of the processor."""
    version: str
    """Hash of the benchmark's source."""
    unique_id: str
    """sha256 of name, source and the arguments that change the work: equal for equal work. Empty if unknown."""
    completed: bool
    """Whether the tenant came to its end."""
    schema: Literal["cotenant-record-1"] = "cotenant-record-1"
    """Version of this form."""
    unit: str
    """The items that are counted: `image`, `token` ..."""
    train: Train | None
    """Time of an observation; null without a kept one."""
    train_item: TrainItem | None
    """Rate of an observation, by the original's divisions."""
    batch_loss: list[float | None]
    """The last 100 losses; null is one that was not finite."""
    epoch_loss: list[float | None]
    """The mean loss of each observation."""
    losses_checked: Whole
    """Losses that were looked at."""
    losses_non_finite: Whole
    """Those losses that are NaN or infinite."""
    metrics: dict[str, float | None]
    """Further measurements of the benchmark, by name."""
    ignored: list[str]
    """Flags that were accepted and have no effect."""
    statistics: Description | None
    """The kept observations' rates; null without one."""
    observed: dict[str, Any]
    """The work that really ran: dtype, device, world size, whether compiled and in which mode."""
    kept: Kept | None = None
    """The share of its rate alone that it keeps beside the other tenants, by blocks; null where that is not known."""

    @property
    def invalid(self) -> bool:
        """Whether it completed, but an error finding says that its number does not count."""
        return self.completed and any(finding.severity == "error" for finding in self.findings)

    @property
    def audited(self) -> bool:
        """Whether our loop watched some of its steps; else its number is its program's own word."""
        return isinstance(self.observed.get("audit"), dict)

    @property
    def suspect(self) -> bool:
        """Whether it completed, but a warning says that its number may be disturbed."""
        return self.completed and any(finding.severity == "warning" for finding in self.findings)


_NAMES = frozenset(Record.__struct_fields__)
_FIELDS = msgspec.json.Decoder(dict[str, Any])
_ORIGINAL = (
    *("suite", "name", "run_id", "jr_id", "vcd", "hostname", "gpu", "cpu_cores", "devices", "version", "unique_id"),
    *("suite_start_time", "start_time", "end_time", "completed", "outcome", "message", "schema", "unit"),
    *("train", "train_item", "batch_loss", "epoch_loss", "losses_checked", "losses_non_finite", "metrics", "ignored"),
)
"""The fields that the original suite's readers know, and those of ours beside them, in the order of a file."""


def known_outcome(outcome: str, message: str) -> tuple[Outcome, str]:
    """Return an outcome of the contract and its message; another outcome becomes a failure that names it."""
    for known in get_args(Outcome):
        if outcome == known:
            return known, message
    return "failed", f"{outcome}: {message}"


def plain(record: Record) -> dict[str, Any]:
    """Return the record as it is written: flat arguments first, and only values that JSON can hold.

    If an argument has the name of a field, the field's observed value is written. A number that is not finite becomes
    null; characters that UTF-8 cannot hold, like undecodable bytes of a file's name, become escapes.
    """
    fields: dict[str, Any] = portable(msgspec.to_builtins(record))
    arguments: dict[str, Any] = fields.pop("arguments")
    return arguments | {name: fields.pop(name) for name in _ORIGINAL} | fields


def encode(record: Record) -> bytes:
    """Return the record's JSON, indented, as one file's content."""
    return msgspec.json.format(msgspec.json.encode(plain(record)), indent=1) + b"\n"


def restored(content: bytes) -> Record:
    """Return the record of a file that this version wrote. Raises msgspec.DecodeError for any other content."""
    fields = decoded(_FIELDS, content)
    if is_deep(fields):
        raise msgspec.DecodeError(f"it is nested more than {DEEPEST} levels deep")
    return record_of(fields)


def record_of(fields: dict[str, Any]) -> Record:
    """Return the record of a file's fields. Raises msgspec.ValidationError, which names the field that is wrong."""
    arguments = {name: value for name, value in fields.items() if name not in _NAMES}
    record = msgspec.convert({**fields, "arguments": arguments}, Record)
    if record.completed != (record.outcome == "completed"):
        raise msgspec.ValidationError(f"`completed` is {record.completed}, and `outcome` {record.outcome}")
    return record


def portable(value: Any) -> Any:
    """Return plain values that JSON and UTF-8 can hold: null for a number that is not finite, escapes in texts."""
    if isinstance(value, dict):
        return {portable(key): portable(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [portable(inner) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    return value
