"""Builds a Record from a tenant's statement and its runner's facts; also that of a benchmark that ran alone.

Any program may speak the rendezvous, so its own part of the record is checked first.
"""

from __future__ import annotations

import functools
import itertools
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from statistics import median, pstdev
from typing import Any

import msgspec

from cotenant.confidential import Conceal, arguments_without, by_new_key, words_without
from cotenant.finding import Finding, by_benchmark
from cotenant.machine.accelerators import peak_of
from cotenant.results.identity import unique_id
from cotenant.results.record import (
    Baseline,
    Blocks,
    DuetPart,
    Enclosed,
    Meeting,
    Nanoseconds,
    Observed,
    Record,
    SharedDevice,
    Train,
    TrainItem,
    counts,
    known_outcome,
    name_of,
    rated,
)
from cotenant.stats.budget import Amount
from cotenant.stats.describe import Description, describe
from cotenant.stats.kept import BlockSum, Kept, kept
from cotenant.stats.kept import block_sums as sums_of_blocks
from cotenant.stats.quantiles import quantile
from cotenant.stats.tenants import Span, overlap
from cotenant.text import listed

LOSSES_KEPT = 100
STEP_QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
VENDOR_WORDS = {"nvidia", "amd", "intel", "r", "corporation", "tm"}
MAKERS = {"amd": {"amd", "radeon", "instinct"}, "intel": {"intel"}}
"""Words of torch's names for devices which the kernel may call otherwise: `ip discovery`, `Intel GPU 8086:0bd5`."""
LIKE = 1.01
"""The largest ratio between a device's clock and the host's (`clocks`)."""


