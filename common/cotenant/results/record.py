"""The record: the result of one tenant of one launch, as one JSON file.

The benchmark's arguments stand flat at the top, then the fields that the original suite's readers know, then our own.
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
"""The outcome of a tenant ended by a signal to the runner: nothing has failed."""
CLEAN, SUSPECT, INVALID = "clean", "suspect", "INVALID"
"""Verdicts on completed tenants: no warning; a warning; an error, so that the number does not count."""
UNAUDITED = "unaudited"
"""Marks a number that only the program itself reports."""
Baseline = Literal["quick", "whole"]
Side = Literal["A", "B"]
NO_BLOCKS = "no_blocks"
"""The rule of the finding that a launch's planned blocks were not possible."""
NOT_ALONE = "not_alone"
"""The rule of the finding that a launch without blocks could not observe a user alone at its end either."""
SOLO = ".solo"
"""The suffix of a job's name in its solo launches."""
IN_MIX = ".in."
"""The part between the names of job and mix, in the names of a mix's tenants."""


def record_name(cell: str, solo: bool, mix: str) -> str:
    """Return a record's name: a tenant alone or in a mix has a mark, since it is no launch of its job."""
    return cell + SOLO if solo else f"{cell}{IN_MIX}{mix}" if mix else cell


def why_no_blocks(findings: Iterable[Finding]) -> Finding | None:
    """Return the finding on why a launch could not have its planned blocks; None if it had them or planned none."""
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
    """One observation as it was made, kept or not. Times are of CLOCK_MONOTONIC; `items` is null for NaN."""

    start_ns: Whole
    """When its clock started."""
    end_ns: Whole
    """When it stopped."""
    items: float | None
    """Items counted in between."""
    data_wait_ns: Whole
    """Time spent waiting for data in between."""
    event_ns: Nanoseconds | None = None
    """The observation's time by the device's own events, if it has them."""
    issued_ns: Nanoseconds | None = None
    """When the host had issued all its work to the device; null if the host itself computes."""
    block: Whole | None = None
    """The block of the launch that contains it; null across a border, and in a launch without blocks."""
    kind: Literal["all", "only", "turn", ""] = "all"
    """The tenants that ran in that block: all tenants (of a pair both), `only` this one, or the tenants whose `turn` it
    was in a duet; empty across a border."""
    kept: bool | None = None
    """Whether it counts: with `kind` `only` for the rate alone, else for the record's rate; null in records of versions
    without blocks, in which the observations after `skip` count."""
    round: Whole | None = None
    """The round of that block, 0 for the warm-up; null if `block` is."""

    @property
    def took_ns(self) -> int:
        """The time from its start to its end."""
        return self.end_ns - self.start_ns

    @property
    def possible(self) -> bool:
        """Return whether it took time and counted items, so that its rate may enter sums and ratios."""
        if self.items is None or not (0 <= self.start_ns < self.end_ns < MOST and 1 / MOST < self.items < MOST):
            return False
        return 1 / MOST < self.items * 1e9 / self.took_ns < MOST


def counts(observations: Sequence[Observed], skip: int) -> list[bool]:
    """Return for each observation whether it counts for a record's numbers: kept, and not made alone."""
    return [
        index >= skip if made.kept is None else made.kept and made.kind != "only"
        for index, made in enumerate(observations)
    ]


def counted(observations: Sequence[Observed], skip: int) -> list[Observed]:
    """Return the observations that count for a record's numbers."""
    return [*itertools.compress(observations, counts(observations, skip))]


def rated(observations: Sequence[Observed], skip: int) -> list[Observed]:
    """Return the observations that give a record its rate: all that count; none if one of them is impossible."""
    rows = counted(observations, skip)
    return rows if all(observed.possible for observed in rows) else []


