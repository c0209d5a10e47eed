"""Launches in this process of tenants that take turns, and checks of their observations."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path

from cotenant.isolation.backend import Backend
from cotenant.isolation.runs import RunName
from cotenant.isolation.slice import Slice
from cotenant.launch import schedule
from cotenant.launch.conductor import Conducted
from cotenant.launch.events import Interruption
from cotenant.launch.launch import Launch
from cotenant.launch.limits import Limits
from cotenant.launch.outcome import LaunchResult, TenantResult
from cotenant.launch.pairing import Pair, Pairing
from cotenant.launch.tenant import DuetPlace
from cotenant.protocol.messages import RUN_VARIABLE, TENANT_VARIABLE
from cotenant.suite.foreign import Foreign
from tenants.fakes import specs
from tenants.suites import TENANTS

SUMS = (str(TENANTS / "sums.py"), "--number", "1", "--repeat", "9")


@dataclasses.dataclass(frozen=True)
class Turning:
    """Where such launches take place."""

    folder: Path
    backend: Backend
    interruption: Interruption

    def launch(
        self,
        *command: str,
        duet: tuple[DuetPlace, ...] = (),
        further: tuple[tuple[str, ...], ...] = (),
        pairs: tuple[Pair, ...] = (),
        limits: Limits | None = None,
        refusal: str = "",
        foreign: Foreign | None = None,
    ) -> LaunchResult:
        """Launch two tenants, which know their numbers, or those of a duet with `further` words, or of `pairs`; with a
        `refusal` of blocks both go on alone."""
        own = sorted(os.sched_getaffinity(0))
        slots = tuple(Slice(slot, (own[-slot],), (0,), 64 << 20, ()) for slot in (0, 1))
        planned = []
        for index, spec in enumerate(specs(self.folder, *(command or SUMS), tenants=3 if pairs else 2)):
            marks = {RUN_VARIABLE: str(RunName()), TENANT_VARIABLE: str(index)}
            spec = dataclasses.replace(spec, environment=spec.environment | marks, cell="sums", foreign=foreign)
            if duet:
                words = [*spec.command, *further[index]]
                spec = dataclasses.replace(spec, command=words, cell=f"sums.{index}", duet=duet[index])
            if pairs:
                spec = dataclasses.replace(spec, slice=dataclasses.replace(slots[index % 2], tenant=index))
            planned.append(spec)
        return Launch(
            planned,
            self.backend,
            self.interruption,
            limits or Limits(timeout_s=30),
            takes_turns=not refusal,
            pairing=Pairing(pairs, slots) if pairs else None,
            goers=(0, 1) if refusal else (),
            refusal=refusal,
        ).run()


def conducted(result: LaunchResult) -> Conducted:
    assert result.conducted is not None
    return result.conducted


def outcomes(result: LaunchResult) -> list[str]:
    return [tenant.outcome for tenant in result.tenants]


def kinds_kept(tenant: TenantResult, made: Conducted, pair: Pair | tuple[()] = ()) -> list[str]:
    """Return the kind of the block of each observation that is kept."""
    found = schedule.places(spans(tenant), made.passed, tenant.spec.slice.tenant, made.schedule, pair)
    return [place.kind for place in found if place.kept]


def spans(tenant: TenantResult) -> list[tuple[int, int]]:
    return [(row["start_ns"], row["end_ns"]) for row in tenant.ranks[0].observations]


def made_at_rest(tenant: TenantResult, made: Conducted) -> Iterator[tuple[int, int]]:
    """Yield its observations that end while it was frozen: only one across the border may."""
    for one in made.passed:
        if tenant.spec.slice.tenant not in one.block.awake:
            yield from (span for span in spans(tenant) if one.start_ns < span[0] and span[1] < one.end_ns)
