"""The parts of a launch that have records of their own: meetings of some of its tenants, and turns alone at its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cotenant.launch.alone import TurnAlone
from cotenant.launch.outcome import LaunchResult, TenantResult
from cotenant.launch.planned import PlannedLaunch
from cotenant.launch.tenant import TenantSpec
from cotenant.procfs import format_list


def parts_of(result: LaunchResult, launch: PlannedLaunch) -> Iterator[tuple[LaunchResult, PlannedLaunch]]:
    """Yield each launch for which a launch has records: itself, and one for each tenant that went on alone; or one for
    each meeting of its tenants."""
    if (went_on := result.went_on) is not None:
        gos = {tenant: go.together for tenant, go in result.gos.items()}
        yield replace(result, gos=gos, stop_ns=went_on.together_ns, span=(0, went_on.together_ns)), launch
        for goer in launch.goes_on:
            if goer.tenant in went_on.turns:
                yield _turn(result, goer.tenant, went_on.turns[goer.tenant]), launch.of_turn(goer)
    else:
        passed = () if result.conducted is None else result.conducted.passed
        for members in launch.design.meetings(len(launch.specs), passed):
            part = launch.of_members(members)
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
    """Return a launch's meters with only `members`, which are numbered by their places there."""
    slots = {str(tenant): str(slot) for slot, tenant in enumerate(members)}

    def own(section: Mapping[str, Any]) -> dict[str, Any]:
        seen = section.get("tenants", {})
        return {**section, "tenants": {slots[at]: seen[at] for at in slots if at in seen}} if seen else {**section}

    return own(meters) | ({"series": own(meters["series"])} if "series" in meters else {})


def _in_slot(tenant: TenantResult, spec: TenantSpec) -> TenantResult:
    """Return a tenant with the processors of the slot in which it met others, as the kernel confirmed at each move."""
    if spec.slice == tenant.spec.slice:
        return tenant
    bound = tenant.read_back.processors is not None
    processors = format_list(spec.slice.processors) if bound else None
    return replace(tenant, spec=spec, read_back=replace(tenant.read_back, processors=processors))