class Blocks(msgspec.Struct, frozen=True):
    """The schedule of a launch by blocks, and the time that this tenant's slice spent in blocks of each kind."""

    rounds: int
    """Rounds completed, without the warm-up's: in each every tenant runs alone once, or every pair meets once."""
    passed: int
    """Blocks completed."""
    void: int
    """Blocks in which nothing is kept: a tenant was not held still in time, or the runner was not there."""
    held_by: str
    """How tenants were held still: by the kernel's `freezer`, or by signals that `stopped` their processes."""
    border_p50_ns: int
    """Median time from a block's end to the next block's begin."""
    border_longest_ns: int
    """The longest of these times."""
    spent: dict[str, Spent] = {}
    """The use by kind of block: `all`, `only` this tenant, `rest` while it was held still; empty if uncounted."""
    unheld: int = 0
    """How often this tenant was not held still in time."""
    residents: int | None = None
    """In a launch of several pairs: the number of its tenants, of which two were awake at a time."""
    complete: bool = True
    """Whether the launch completed all blocks: false if an interval was narrow enough, or a tenant ended."""


class DuetPart(msgspec.Struct, frozen=True):
    """A tenant's part of a duet: two programs that took turns in the same slices, or users and one process for all."""

    side: Side
    """`A`, or `B`, which is compared with A."""
    slice: int
    """Number of the slice, which a tenant of the other side had as well; 0 if one tenant had all slices."""
    words: list[str]
    """The words that this side adds to the job's words; for `exec` its command."""
    ratio: DuetRatio | None
    """B over A, equal in all records of the launch; null if one of its tenants did not complete."""


class Meeting(msgspec.Struct, frozen=True):
    """How this tenant met the others."""

    ready_ns: Nanoseconds
    """When the tenant was ready."""
    t0_ns: Nanoseconds
    """The moment of GO, at which all tenants should start."""
    start_ns: Nanoseconds
    """When the tenant started."""
    load_end_ns: Nanoseconds
    """When the tenant's load ended, after its last observation."""
    overlap: Share
    """Share of the kept observations' time during which all tenants ran."""
    start_skew_ns: Whole
    """The time from the first tenant's start to its own."""
    warm_up_ns: list[Nanoseconds]
    """The time of each warm-up step."""
    late_ns: Nanoseconds = 0
    """The longest time, by the runner's clock, from the end of an observation until it was sent."""


class Enclosed(msgspec.Struct, frozen=True):
    """The slice of a tenant. Counters of time cover GO to the last DONE, other counters the slice's whole life."""

    backend: str
    """The backend that held the slice: `v1`, `v2`, `affinity` or `none`."""
    planned: dict[str, Any]
    """Processors, NUMA nodes, memory and accelerators of the plan."""
    read_back: dict[str, Any]
    """The same as the kernel reports them."""
    counters: dict[str, Any]
    """The slice's use: processor time, memory, throttling, kills."""
    unenforced: list[str]
    """Limits that could not be enforced."""
    policies: dict[str, str | float] = {}
    """Policies for all tenants: `on_oom`; if set, `budget_s`, `until_interval`, `settle_s` and `at_least_s`; and
    `memory_class` if the job takes its batch size from the table of sizes."""
    uncounted: list[str] = []
    """Counters that could not be read."""
    enabled_by: dict[str, str] = {}
    """The step that would enable each limit or counter."""


class SharedDevice(msgspec.Struct, frozen=True):
    """How a tenant shared its device with others of its launch."""

    asked: str
    """The requested mode: `time`, `mps` or `mps:25`; empty if none was."""
    seen: str
    """The mode as the tenant and the kernel have it, or `exclusive`; empty if the tenant could not say."""
    sharers: AtLeastOne
    """Tenants of the launch on its device, itself included."""
    entitlement: Share | None
    """The promised share of the device's computing, at most 1; null if none was promised."""
    memory_bytes: int | None
    """Its limit on device memory; null without one."""
    memory_by: str
    """The mechanism that enforces the limit; empty if none does."""
    mps_clients: int | None
    """Most clients of MPS that the driver listed on the device; null if it lists none."""


