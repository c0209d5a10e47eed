"""Makes records from a launch's result."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from statistics import median
from typing import Any

import msgspec

from cotenant.confidential import Conceal, words_without
from cotenant.finding import Finding, error
from cotenant.isolation.backend import Backend
from cotenant.isolation.choose import enabled_by
from cotenant.launch.across import enclosed, other_nodes
from cotenant.launch.alone import TurnAlone
from cotenant.launch.conductor import Conducted
from cotenant.launch.design.designs import LEAST_ROUNDS
from cotenant.launch.design.passed import Seen, places
from cotenant.launch.device_sharing import shared_device
from cotenant.launch.outcome import LaunchResult, TenantResult
from cotenant.launch.planned import PlannedLaunch
from cotenant.launch.rendezvous import Go
from cotenant.launch.tenant import TenantSpec
from cotenant.procfs import format_list
from cotenant.results.build import (
    Common,
    Placement,
    Statement,
    block_sums,
    build_record,
    kept_by_blocks,
    observed_by_ranks,
)
from cotenant.results.decoded import list_of, mapping_of
from cotenant.results.record import NO_BLOCKS, NOT_ALONE, Blocks, DuetPart, Enclosed, Observed, Record
from cotenant.stats.describe import INTERVAL_OBSERVATIONS
from cotenant.stats.duet import DuetRatio
from cotenant.stats.tenants import Span, common_load, work_beside


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


def parts_of(result: LaunchResult, start: PlannedLaunch) -> Iterator[tuple[LaunchResult, PlannedLaunch]]:
    """Yield the launches for which a launch has records: itself, and one for each tenant that went on alone; or one for
    each meeting of its tenants."""
    if (went_on := result.went_on) is not None:
        gos = {tenant: go.together for tenant, go in result.gos.items()}
        yield replace(result, gos=gos, stop_ns=went_on.together_ns, span=(0, went_on.together_ns)), start
        for each in start.goes_on:
            if each.tenant in went_on.turns:
                yield _turn(result, each.tenant, went_on.turns[each.tenant]), start.of_turn(each)
    else:
        passed = () if result.conducted is None else result.conducted.passed
        for members in start.design.meetings(len(start.specs), passed):
            part = start.of_members(members)
            yield (_part(result, members, part.specs) if part.is_part else result), part


def _turn(result: LaunchResult, index: int, turn: TurnAlone) -> LaunchResult:
    """Return the part of a launch in which a tenant goes on alone."""
    tenant = next(tenant for tenant in result.tenants if tenant.spec.slice.tenant == index)
    spec = replace(tenant.spec, slice=tenant.spec.slice.alone)
    go = replace(result.gos[index], t0_ns=turn.start_ns, settle_ns=0)
    return replace(
        result,
        tenants=(replace(tenant, spec=spec, before=turn.before, after=tenant.after.at_end(turn.after)),),
        gos={index: replace(go, given=replace(go.given, skip=0))},
        meters={},
        work={},
        unconducted="",
        went_on=None,
        stop_ns=turn.end_ns,
        span=(turn.start_ns, turn.end_ns),
    )


def _part(result: LaunchResult, members: Sequence[int], specs: Sequence[TenantSpec]) -> LaunchResult:
    """Return the part of a launch in which the `members` meet, as these specs say."""
    tenants = tuple(_in_slot(result.tenants[at], spec) for at, spec in zip(members, specs, strict=True))
    conducted = result.conducted and replace(result.conducted, members=frozenset(members))
    meters = _meters_of(members, result.meters)
    return replace(result, tenants=tenants, conducted=conducted, meters=meters)


def _meters_of(members: Sequence[int], meters: Mapping[str, Any]) -> dict[str, Any]:
    """Return a launch's meters without those of tenants outside `members`, who are numbered by their places there."""
    slots = {str(tenant): str(slot) for slot, tenant in enumerate(members)}

    def own(of: Mapping[str, Any]) -> dict[str, Any]:
        seen = of.get("tenants", {})
        return {**of, "tenants": {slots[at]: seen[at] for at in slots if at in seen}} if seen else {**of}

    return own(meters) | ({"series": own(meters["series"])} if "series" in meters else {})


def _in_slot(tenant: TenantResult, spec: TenantSpec) -> TenantResult:
    """Return a tenant with the processors of the slot where it met others, which the kernel confirmed at each move."""
    if spec.slice == tenant.spec.slice:
        return tenant
    bound = tenant.read_back.processors is not None
    processors = format_list(spec.slice.processors) if bound else None
    return replace(tenant, spec=spec, read_back=replace(tenant.read_back, processors=processors))


