"""Makes records from a launch's result."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from statistics import median
from typing import Any

from cotenant.confidential import Conceal, words_without
from cotenant.finding import Finding, error
from cotenant.isolation.backend import Backend
from cotenant.isolation.choose import enabled_by
from cotenant.launch.across import enclosed, other_nodes
from cotenant.launch.conductor import Conducted
from cotenant.launch.design.designs import LEAST_ROUNDS
from cotenant.launch.design.passed import SeenSoFar
from cotenant.launch.design.shared import Design, DuetPlace
from cotenant.launch.device_sharing import shared_device
from cotenant.launch.outcome import LaunchResult, TenantResult
from cotenant.launch.planned import PlannedLaunch, Program
from cotenant.launch.rank import Go
from cotenant.launch.told import Told, told_of
from cotenant.results.build import build_record
from cotenant.results.rates import observed_block_sums
from cotenant.results.record import (
    NO_BLOCKS,
    NOT_ALONE,
    Attested,
    Blocks,
    DuetPart,
    Enclosed,
    Meeting,
    Observed,
    Record,
    known_outcome,
    record_name,
)
from cotenant.stats.duet import DuetRatio
from cotenant.stats.tenants import Span, common_load, overlap, work_beside


@dataclass(frozen=True, slots=True)
class SuiteFacts:
    """Facts common to all launches of a suite run."""

    suite: str
    started: datetime
    uid: int
    machine: dict[str, Any]
    backend: Backend
    policies: dict[str, Any]
    findings: tuple[Finding, ...]
    conceal: Conceal
    run_words: tuple[str, ...]


def records_of(result: LaunchResult, launch: PlannedLaunch, facts: SuiteFacts) -> list[Record]:
    """Return a record for each tenant of the launch."""
    launched = _Launched(result, launch, facts)
    return [
        build_record(launched.attested(number), told.part, facts.conceal) for number, told in enumerate(launched.told)
    ]


class _Launched:
    """The facts of a launch that its tenants share, and each tenant's own."""

    def __init__(self, result: LaunchResult, launch: PlannedLaunch, facts: SuiteFacts) -> None:
        self._result, self._start, self._facts = result, launch, facts
        self.told = [told_of(tenant, result, launch.design.has_parts) for tenant in result.tenants]
        loads = [told.load for told in self.told if told.observations]
        # Tenants that share processors compete from t0 on, whichever gets the first turn. Tenants that settle step from
        # t0 on in whole observations: the first one that counts may begin an observation later than a neighbour's.
        self._together = common_load(loads, _loaded_since(self.told[0].go, launch.sharers)) if loads else (0, 0)
        self._first_start_ns = min((start_ns for start_ns, _ in loads), default=0)
        self._meters = (
            result.meters
            | ({"nodes": nodes} if (nodes := other_nodes(result.tenants[0])) else {})
            | ({"beside": beside} if (beside := _work_beside(result, self.told, launch)) else {})
        )
        self._findings = [*facts.findings, *_findings(result, launch)]
        self._comparable = all(tenant.outcome == "completed" for tenant in result.tenants)
        observations = [told.observations for told in self.told]
        self._ratio = _duet_ratio(result, observations, launch.design) if self._comparable else None

    def attested(self, number: int) -> Attested:
        """Return the facts of the `number`-th tenant."""
        result, launch, facts, told = self._result, self._start, self._facts, self.told[number]
        tenant, program, conducted = result.tenants[number], launch.programs[number], result.conducted
        spec, cells = tenant.spec, [program.cell.label for program in launch.programs]
        slice_ = replace(spec.slice, tenant=number) if launch.is_part else spec.slice
        outcome, message = known_outcome(tenant.outcome, tenant.message)
        command = spec.foreign.words_of(slice_.tenant, facts.uid) if spec.foreign else spec.command
        return Attested(
            suite=facts.suite,
            name=record_name(program.cell.label, launch.solo, launch.mix),
            run_id=facts.uid,
            vcd=",".join(str(device.index) for device in slice_.accelerators) or str(slice_.tenant),
            hostname=facts.machine["hostname"],
            cpu_cores=len(slice_.processors),
            devices=len(slice_.accelerators),
            suite_start_time=facts.started.isoformat(),
            start_time=result.started.isoformat(),
            end_time=result.ended.isoformat(),
            outcome=outcome,
            message=message,
            tenant=slice_.tenant,
            tenants=len(cells),
            sharers=launch.sharers,
            share=shared_device(slice_, [other.slice for other in launch.specs], told.part.observed, result.meters),
            solo=launch.solo,
            baseline=launch.baseline,
            stands_for=[*launch.stands_for],
            mix=launch.mix,
            neighbours=sorted(cells[:number] + cells[number + 1 :]) if launch.mix else [],
            group=program.cell.job.group,
            skip=told.skip,
            asked=told.asked,
            given=told.given,
            comparable=self._comparable,
            command=command,
            run_words=[*facts.run_words],
            log=str(spec.log),
            observations=told.observations,
            rank_observations=told.by_rank,
            rendezvous=_meeting(told, self._together, self._first_start_ns),
            isolation=_enclosed(tenant, program, launch.sharers, facts),
            machine=facts.machine,
            meters=self._meters,
            findings=self._findings,
            blocks=None
            if conducted is None or told.first is None
            else _blocks(conducted, spec.slice.tenant, launch.design.has_parts),
            duet=_duet_part(launch.design.place(spec.slice.tenant), program, self._ratio),
        )