class Attested(msgspec.Struct, kw_only=True, frozen=True):
    """The facts of a record that the runner knows, or in its place a benchmark that runs alone.

    The `name` ends in `.solo` for a `solo` launch and in `.in.MIX` for a tenant of a mix, so that no reader takes it
    for a launch of its job; the `tenant` keeps its number.
    """

    suite: str
    """Name of the suite: the job file's stem."""
    name: str
    """Name of the job, with its cell."""
    run_id: Whole
    """Repetition of the suite: its uid."""
    vcd: str
    """Index of the device that it trained on, or all indices (`0,1`); without accelerators the tenant's number."""
    hostname: str
    """The host."""
    cpu_cores: Whole
    """Processors of the slice."""
    devices: Whole
    """The number of accelerators that it trained on: the first of its slice, which `isolation` names."""
    suite_start_time: str
    """When the suite run began, equal in all its records; empty without a suite run."""
    start_time: str
    """When the launch began: ISO 8601."""
    end_time: str
    """When it ended."""
    outcome: Outcome
    """`completed`, or another outcome."""
    message: str
    """The reason if it did not complete."""
    tenant: Whole
    """Number of the tenant, from 0."""
    tenants: Whole
    """Tenants of the launch."""
    sharers: AtLeastOne = 1
    """Tenants of the launch on this tenant's processors, itself included; 1: it has its own processors."""
    share: SharedDevice | None = None
    """How it shared its device; null without a device."""
    solo: bool = False
    """Whether the tenant ran alone in its slice, as a baseline for a launch of all tenants."""
    baseline: Baseline | None = None
    """For a tenant alone: `whole`, or `quick`, with few observations; null for tenants together."""
    stands_for: list[Whole] = []
    """For a tenant alone: the tenants that this is a baseline for, which have equal slices."""
    mix: str = ""
    """Name of the mix if the launch's tenants run different jobs; `name` then ends in `.in.` and this."""
    neighbours: list[str] = []
    """In a mix: the jobs of the other tenants, sorted."""
    group: str
    """`student`: a tenant among others; `all`: the launch owns the machine."""
    skip: Whole
    """The number of first observations that are in no statistic; 0 in a launch by blocks, which has `kept`."""
    asked: Amount | None
    """The amount that the job requests; null without a runner, or if the tenant sent none."""
    given: Amount | None
    """The amount at GO: less if a budget is tight; in a mix and by blocks a bound beyond the load; null without GO."""
    comparable: bool
    """False if another tenant was lost after GO."""
    command: list[str]
    """The command that was run."""
    run_words: list[str] = []
    """The words of the run that launched it, without confidential values; remedies repeat them with a change."""
    log: str
    """File with its output."""
    observations: list[Observed]
    """Every observation, kept or not, in order."""
    rank_observations: dict[str, list[Observed]]
    """The observations of each rank by its number, if there are several."""
    rendezvous: Meeting | None
    """How it met the other tenants; null if it did not."""
    isolation: Enclosed
    """Its slice."""
    machine: dict[str, Any]
    """The host: topology, memory, accelerators, software."""
    meters: dict[str, Any]
    """Samples while tenants were timed: load, power, memory, temperature, clocks, foreign work."""
    findings: list[Finding]
    """The findings on the number's validity."""
    blocks: Blocks | None = None
    """The schedule of its launch; null without blocks."""
    duet: DuetPart | None = None
    """Its part of a duet; null without a duet."""