def records_of(result: LaunchResult, start: PlannedLaunch, facts: SuiteFacts) -> list[Record]:
    """Return a record for each tenant of the launch."""
    gos = [result.gos.get(tenant.spec.slice.tenant) for tenant in result.tenants]
    statements = [_statement(tenant, go, result, start) for tenant, go in zip(result.tenants, gos, strict=True)]
    loads = [statement.load() for statement in statements if statement.observations]
    beside = _work_beside(result, statements, gos[0], start)
    # Tenants that share processors compete from t0 on, whichever gets the first turn. Tenants that settle step from t0
    # on in whole observations, so that the first one that counts may begin one observation later than a neighbour's.
    together = common_load(loads, _loaded_since(gos[0], start.sharers)) if loads else (0, 0)
    common = Common(
        started=result.started,
        ended=result.ended,
        t0_ns=gos[0].t0_ns if gos[0] else 0,
        first_start_ns=min((start_ns for start_ns, _ in loads), default=0),
        load=together,
        meters=result.meters
        | ({"nodes": nodes} if (nodes := other_nodes(result.tenants[0])) else {})
        | ({"beside": beside} if beside else {}),
        findings=(*facts.findings, *_findings(result, start)),
        conceal=facts.conceal,
    )
    comparable = all(tenant.outcome == "completed" for tenant in result.tenants)
    ratio = _duet_ratio(result, statements, start) if comparable else None
    return [
        build_record(
            _place(tenant, number, start, facts, statement, result.meters, ratio),
            statement,
            common,
            tenant.outcome,
            tenant.message,
            comparable,
        )
        for number, (tenant, statement) in enumerate(zip(result.tenants, statements, strict=True))
    ]


def _loaded_since(go: Go | None, sharers: int) -> int | None:
    return go.t0_ns if go is not None and (sharers > 1 or go.settle_ns) else None


def _work_beside(
    result: LaunchResult, statements: Sequence[Statement], go: Go | None, start: PlannedLaunch
) -> list[dict[str, Any]]:
    """Return the work of each tenant that completed, in its own observations and while others were observed."""
    spans = [[(row.start_ns, row.end_ns) for row in statement.kept_observations] for statement in statements]
    seen = []
    for place, (tenant, statement) in enumerate(zip(result.tenants, statements, strict=True)):
        if tenant.outcome != "completed" or go is None:
            continue
        beside = [of for other, of in enumerate(spans) if other != place and start.design.are_beside(place, other)]
        others = [*itertools.chain.from_iterable(beside)]
        begin_ns, end_ns = statement.load()
        claimed = min(begin_ns, _loaded_since(go, start.sharers) or begin_ns), end_ns
        slice_ = tenant.spec.slice
        work = work_beside(result.work.get(slice_.tenant, ()), spans[place], claimed, others)
        if work is not None and others:
            number = place if start.is_part else slice_.tenant
            seen.append({"tenant": number, "by": "processors"} | asdict(work))
    return seen


def _findings(result: LaunchResult, start: PlannedLaunch) -> Iterator[Finding]:
    """Yield the findings on a launch that all its tenants share."""
    for change in result.changes:
        # One tenant's gain may be its neighbours' loss.
        remedy = "Find what writes to cgroups there: root and the owner of a slice can, another user cannot."
        yield error(f"The slices did not stay as planned: {change}.", remedy, rule="slice_changed")
    if result.unconducted:
        yield Finding(
            NO_BLOCKS,
            "info",
            f"What users keep beside each other is not measured by blocks here: {result.unconducted}.",
            "Instead a user of each job and kind of slice goes on alone for a few seconds at a launch's end. A larger "
            "--budget, or a smaller batch, may have blocks; --baseline whole measures as long alone.",
        )
    for index, why in ({} if result.went_on is None else result.went_on.missed).items():
        yield Finding(
            NOT_ALONE,
            "info",
            f"What users like user {index} keep is not known: it was not observed alone, as {why}.",
            "Use --baseline whole, which launches each user alone.",
        )
    if start.is_part and result.conducted is not None and result.conducted.complete:
        yield from _unmet(result, result.conducted)


def _unmet(result: LaunchResult, conducted: Conducted) -> Iterator[Finding]:
    """Yield an error on users that have not met, although all blocks have passed."""
    if any(one.block.awake.keys() == conducted.members for one in conducted.passed):
        return
    rows = {tenant.spec.slice.tenant: tenant.ranks[0].observations for tenant in result.tenants}
    seen = Seen(conducted.passed, rows, {tenant: go.given.number for tenant, go in result.gos.items()})
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


def _placed(observations: Sequence[Observed], conducted: Conducted, tenant: int) -> list[Observed]:
    """Return the observations, each with its block."""
    spans = [(made.start_ns, made.end_ns) for made in observations]
    found = places(spans, conducted.passed, tenant, conducted.members)
    return [
        msgspec.structs.replace(made, block=place.block, kind=place.kind, kept=place.kept, round=place.round)
        for made, place in zip(observations, found, strict=True)
    ]


