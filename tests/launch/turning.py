"""Launches in this process of tenants that take turns, and checks of their observations."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path

from cotenant.isolation.backend import Backend
from cotenant.isolation.runs import RunName
from cotenant.isolation.slice import Slice
from cotenant.launch.conductor import Conducted
from cotenant.launch.design import passed
from cotenant.launch.design.designs import InBlocks, Pair
from cotenant.launch.design.shared import Design
from cotenant.launch.events import Interruption
from cotenant.launch.launch import Launch
from cotenant.launch.limits import Limits
from cotenant.launch.outcome import LaunchResult, TenantResult
from cotenant.protocol.messages import RUN_VARIABLE, TENANT_VARIABLE
from cotenant.suite.foreign import Foreign
from patience import HANG_S
from tenants.fakes import specs
from tenants.suites import TENANTS

BY_BLOCKS = InBlocks()
SUMS = (str(TENANTS / "sums.py"), "--sleep", "0.004", "--sums", "50", "--number", "1", "--repeat", "9")
"""Steps of some 5 ms, of which most is sleep: their length is what counts, and it costs little."""


@dataclasses.dataclass(frozen=True)
class Turning:
    """Where such launches take place."""

    folder: Path
    backend: Backend
    interruption: Interruption

    def launch(
        self,
        *command: str,
        design: Design = BY_BLOCKS,
        tenants: int = 2,
        further: tuple[tuple[str, ...], ...] = (),
        limits: Limits | None = None,
        foreign: Foreign | None = None,
    ) -> LaunchResult:
        """Launch tenants, which know their numbers, each with its `further` words; they live in the design's slots, if
        it has any. Without blocks all go on alone."""
        planned = []
        for index, spec in enumerate(specs(self.folder, *(command or SUMS), tenants=tenants)):
            marks = {RUN_VARIABLE: str(RunName()), TENANT_VARIABLE: str(index)}
            spec = dataclasses.replace(spec, environment=spec.environment | marks, cell="sums", foreign=foreign)
            if further:
                spec = dataclasses.replace(spec, command=[*spec.command, *further[index]], cell=f"sums.{index}")
            if design.slots:
                slot = design.slots[index % len(design.slots)]
                spec = dataclasses.replace(spec, slice=dataclasses.replace(slot, tenant=index))
            planned.append(spec)
        return Launch(
            planned,
            self.backend,
            self.interruption,
            limits or Limits(timeout_s=HANG_S),
            design=design,
            goers=() if design.takes_turns else range(tenants),
        ).run()


def slots() -> tuple[Slice, ...]:
    """Return the two slots in which pairs meet: the first and the last processor."""
    own = sorted(os.sched_getaffinity(0))
    return tuple(Slice(slot, (own[-slot],), (0,), 64 << 20, ()) for slot in (0, 1))


def conducted(result: LaunchResult) -> Conducted:
    assert result.conducted is not None
    return result.conducted


def outcomes(result: LaunchResult) -> list[str]:
    return [tenant.outcome for tenant in result.tenants]


def kinds_kept(tenant: TenantResult, made: Conducted, pair: Pair | None = None) -> list[str]:
    """Return the kind of the block of each observation that is kept."""
    found = passed.places(spans(tenant), made.passed, tenant.spec.slice.tenant, pair or made.members)
    return [place.kind for place in found if place.kept]


def spans(tenant: TenantResult) -> list[tuple[int, int]]:
    return [(row.start_ns, row.end_ns) for row in tenant.ranks[0].observations]


def made_at_rest(tenant: TenantResult, made: Conducted) -> Iterator[tuple[int, int]]:
    """Yield its observations that end while it was frozen: only one across the border may."""
    for one in made.passed:
        if tenant.spec.slice.tenant not in one.block.awake:
            yield from (span for span in spans(tenant) if one.start_ns < span[0] and span[1] < one.end_ns)
