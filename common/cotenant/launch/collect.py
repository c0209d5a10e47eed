"""From a launch's result to its records."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cotenant.finding import Finding
from cotenant.isolation.backend import Backend, expected
from cotenant.isolation.enabling import enabled_by
from cotenant.isolation.plan import Slice
from cotenant.launch.crashed import crashed
from cotenant.launch.ending import Ending, LaunchResult
from cotenant.launch.start import Start
from cotenant.results.build import Common, Place, Told, build_record
from cotenant.results.ranks import observed_by_ranks
from cotenant.results.record import Enclosed, Record
from cotenant.stats.budget import Amount
from cotenant.stats.overlap import common_load


@dataclass(frozen=True, slots=True)
class SuiteFacts:
    """What all launches of a suite run share."""

    suite: str
    started: datetime
    uid: int
    machine: dict[str, Any]
    backend: Backend
    policies: dict[str, Any]
    findings: tuple[Finding, ...]


def records_of(result: LaunchResult, start: Start, facts: SuiteFacts) -> list[Record]:
    """Return a record per tenant of the launch."""
    told = [_told(ending, result.given) for ending in result.endings]
    loads = [one.load() for one in told if one.observations]
    common = Common(
        started=result.started,
        ended=result.ended,
        t0_ns=result.t0_ns,
        first_start_ns=min((start_ns for start_ns, _ in loads), default=0),
        load=common_load(loads) if loads else (0, 0),
        meters=result.meters,
        findings=facts.findings,
    )
    comparable = all(ending.outcome == "completed" for ending in result.endings)
    return [
        build_record(
            _place(ending, len(result.endings), start, facts),
            one,
            common,
            ending.outcome,
            ending.message,
            comparable,
        )
        for ending, one in zip(result.endings, told, strict=True)
    ]


def _told(ending: Ending, given: Amount | None) -> Told:
    """Rank 0 speaks for its tenant, and its clock counts; the items are those of all ranks, whose rows are kept too.

    For a program that never joined its log speaks.
    """
    ranks = ending.ranks
    first = ranks.get(0)
    if first is None:
        found = crashed(ending.order.log) if ending.outcome == "completed" else None
        return Told(part={"findings": [dataclasses.asdict(found)]} if found else {})
    amount = given or first.asked
    observations, by_rank = observed_by_ranks({number: rank.observations for number, rank in ranks.items()})
    return Told(
        ready_ns=first.ready_ns,
        skip=amount.skip if amount else 0,
        asked=first.asked,
        given=given,
        warm_up_ns=first.ready["warm_up_ns"] if first.ready else [],
        observations=observations,
        rank_observations=by_rank,
        part=first.work | (first.record or {}),
    )


def _place(ending: Ending, tenants: int, start: Start, facts: SuiteFacts) -> Place:
    slice_ = ending.order.slice
    unenforced, uncounted = list(facts.backend.unenforced), ending.after.uncounted()
    return Place(
        suite=facts.suite,
        name=start.cell.label,
        run_id=facts.uid,
        tenant=slice_.tenant,
        tenants=tenants,
        group=start.cell.job.group,
        vcd=visible_devices(slice_),
        hostname=facts.machine["hostname"],
        cpu_cores=len(slice_.processors),
        devices=len(slice_.accelerators),
        command=ending.order.command,
        log=str(ending.order.log),
        machine=facts.machine,
        isolation=Enclosed(
            backend=facts.backend.name,
            planned=expected(slice_),
            read_back=dataclasses.asdict(ending.read_back),
            counters=dataclasses.asdict(ending.after.since(ending.before)),
            unenforced=unenforced,
            uncounted=uncounted,
            enabled_by=enabled_by(facts.backend.name, [*unenforced, *uncounted]),
            policies=facts.policies,
        ),
        suite_started=facts.started,
        solo=start.solo,
    )


def visible_devices(slice_: Slice) -> str:
    """Return the indices of a slice's devices, `0,1`; without any, the tenant's number."""
    return ",".join(str(accelerator.index) for accelerator in slice_.accelerators) or str(slice_.tenant)