def _statement(tenant: TenantResult, go: Go | None, result: LaunchResult, start: PlannedLaunch) -> Statement:
    """Return a tenant's statement: rank 0's part and times, the items of all ranks, and each rank's observations.

    Rank 0 has reported those of ranks on other nodes.
    """
    conducted, ranks = result.conducted, tenant.ranks
    first = ranks.get(0)
    if first is None:
        return Statement()
    given = go.given if go else None
    amount = given or first.requested
    own = {number: rank.observations for number, rank in ranks.items()}
    observations, by_rank = observed_by_ranks(first.others | own)
    blocks, part = None, first.work | (first.record or {})
    if tenant.spec.foreign is not None:
        part |= {"arguments": tenant.spec.foreign.arguments, "version": ""}
    if conducted is not None:
        blocks = _blocks(conducted, tenant.spec.slice.tenant, start.design.has_parts)
        observations = _placed(observations, conducted, tenant.spec.slice.tenant)
        if start.design.has_parts:
            in_part = [made.block is not None for made in observations]
            observations, part = [*itertools.compress(observations, in_part)], _part_of(part, in_part)
    if result.span is not None and given is not None:
        in_part = [_lies_in(result.span, made) for made in observations[: given.repeat]]
        in_part += [False] * (len(observations) - len(in_part))
        observations, part = [*itertools.compress(observations, in_part)], _part_of(part, in_part)
        rows_of = {rank: rows[: given.repeat] for rank, rows in by_rank.items()}
        by_rank = {rank: [made for made in rows if _lies_in(result.span, made)] for rank, rows in rows_of.items()}
    skip = amount.skip if amount else 0
    if first.done and len(observations) - skip < INTERVAL_OBSERVATIONS:
        # The budget has ended it early.
        skip = min(skip, len(observations) // 3)
    return Statement(
        ready_ns=first.ready_ns,
        skip=skip,
        asked=first.requested,
        given=given,
        warm_up_ns=first.ready["warm_up_ns"] if first.ready else [],
        late_ns=max(rank.late_ns for rank in ranks.values()),
        observations=observations,
        rank_observations=by_rank,
        part=part,
        stop_ns=result.stop_ns,
        blocks=blocks,
        kept=kept_by_blocks(observations),
    )


def _lies_in(span: Span, made: Observed) -> bool:
    return span[0] <= made.start_ns and made.end_ns <= span[1]


def _part_of(part: dict[str, Any], own: Sequence[bool]) -> dict[str, Any]:
    """Return a tenant's part of the record, with the values of only those observations that `own` marks."""

    def shorter(of: Mapping[str, Any], name: str) -> dict[str, Any]:
        rows = list_of(of.get(name))
        return {name: [*itertools.compress(rows, own)]} if len(rows) == len(own) else {}

    observed = mapping_of(part.get("observed"))
    counted = {"repeat": sum(own)} if "repeat" in part else {}
    return part | counted | shorter(part, "epoch_loss") | {"observed": {**observed, **shorter(observed, "steps_ns")}}


def _place(
    tenant: TenantResult,
    number: int,
    start: PlannedLaunch,
    facts: SuiteFacts,
    statement: Statement,
    meters: dict[str, Any],
    ratio: DuetRatio | None,
) -> Placement:
    """Return the placement of the `number`-th tenant of a launch."""
    slice_, place, program = tenant.spec.slice, start.design.place(tenant.spec.slice.tenant), start.programs[number]
    if start.is_part:
        slice_ = replace(slice_, tenant=number)
    cells = [other.cell.label for other in start.programs]
    held = enclosed(tenant.spec, tenant.read_back, facts.backend, start.sharers)
    uncounted = tenant.after.uncounted()
    return Placement(
        suite=facts.suite,
        name=program.cell.label,
        mix=start.mix,
        neighbours=sorted(cells[:number] + cells[number + 1 :]) if start.mix else [],
        run_id=facts.uid,
        tenant=slice_.tenant,
        tenants=len(cells),
        sharers=start.sharers,
        share=shared_device(
            slice_,
            [spec.slice for spec in start.specs],
            statement.checked.observed,
            meters,
        ),
        group=program.cell.job.group,
        vcd=",".join(str(device.index) for device in slice_.accelerators) or str(slice_.tenant),
        hostname=facts.machine["hostname"],
        cpu_cores=len(slice_.processors),
        devices=len(slice_.accelerators),
        command=tenant.spec.foreign.words_of(slice_.tenant, facts.uid) if tenant.spec.foreign else tenant.spec.command,
        log=str(tenant.spec.log),
        machine=facts.machine,
        isolation=Enclosed(
            **held,
            counters=asdict(tenant.after.since(tenant.before)),
            uncounted=uncounted,
            enabled_by=enabled_by(facts.backend.name, [*held["unenforced"], *uncounted]),
            policies=facts.policies | ({"memory_class": program.size.memory_class} if program.size else {}),
        ),
        suite_started=facts.started,
        solo=start.solo,
        baseline=start.baseline,
        stands_for=[*start.stands_for],
        duet=None if place is None else DuetPart(place.side, place.slice, words_without(program.extra), ratio),
        run_words=facts.run_words,
    )


def _duet_ratio(result: LaunchResult, statements: Sequence[Statement], start: PlannedLaunch) -> DuetRatio | None:
    """Return the ratio of a launch's duet; None if it is no duet, or if a block has impossible observations."""
    sums = {number: block_sums(statement.observations) for number, statement in enumerate(statements)}
    possible = {number: of for number, of in sums.items() if of is not None}
    if result.conducted is None or len(possible) < len(sums):
        return None
    return start.design.ratio(possible, result.conducted.passed)
