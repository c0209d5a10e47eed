"""The messages of a tenant, in the form that the record of a launch or of a part of it needs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from cotenant.launch.conductor import Conducted
from cotenant.launch.design.passed import places
from cotenant.launch.outcome import LaunchResult, TenantResult
from cotenant.launch.rank import Go, Rank, RankPhase
from cotenant.results.build import load_of, observed_by_ranks
from cotenant.results.decoded import list_of
from cotenant.results.record import Observed, rated
from cotenant.results.told import TenantPart, tenant_part
from cotenant.stats.budget import Amount
from cotenant.stats.describe import INTERVAL_OBSERVATIONS
from cotenant.stats.tenants import Span


@dataclass(frozen=True, slots=True)
class Told:
    """The messages of a tenant, with the observations and the values of its part that belong to this record."""

    go: Go | None
    first: Rank | None
    """Rank 0, whose part and times are the tenant's."""
    part: TenantPart
    observations: list[Observed]
    by_rank: dict[str, list[Observed]]
    late_ns: int
    load: Span
    """The start and the end of its load."""

    @property
    def asked(self) -> Amount | None:
        return self.first.ready.amount if self.first is not None and self.first.ready is not None else None

    @property
    def given(self) -> Amount | None:
        return None if self.go is None else self.go.given

    @property
    def skip(self) -> int:
        amount = self.given or self.asked
        skip = amount.skip if amount else 0
        if (
            self.first is not None
            and self.first.has_come_to(RankPhase.DONE)
            and len(self.observations) - skip < INTERVAL_OBSERVATIONS
        ):
            # The budget has ended it early.
            skip = min(skip, len(self.observations) // 3)
        return skip

    @property
    def rated(self) -> list[Observed]:
        return rated(self.observations, self.skip)


def placed(observations: Sequence[Observed], conducted: Conducted, tenant: int) -> list[Observed]:
    """Return the observations, each with its place."""
    spans = [(made.start_ns, made.end_ns) for made in observations]
    found = places(spans, conducted.passed, tenant, conducted.members)
    return [
        msgspec.structs.replace(made, block=place.block, kind=place.kind, kept=place.kept, round=place.round)
        for made, place in zip(observations, found, strict=True)
    ]


def told_of(tenant: TenantResult, result: LaunchResult, has_parts: bool) -> Told:
    """Return the messages of a tenant: rank 0's part and times, the items of all ranks, and each rank's observations.

    Rank 0 has reported the observations of ranks on other nodes.
    """
    go, conducted, ranks = result.gos.get(tenant.spec.slice.tenant), result.conducted, tenant.ranks
    first = ranks.get(0)
    if first is None:
        return Told(go, None, TenantPart(), [], {}, 0, (0, 0))
    observations, by_rank = observed_by_ranks(
        first.others | {number: rank.observations for number, rank in ranks.items()}
    )
    part = tenant_part(first.work | (first.record or {}))
    if tenant.spec.foreign is not None:
        part = msgspec.structs.replace(part, arguments=tenant.spec.foreign.arguments, version="")
    if conducted is not None:
        observations = placed(observations, conducted, tenant.spec.slice.tenant)
    in_part = None
    if conducted is not None and has_parts:
        in_part = [made.block is not None for made in observations]
    elif result.span is not None and go is not None:
        in_part = _in_span(observations, result.span, go)
        by_rank = {rank: [*itertools.compress(rows, _in_span(rows, result.span, go))] for rank, rows in by_rank.items()}
    if in_part is not None:
        observations, part = [*itertools.compress(observations, in_part)], _part_of(part, in_part)
    late_ns = max(rank.late_ns for rank in ranks.values())
    return Told(go, first, part, observations, by_rank, late_ns, load_of(observations, part, result.stop_ns))


def _in_span(rows: Sequence[Observed], span: Span, go: Go) -> list[bool]:
    """Return for each observation whether it lies in the span, and GO asked for it."""
    return [
        number < go.given.repeat and span[0] <= made.start_ns and made.end_ns <= span[1]
        for number, made in enumerate(rows)
    ]


def _part_of(part: TenantPart, marks: Sequence[bool]) -> TenantPart:
    """Return a tenant's part of the record, with the values of only those observations that `marks` selects."""

    def shorter(rows: list[Any]) -> list[Any]:
        return [*itertools.compress(rows, marks)] if len(rows) == len(marks) else rows

    observed = part.observed
    if "steps_ns" in observed:
        observed = observed | {"steps_ns": shorter(list_of(observed["steps_ns"]))}
    repeat = None if part.repeat is None else sum(marks)
    return msgspec.structs.replace(part, repeat=repeat, epoch_loss=shorter(part.epoch_loss), observed=observed)