def _meeting(told: Told, together: Span, first_start_ns: int) -> Meeting | None:
    """Return the facts of a tenant's common load with the others, `together`; None if it has no rate."""
    measured = told.rated
    if not measured or told.first is None:
        return None
    start_ns, end_ns = told.load
    return Meeting(
        ready_ns=told.first.ready_ns,
        t0_ns=told.go.t0_ns if told.go else 0,
        start_ns=start_ns,
        load_end_ns=end_ns,
        overlap=overlap([(made.start_ns, made.end_ns) for made in measured], together),
        start_skew_ns=start_ns - first_start_ns,
        warm_up_ns=told.first.ready.warm_up_ns if told.first.ready else [],
        late_ns=told.late_ns,
    )


def _enclosed(tenant: TenantResult, program: Program, sharers: int, facts: SuiteFacts) -> Enclosed:
    held = enclosed(tenant.spec, tenant.read_back, facts.backend, sharers)
    uncounted = tenant.after.uncounted()
    return Enclosed(
        **held,
        counters=asdict(tenant.after.since(tenant.before)),
        uncounted=uncounted,
        enabled_by=enabled_by(facts.backend.name, [*held["unenforced"], *uncounted]),
        policies=facts.policies | ({"memory_class": program.size.memory_class} if program.size else {}),
    )


def _duet_part(place: DuetPlace | None, program: Program, ratio: DuetRatio | None) -> DuetPart | None:
    return None if place is None else DuetPart(place.side, place.slice, words_without(program.extra), ratio)


def _loaded_since(go: Go | None, sharers: int) -> int | None:
    return go.t0_ns if go is not None and (sharers > 1 or go.settle_ns) else None


def _work_beside(result: LaunchResult, told: Sequence[Told], launch: PlannedLaunch) -> list[dict[str, Any]]:
    """Return the work of each tenant that completed, in its own observations and while others were observed."""
    spans, go = [[(made.start_ns, made.end_ns) for made in account.rated] for account in told], told[0].go
    seen = []
    for place, (tenant, account) in enumerate(zip(result.tenants, told, strict=True)):
        if tenant.outcome != "completed" or go is None:
            continue
        beside = [
            theirs for other, theirs in enumerate(spans) if other != place and launch.design.are_beside(place, other)
        ]
        others = [*itertools.chain.from_iterable(beside)]
        begin_ns, end_ns = account.load
        claimed = min(begin_ns, _loaded_since(go, launch.sharers) or begin_ns), end_ns
        slice_ = tenant.spec.slice
        work = work_beside(result.work.get(slice_.tenant, ()), spans[place], claimed, others)
        if work is not None and others:
            number = place if launch.is_part else slice_.tenant
            seen.append({"tenant": number, "by": "processors"} | asdict(work))
    return seen


def _findings(result: LaunchResult, launch: PlannedLaunch) -> Iterator[Finding]:
    """Yield the findings on a launch that all its tenants share."""
    for change in result.changes:
        # One tenant's gain may be its neighbours' loss.
        remedy = "Find what writes to cgroups there: root and the owner of a slice can, another user cannot."
        yield error(f"The slices did not stay as planned: {change}.", remedy, rule="slice_changed")
    if result.unconducted:
        yield Finding(
            NO_BLOCKS,
            "info",
            f"The rates that users keep beside each other are not measured by blocks here: {result.unconducted}.",
            "Instead a user of each job and kind of slice goes on alone for a few seconds at a launch's end. A larger "
            "--budget, or a smaller batch, may allow blocks; --baseline whole measures each user alone for as long.",
        )
    for index, why in ({} if result.went_on is None else result.went_on.missed).items():
        yield Finding(
            NOT_ALONE,
            "info",
            f"The rate that users like user {index} keep is unknown: it was not observed alone, as {why}.",
            "Use --baseline whole, which launches each user alone.",
        )
    if launch.is_part and result.conducted is not None and result.conducted.complete:
        yield from _unmet(result, result.conducted)


def _unmet(result: LaunchResult, conducted: Conducted) -> Iterator[Finding]:
    """Yield an error on users that have not met, although all blocks have passed."""
    if any(one.block.awake.keys() == conducted.members for one in conducted.passed):
        return
    rows = {tenant.spec.slice.tenant: tenant.ranks[0].observations for tenant in result.tenants}
    seen = SeenSoFar(conducted.passed, rows, {tenant: go.given.number for tenant, go in result.gos.items()})
    step_s = max(seen.steps_alone_ns().values(), default=0) / 1e9
    yield error(
        f"These users never met: {LEAST_ROUNDS} rounds with a step of {step_s:.2g} s would have ended behind the "
        "launch's time limit.",
        "Give a longer --timeout, or --baseline whole, which launches each pair by itself.",
        rule="pair_unmet",
    )


def _blocks(conducted: Conducted, tenant: int, has_parts: bool) -> Blocks:
    borders_ns = conducted.borders_ns or [0]
    return Blocks(
        rounds=conducted.rounds,
        passed=len(conducted.passed),
        void=sum(one.void for one in conducted.passed),
        held_by=conducted.held_by,
        border_p50_ns=round(median(borders_ns)),
        border_longest_ns=max(borders_ns),
        spent=conducted.spent_of(tenant),
        unheld=conducted.unheld[tenant],
        residents=conducted.residents if has_parts else None,
        complete=conducted.complete,
    )


def _duet_ratio(result: LaunchResult, of_tenants: Sequence[Sequence[Observed]], design: Design) -> DuetRatio | None:
    """Return the ratio of a launch's duet; None if it is no duet, or if a block has impossible observations."""
    sums = {number: observed_block_sums(observations) for number, observations in enumerate(of_tenants)}
    possible = {number: summed for number, summed in sums.items() if summed is not None}
    if result.conducted is None or len(possible) < len(sums):
        return None
    return design.ratio(possible, result.conducted.passed)
