"""One place that makes a Record: of a tenant under a runner, and of a benchmark that ran alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from cotenant.findings.finding import Finding
from cotenant.findings.rules import findings_of
from cotenant.results.identity import unique_id
from cotenant.results.measured import measured
from cotenant.results.record import Enclosed, Meeting, Observed, Record
from cotenant.stats.overlap import Span, overlap


@dataclass(frozen=True, slots=True)
class Place:
    """Where and as what a tenant ran: everything known without asking it."""

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


@dataclass(slots=True)
class Told:
    """What a tenant said of itself: its observations per rank, and its part of the record (may be empty)."""

    ready_ns: int = 0
    skip: int = 0
    warm_up_ns: list[int] = field(default_factory=list)
    observations: list[Observed] = field(default_factory=list)
    rank_observations: dict[str, list[Observed]] = field(default_factory=dict)
    part: dict[str, Any] = field(default_factory=dict)

    def load(self) -> Span:
        """Return when this tenant's load began and ended, as far as it is known."""
        if not self.observations:
            return (0, 0)
        last_ns = self.observations[-1].end_ns
        return self.observations[0].start_ns, max(last_ns, self.part.get("load_end_ns", last_ns))


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
    """Return the record, its findings included."""
    part = told.part
    numbers = measured(told.observations, told.skip)
    arguments = part.get("arguments", {})
    version = part.get("version", "")
    given = [Finding(**finding) for finding in part.get("findings", [])]
    record = Record(
        arguments=arguments,
        suite=place.suite,
        name=place.name,
        run_id=place.run_id,
        jr_id=place.tenant,
        vcd=place.vcd,
        hostname=place.hostname,
        gpu=part.get("gpu") or place.machine.get("model_name", ""),
        cpu_cores=place.cpu_cores,
        devices=place.devices,
        version=version,
        unique_id=unique_id(place.name, version, arguments),
        start_time=common.started.isoformat(),
        end_time=common.ended.isoformat(),
        completed=outcome == "completed",
        outcome=outcome,
        message=message,
        unit=part.get("item", ""),
        train=numbers and numbers[0],
        train_item=numbers and numbers[1],
        batch_loss=part.get("batch_loss", []),
        epoch_loss=part.get("epoch_loss", []),
        losses_checked=part.get("losses_checked", 0),
        losses_non_finite=part.get("losses_non_finite", 0),
        metrics=part.get("metrics", {}),
        ignored=part.get("ignored", []),
        tenant=place.tenant,
        tenants=place.tenants,
        group=place.group,
        skip=told.skip,
        comparable=comparable,
        command=place.command,
        log=place.log,
        observations=told.observations,
        rank_observations=told.rank_observations,
        statistics=numbers and numbers[2],
        rendezvous=_meeting(told, common),
        isolation=place.isolation,
        machine=place.machine | {"torch": part.get("torch", {})},
        meters=common.meters | {"device_memory": part.get("device_memory", {})},
        observed=part.get("observed", {}),
        findings=[*common.findings, *given],
    )
    return msgspec.structs.replace(record, findings=[*record.findings, *findings_of(record)])


def _meeting(told: Told, common: Common) -> Meeting | None:
    kept = told.observations[told.skip :]
    if not kept:
        return None
    start_ns, end_ns = told.load()
    return Meeting(
        ready_ns=told.ready_ns,
        t0_ns=common.t0_ns,
        start_ns=start_ns,
        load_end_ns=end_ns,
        overlap=overlap([(one.start_ns, one.end_ns) for one in kept], common.load),
        start_skew_ns=start_ns - common.first_start_ns,
        warm_up_ns=told.warm_up_ns,
    )