class TenantPart(msgspec.Struct, frozen=True):
    """A tenant's statement at its end. A program leaves out facts that it does not know; other keys are dropped."""

    arguments: dict[str, Any] = {}
    ignored: list[str] = []
    item: str = ""
    version: str = ""
    number: int | None = None
    repeat: int | None = None
    load_end_ns: int = 0
    gpu: str = ""
    batch_loss: list[float | None] = []
    epoch_loss: list[float | None] = []
    losses_checked: int = 0
    losses_non_finite: int = 0
    metrics: dict[str, float | None] = {}
    device_memory: dict[str, Any] = {}
    observed: dict[str, Any] = {}
    torch: dict[str, Any] = {}
    findings: list[Finding] = []

    def given_arguments(self, seen: Amount | None) -> dict[str, Any]:
        """Return the arguments as they were carried out, with the `number` and `repeat` that this program reports.

        If it only has them among its arguments, they are those that its runner has `seen`. With several ranks or
        replicas, `batch_size` is that of all together, and `batch_size_per_device` is added.
        """
        by_runner = {"number": seen.number, "repeat": seen.repeat} if seen else {}
        by_itself = {"number": self.number, "repeat": self.repeat}
        done = {name: value for name, value in by_runner.items() if name in self.arguments}
        done |= {name: value for name, value in by_itself.items() if value is not None}
        world, batch_size = self.observed.get("world_size"), self.arguments.get("batch_size")
        if isinstance(world, int) and isinstance(batch_size, int) and world > 1:
            done |= {"batch_size": batch_size * world, "batch_size_per_device": batch_size}
        replicas = self.observed.get("replicas")
        if isinstance(replicas, int) and isinstance(batch_size, int) and replicas > 1:
            done |= {"batch_size_per_device": batch_size // replicas}
        return self.arguments | done


def tenant_part(part: dict[str, Any]) -> TenantPart:
    """Return the content of `part`, with its findings marked as the program's own; if it is malformed, only an error
    finding that names the wrong field."""
    try:
        stated = msgspec.convert(part, TenantPart)
        return msgspec.structs.replace(stated, findings=by_benchmark(stated.findings))
    except msgspec.ValidationError as error:
        finding = Finding(
            "malformed_part",
            "error",
            f"What this program reported of its run cannot be kept: {error}.",
            "Send a `record` message whose fields have the types of record.schema.json.",
        )
        return TenantPart(findings=[finding])


def observed_by_ranks(
    messages: Mapping[int, Sequence[dict[str, Any]]],
) -> tuple[list[Observed], dict[str, list[Observed]]]:
    """Return a tenant's observations, and if there are several ranks, those of each rank by its number.

    `messages` holds the fields of every rank's observations, by its number. The tenant's have the lowest rank's times
    and the items of all ranks, and are as many as every rank has made.
    """
    seen = {number: [Observed.of_message(fields) for fields in rows] for number, rows in sorted(messages.items())}
    ranks = list(seen.values())
    if len(ranks) == 1:
        return ranks[0], {}
    rows = zip(*ranks, strict=False)
    summed = [msgspec.structs.replace(row[0], items=sum(rank.items or 0 for rank in row)) for row in rows]
    return summed, {str(number): rows for number, rows in seen.items()}


@dataclass(frozen=True, slots=True)
class Placement:
    """The place and role of a tenant, as its runner knows them. `vcd` and `devices` are those of its slice."""

    suite: str
    name: str
    run_id: int
    tenant: int
    tenants: int
    group: str
    vcd: str
    hostname: str
    cpu_cores: int
    devices: int
    command: list[str]
    log: str
    machine: dict[str, Any]
    isolation: Enclosed
    suite_started: datetime | None = None
    solo: bool = False
    baseline: Baseline | None = None
    stands_for: list[int] = field(default_factory=list)
    sharers: int = 1
    share: SharedDevice | None = None
    mix: str = ""
    neighbours: list[str] = field(default_factory=list)
    duet: DuetPart | None = None
    run_words: Sequence[str] = ()


@dataclass(frozen=True)
class Statement:
    """The messages of a tenant: its observations per rank, and its part of the record (may be empty)."""

    ready_ns: int = 0
    skip: int = 0
    asked: Amount | None = None
    given: Amount | None = None
    warm_up_ns: list[int] = field(default_factory=list)
    late_ns: int = 0
    observations: list[Observed] = field(default_factory=list)
    rank_observations: dict[str, list[Observed]] = field(default_factory=dict)
    part: dict[str, Any] = field(default_factory=dict)
    stop_ns: int = 0
    """When its runner sent STOP; 0 without a runner or a STOP."""
    blocks: Blocks | None = None
    kept: Kept | None = None

    @functools.cached_property
    def checked(self) -> TenantPart:
        return tenant_part(self.part)

    @property
    def kept_observations(self) -> list[Observed]:
        """The observations that count; none if one of them is impossible."""
        return rated(self.observations, self.skip)

    @property
    def done(self) -> Amount | None:
        """The amount that was given, with the observations made and left out: they may have ended early."""
        return self.given and replace(self.given, repeat=len(self.observations), skip=self.skip)

    def load(self) -> Span:
        """Return when this tenant's load began and ended; never after STOP, even if the tenant reports a later end."""
        if not self.observations:
            return (0, 0)
        said_ns = self.checked.load_end_ns
        end_ns = min(said_ns, self.stop_ns) if self.stop_ns else said_ns
        return self.observations[0].start_ns, max(self.observations[-1].end_ns, end_ns)


@dataclass(frozen=True, slots=True)
class Common:
    """Facts that all tenants of a launch share: t0, the earliest real start, the common load, the runner's meters."""

    started: datetime
    ended: datetime
    t0_ns: int
    first_start_ns: int
    load: Span
    meters: dict[str, Any]
    findings: tuple[Finding, ...] = ()
    conceal: Conceal = field(default_factory=by_new_key)
    """Turns a confidential argument into a value that a record may hold, the same for all launches of a suite."""


def build_record(
    place: Placement, statement: Statement, common: Common, outcome: str, message: str, comparable: bool
) -> Record:
    """Return the record, before any rule. A tenant that did not complete has observations, but no rates."""
    part = statement.checked
    ended, message = known_outcome(outcome, message)
    completed = ended == "completed"
    train, train_item, statistics = numbers_of(statement.kept_observations if completed else [])
    (gpu, foreign), (vcd, devices) = _gpu(place, part), _trained(place, part)
    arguments = arguments_without(
        part.given_arguments(statement.done if completed else statement.given), common.conceal
    )
    observations = [
        made if made.kept is not None else msgspec.structs.replace(made, kept=flag)
        for made, flag in zip(statement.observations, counts(statement.observations, statement.skip), strict=True)
    ]
    record = Record(
        arguments=arguments,
        suite=place.suite,
        name=name_of(place.name, place.solo, place.mix),
        run_id=place.run_id,
        jr_id=place.tenant,
        vcd=vcd,
        hostname=place.hostname,
        gpu=gpu,
        cpu_cores=place.cpu_cores,
        devices=devices,
        version=part.version,
        unique_id=unique_id(place.name, part.version, part.arguments),
        suite_start_time=place.suite_started.isoformat() if place.suite_started else "",
        start_time=common.started.isoformat(),
        end_time=common.ended.isoformat(),
        completed=completed,
        outcome=ended,
        message=message,
        unit=part.item,
        train=train,
        train_item=train_item,
        batch_loss=part.batch_loss[-LOSSES_KEPT:],
        epoch_loss=part.epoch_loss,
        losses_checked=part.losses_checked,
        losses_non_finite=part.losses_non_finite,
        metrics=part.metrics,
        ignored=part.ignored,
        tenant=place.tenant,
        tenants=place.tenants,
        sharers=place.sharers,
        share=place.share,
        solo=place.solo,
        baseline=place.baseline,
        stands_for=place.stands_for,
        mix=place.mix,
        neighbours=place.neighbours,
        group=place.group,
        skip=max(0, statement.skip),
        asked=statement.asked,
        given=statement.given,
        comparable=comparable,
        command=words_without(place.command, common.conceal),
        run_words=words_without(place.run_words, common.conceal),
        log=place.log,
        observations=observations,
        rank_observations=statement.rank_observations,
        statistics=statistics,
        rendezvous=_meeting(statement, common),
        isolation=place.isolation,
        machine=place.machine | {"torch": part.torch} | _callers_software(place.machine, part.torch),
        meters=common.meters | {"device_memory": part.device_memory},
        observed=part.observed,
        findings=[*common.findings, *part.findings, *foreign],
        blocks=statement.blocks,
        kept=statement.kept if completed else None,
        duet=place.duet,
    )
    return msgspec.structs.replace(record, meters=record.meters | meters_of(record))


def _callers_software(machine: Mapping[str, Any], torch: Mapping[str, Any]) -> dict[str, Any]:
    """Return `software` without the runner's own, of a program whose interpreter is the caller's."""
    if "interpreter" not in torch:
        return {}
    packages = {"torch": torch["version"]} if "version" in torch else {}
    return {"software": {**machine.get("software", {}), "python": torch.get("python"), "packages": packages}}


def _trained(place: Placement, part: TenantPart) -> tuple[str, int]:
    """Return `vcd` and `devices` of the training: the first devices of the slice, one for each rank or replica."""
    ranks, replicas = part.observed.get("world_size"), part.observed.get("replicas", 1)
    if part.observed.get("device", "cpu") == "cpu" or not isinstance(ranks, int) or not isinstance(replicas, int):
        return place.vcd, place.devices
    used = max(1, ranks, replicas)
    return (",".join(place.vcd.split(",")[:used]), used) if used < place.devices else (place.vcd, place.devices)


def _gpu(place: Placement, part: TenantPart) -> tuple[str, list[Finding]]:
    """Return the name of the device that a tenant ran on; if it reports none, its slice's accelerator, else the host's
    processor.

    A tenant that reports a device which its slice lacks gets a finding. A benchmark alone has no slice.
    """
    planned, processor = place.isolation.planned.get("accelerators"), str(place.machine.get("model_name", ""))
    if planned is None:
        return part.gpu or processor, []
    devices = [device for device in place.machine.get("accelerators", []) if device["uuid"] in planned]
    owned = [str(device["name"]) for device in devices]
    if part.gpu and not any(_may_be(part.gpu, device) for device in devices):
        finding = Finding(
            "foreign_device",
            "error",
            f"It says that it ran on {part.gpu}, and its slice has {listed(owned) or 'no device'}.",
            "Leave `gpu` out of what a program says where it ran on the processor; --cuda of ours asks for a device.",
        )
        return owned[0] if owned else processor, [finding]
    on_device = owned and part.observed.get("device") != "cpu"
    return part.gpu or (owned[0] if on_device else processor), []


def _may_be(said: str, device: Mapping[str, Any]) -> bool:
    """Return whether torch and the driver may mean one device: only vendor words or an instance's size may differ.

    Of a device whose driver in the kernel tells no product's name, the maker is all that can be compared.
    """
    words, known = ({*re.split(r"[\W_]+", name.casefold())} - {""} for name in (said, str(device["name"])))
    models = words - VENDOR_WORDS, known - VENDOR_WORDS
    if models[0] <= models[1] or models[1] <= models[0]:
        return True
    makers = MAKERS.get(device.get("vendor", ""), set())
    if not makers & words:
        return False
    products = makers - VENDOR_WORDS
    # AMD's own words for a board: torch's MI250X/MI250 is an `INSTINCT MI250 (MCM) OAM AC MBA`.
    numbers = {word for word in models[0] & models[1] if any(map(str.isdigit, word))}
    return bool(numbers) or not products & known


def _meeting(statement: Statement, common: Common) -> Meeting | None:
    measured = statement.kept_observations
    if not measured:
        return None
    start_ns, end_ns = statement.load()
    return Meeting(
        ready_ns=statement.ready_ns,
        t0_ns=common.t0_ns,
        start_ns=start_ns,
        load_end_ns=end_ns,
        overlap=overlap([(observed.start_ns, observed.end_ns) for observed in measured], common.load),
        start_skew_ns=start_ns - common.first_start_ns,
        warm_up_ns=statement.warm_up_ns,
        late_ns=statement.late_ns,
    )


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
    """Return the share of its rate alone that a tenant keeps, by the blocks of its observations; None without blocks,
    or if an observation is impossible."""
    sums = block_sums(observations)
    return None if sums is None else kept(sums)


def block_sums(observations: Sequence[Observed]) -> list[BlockSum] | None:
    """Return the sums of the kept observations of each block, in order of time; None if one is impossible."""
    rows = [made for made in observations if made.kept and made.block is not None]
    if not all(made.possible for made in rows):
        return None
    return sums_of_blocks((made.block or 0, made.kind == "only", made.items or 0.0, made.took_ns) for made in rows)


def meters_of(record: Record) -> dict[str, dict[str, Any]]:
    """Return `compute`, `steps` and `steps_alone` for a record's meters, from its observations and `observed` facts.

    A part without any data is left out, and all of them if the tenant did not complete; `steps_alone` is of blocks in
    which the tenant was alone.
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
    """Return quantiles, with intervals, of the times of all steps in observations whose flag is set.

    It is empty if a benchmark times no steps, or if the steps do not fit into their observations.
    """
    try:
        steps_ns = msgspec.convert(record.observed.get("steps_ns"), list[list[Nanoseconds]])
    except msgspec.ValidationError:
        return {}
    kept_steps = [*itertools.compress(steps_ns, flags)]
    spans = [each.end_ns - each.start_ns for each in itertools.compress(record.observations, flags)]
    times = [ns for steps in kept_steps for ns in steps]
    too_long = map(operator.gt, map(sum, kept_steps), (LIKE * ns for ns in spans))
    if not times or len(steps_ns) != len(flags) or any(too_long):
        return {}
    quantiles = {name: quantile(times, q) for name, q in STEP_QUANTILES.items()}
    return {
        "n": len(times),
        **{f"{name}_ns": of.value for name, of in quantiles.items()},
        **{f"{name}_interval_ns": of.interval for name, of in quantiles.items()},
    }


def _utilisation(record: Record, measured: Sequence[Observed]) -> dict[str, Any]:
    """Return `compute` for a record's meters: the MFU of one device (Chowdhery et al. 2022, PaLM, appendix B).

    It is empty if operations, time or the number of steps in an observation are not known. `mfu` is null for a device
    without a known peak in the observed precision. With several ranks it is that of the first rank on its own device.
    `mfu_least` is its value if convolutions that can be computed with fewer products took a quarter of them.
    """
    observed, number = record.observed, record.arguments.get("number")
    flops = observed.get("flops_per_step")
    if not measured or not isinstance(flops, (int, float)) or not isinstance(number, int) or flops <= 0 or number <= 0:
        return {}
    reducible = observed.get("flops_reducible")
    least = 1 - 0.75 * min(1.0, reducible / flops) if isinstance(reducible, (int, float)) and reducible > 0 else 1.0
    tflops = flops * number / median(each.took_ns for each in measured) / 1e3
    precision, on_processor = observed.get("dtype"), observed.get("device") == "cpu"
    peak = None if on_processor or not isinstance(precision, str) else peak_of(record.gpu, precision)
    return {
        "tflops": tflops,
        "peak_tflops": peak and peak.tflops,
        "peak_source": peak and peak.source,
        "mfu": peak and tflops / peak.tflops,
        "mfu_least": peak and least * tflops / peak.tflops,
    }
