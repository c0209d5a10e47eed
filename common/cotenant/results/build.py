"""One place that makes a Record: of a tenant under a runner, and of a benchmark that ran alone."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from cotenant.finding import Finding
from cotenant.results.identity import unique_id
from cotenant.results.measured import measured
from cotenant.results.record import SOLO, Enclosed, Meeting, Observed, Record, known_outcome
from cotenant.results.said import Said, said
from cotenant.results.utilisation import utilisation
from cotenant.stats.budget import Amount
from cotenant.stats.tenants import Span, overlap

LOSSES_KEPT = 100


@dataclass(frozen=True, slots=True)
class Place:
    """Where and as what a tenant ran: everything known without asking it. `vcd`, `devices`: of its slice."""

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


@dataclass(frozen=True)
class Told:
    """What a tenant said of itself: its observations per rank, and its part of the record (may be empty)."""

    ready_ns: int = 0
    skip: int = 0
    asked: Amount | None = None
    given: Amount | None = None
    warm_up_ns: list[int] = field(default_factory=list)
    observations: list[Observed] = field(default_factory=list)
    rank_observations: dict[str, list[Observed]] = field(default_factory=dict)
    part: dict[str, Any] = field(default_factory=dict)

    @functools.cached_property
    def said(self) -> Said:
        return said(self.part)

    @property
    def kept(self) -> list[Observed]:
        return self.observations[max(0, self.skip) :]

    @property
    def done(self) -> Amount | None:
        """What was given, with the observations that were made of it: they may have been enough before the last."""
        return self.given and replace(self.given, repeat=len(self.observations))

    def load(self) -> Span:
        """Return when this tenant's load began and ended, as far as it is known."""
        if not self.observations:
            return (0, 0)
        return self.observations[0].start_ns, max(self.observations[-1].end_ns, self.said.load_end_ns)


@dataclass(frozen=True, slots=True)
class Common:
    """What all tenants of a launch share: t0, the earliest real start, the common load, the runner's meters."""

    started: datetime
    ended: datetime
    t0_ns: int
    first_start_ns: int
    load: Span
    meters: dict[str, Any]
    findings: tuple[Finding, ...] = ()


def build_record(place: Place, told: Told, common: Common, outcome: str, message: str, comparable: bool) -> Record:
    """Return the record, before any rule. One that did not complete has observations, and no numbers of them."""
    part = told.said
    ended, message = known_outcome(outcome, message)
    completed = ended == "completed"
    train, train_item, statistics = measured(told.kept) if completed else (None, None, None)
    gpu, (vcd, devices) = _gpu(place, part), _trained(place, part)
    arguments = part.given_arguments(told.done if completed else told.given)
    compute = utilisation(part, arguments.get("number"), told.kept, gpu) if completed else {}
    return Record(
        arguments=arguments,
        suite=place.suite,
        name=place.name + SOLO if place.solo else place.name,
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
        solo=place.solo,
        group=place.group,
        skip=max(0, told.skip),
        asked=told.asked,
        given=told.given,
        comparable=comparable,
        command=place.command,
        log=place.log,
        observations=told.observations,
        rank_observations=told.rank_observations,
        statistics=statistics,
        rendezvous=_meeting(told, common),
        isolation=place.isolation,
        machine=place.machine | {"torch": part.torch},
        meters=common.meters | {"device_memory": part.device_memory} | ({"compute": compute} if compute else {}),
        observed=part.observed,
        findings=[*common.findings, *part.findings],
    )


def _trained(place: Place, part: Said) -> tuple[str, int]:
    """Return `vcd` and `devices` of what trained: of the slice's devices the first, one for each rank or replica."""
    ranks, replicas = part.observed.get("world_size"), part.observed.get("replicas", 1)
    if part.observed.get("device", "cpu") == "cpu" or not isinstance(ranks, int) or not isinstance(replicas, int):
        return place.vcd, place.devices
    used = max(1, ranks, replicas)
    return (",".join(place.vcd.split(",")[:used]), used) if used < place.devices else (place.vcd, place.devices)


def _gpu(place: Place, part: Said) -> str:
    """Return what it ran on; of a tenant that cannot say, its slice's accelerator, else the host's processor."""
    planned = place.isolation.planned.get("accelerators", [])
    owned = [one["name"] for one in place.machine.get("accelerators", []) if one["uuid"] in planned]
    if part.gpu or (owned and part.observed.get("device") != "cpu"):
        return part.gpu or str(owned[0])
    return str(place.machine.get("model_name", ""))


def _meeting(told: Told, common: Common) -> Meeting | None:
    if not told.kept or not all(one.possible for one in told.kept):
        return None
    start_ns, end_ns = told.load()
    return Meeting(
        ready_ns=told.ready_ns,
        t0_ns=common.t0_ns,
        start_ns=start_ns,
        load_end_ns=end_ns,
        overlap=overlap([(one.start_ns, one.end_ns) for one in told.kept], common.load),
        start_skew_ns=start_ns - common.first_start_ns,
        warm_up_ns=told.warm_up_ns,
    )