class Record(Attested, kw_only=True, frozen=True):
    """One tenant of one launch: the attested facts, the tenant's own part, and the numbers computed from both.

    The benchmark's arguments stand flat, before everything else. `number` and `repeat` are as carried out, whatever
    was `asked` and `given`.
    """

    arguments: dict[str, Any]
    jr_id: int
    """Number of the tenant, under the original's name."""
    gpu: str
    """Model of the device; without one, of the processor."""
    version: str
    """Hash of the benchmark's source."""
    unique_id: str
    """sha256 of name, source and the arguments that change the work: equal for equal work. Empty if unknown."""
    completed: bool
    """Whether the tenant completed."""
    schema: Literal["cotenant-record-1"] = "cotenant-record-1"
    """Version of this form."""
    unit: str
    """The counted items: `image`, `token` ..."""
    train: Train | None
    """Time of an observation; null without kept observations."""
    train_item: TrainItem | None
    """Rate of an observation, by the original's divisions."""
    batch_loss: list[float | None]
    """The last 100 losses; null if not finite."""
    epoch_loss: list[float | None]
    """The mean loss of each observation."""
    losses_checked: Whole
    """Losses that were checked."""
    losses_non_finite: Whole
    """Checked losses that are NaN or infinite."""
    metrics: dict[str, float | None]
    """Further measurements of the benchmark, by name."""
    ignored: list[str]
    """Flags that were accepted and have no effect."""
    statistics: Description | None
    """The kept observations' rates; null without any."""
    observed: dict[str, Any]
    """The work that really ran: dtype, device, world size, whether compiled and in which mode."""
    kept: Kept | None = None
    """The share of its rate alone that it keeps beside the other tenants, by blocks; null if unknown."""

    @property
    def invalid(self) -> bool:
        """Return whether it completed, but an error finding says that its number does not count."""
        return self.completed and any(finding.severity == "error" for finding in self.findings)

    @property
    def audited(self) -> bool:
        """Return whether our loop observed some of its steps; else only the program itself reports the number."""
        return isinstance(self.observed.get("audit"), dict)

    @property
    def suspect(self) -> bool:
        """Return whether it completed, but a warning says that its number may be disturbed."""
        return self.completed and any(finding.severity == "warning" for finding in self.findings)


_NAMES = frozenset(Record.__struct_fields__)
_FIELDS = msgspec.json.Decoder(dict[str, Any])
_ORIGINAL = (
    *("suite", "name", "run_id", "jr_id", "vcd", "hostname", "gpu", "cpu_cores", "devices", "version", "unique_id"),
    *("suite_start_time", "start_time", "end_time", "completed", "outcome", "message", "schema", "unit"),
    *("train", "train_item", "batch_loss", "epoch_loss", "losses_checked", "losses_non_finite", "metrics", "ignored"),
)
"""The original suite's fields, and ours among them, in the order of a file."""


def known_outcome(outcome: str, message: str) -> tuple[Outcome, str]:
    """Return an outcome of the contract and its message; an unknown outcome becomes a failure that names it."""
    for name in get_args(Outcome):
        if outcome == name:
            return name, message
    return "failed", f"{outcome}: {message}"


def plain_record(record: Record) -> dict[str, Any]:
    """Return the record as it is written: flat arguments first, and only values that JSON can hold.

    If an argument has the name of a field, the field's observed value is written. A number that is not finite becomes
    null; characters that UTF-8 cannot hold, like undecodable bytes of a file's name, become escapes.
    """
    fields: dict[str, Any] = portable(msgspec.to_builtins(record))
    arguments: dict[str, Any] = fields.pop("arguments")
    return arguments | {name: fields.pop(name) for name in _ORIGINAL} | fields


def encode_record(record: Record) -> bytes:
    """Return the content of a record's file: indented JSON."""
    return msgspec.json.format(msgspec.json.encode(plain_record(record)), indent=1) + b"\n"


def restored(content: bytes) -> Record:
    """Return the record in a file that this version wrote. Raises msgspec.DecodeError for any other content."""
    fields = decoded(_FIELDS, content)
    if is_deep(fields):
        raise msgspec.DecodeError(f"it is nested more than {DEEPEST} levels deep")
    return record_of(fields)


def record_of(fields: dict[str, Any]) -> Record:
    """Return the record of a file's fields. Raises msgspec.ValidationError, which names the wrong field."""
    arguments = {name: value for name, value in fields.items() if name not in _NAMES}
    record = msgspec.convert({**fields, "arguments": arguments}, Record)
    if record.completed != (record.outcome == "completed"):
        raise msgspec.ValidationError(f"`completed` is {record.completed}, and `outcome` {record.outcome}")
    return record


def portable(value: Any) -> Any:
    """Return plain values that JSON and UTF-8 can hold: null for a number that is not finite, escapes in texts."""
    if value is None or isinstance(value, int):  # most values of a record
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value if value.isascii() else value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {portable(key): portable(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [portable(inner) for inner in value]
    return value
