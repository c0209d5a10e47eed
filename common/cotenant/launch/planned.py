"""Planned launches: their users, each a program in a slice, and the design by which these run beside each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cotenant.finding import Finding
from cotenant.isolation.slice import Slice
from cotenant.launch.alone import GoesOn
from cotenant.launch.design.shared import Design
from cotenant.launch.tenant import TenantSpec
from cotenant.results.record import SOLO, Baseline, record_name
from cotenant.suite.cells import JobCell
from cotenant.suite.sizes import Size


@dataclass(frozen=True, slots=True)
class Program:
    """A tenant's program: a cell, its command, and its size from the table of batch sizes, if it asks for one.

    `variables` are the variables that the cell's texts may name, for each tenant.
    """

    cell: JobCell
    command: Path
    size: Size | None
    variables: tuple[dict[str, str], ...] = field(compare=False)
    extra: tuple[str, ...] = ()
    """Words after the cell's own; in a duet, the words of its side."""


@dataclass(frozen=True, slots=True)
class PlannedUser:
    """A user of a launch: its program, and the specification of its tenant."""

    program: Program
    spec: TenantSpec

    @property
    def cell(self) -> str:
        """The label of its cell."""
        return self.program.cell.label

    @property
    def slice(self) -> Slice:
        return self.spec.slice

    def within(self, slice_: Slice) -> PlannedUser:
        """Return the same user in another slice."""
        return replace(self, spec=replace(self.spec, slice=slice_))


@dataclass(frozen=True, slots=True)
class PlannedLaunch:
    """Users, and the design by which they run beside each other. All programs are the same, except in a `mix`.

    A launch for a `baseline` has one user, in its slice; `stands_for` names the tenants whose baseline it is.
    """

    label: str
    """The start of its files' names."""
    design: Design
    users: tuple[PlannedUser, ...]
    findings: tuple[Finding, ...]
    mix: str = ""
    timeout_s: float | None = None
    baseline: Baseline | None = None
    stands_for: tuple[int, ...] = ()
    goes_on: tuple[GoesOn, ...] = ()
    """The tenants that go on alone at its end, if it has no blocks."""
    is_part: bool = False
    """True if it is a meeting in a larger launch: its records number its tenants by their places, as if launched
    separately."""

    @property
    def programs(self) -> tuple[Program, ...]:
        return tuple(user.program for user in self.users)

    @property
    def specs(self) -> tuple[TenantSpec, ...]:
        return tuple(user.spec for user in self.users)

    @property
    def cell(self) -> JobCell:
        """The cell of all tenants; in a mix the first tenant's."""
        return self.users[0].program.cell

    @property
    def command(self) -> Path:
        """The command of all tenants; in a mix the first tenant's."""
        return self.users[0].program.command

    @property
    def commands(self) -> str:
        """The command in the job file; for a mix the commands of its cells."""
        return " + ".join(dict.fromkeys(user.program.cell.job.cmd for user in self.users))

    @property
    def different(self) -> tuple[Program, ...]:
        """Each program once."""
        return tuple(dict.fromkeys(self.programs))

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each record: its tenant's cell, with its mix or the mark of a tenant alone."""
        return tuple(record_name(user.cell, self.solo, met.mix) for met in self.met for user in met.users)

    @property
    def met(self) -> tuple[PlannedLaunch, ...]:
        """A launch for each of its meetings, as far as they are known beforehand."""
        return (self,) if self.is_part else tuple(map(self.of_members, self.design.meetings(len(self.users))))

    def of_members(self, members: Sequence[int]) -> PlannedLaunch:
        """Return a launch of the tenants of a meeting, as if launched separately, under a mix's name."""
        if len(members) == len(self.users) and not self.design.slots:
            return self
        users = [self.users[tenant] for tenant in members]
        name = self.design.name(self.label, [user.cell for user in users])
        # A tenant's memory stays on the nodes of its own slice, in every slot.
        users = [
            user.within(replace(slot, tenant=user.slice.tenant, nodes=user.slice.nodes))
            for user, slot in zip(users, self.design.slots or [user.slice for user in users], strict=True)
        ]
        return replace(self, label=name, mix=name, users=tuple(users), is_part=True)

    def of_turn(self, goes_on: GoesOn) -> PlannedLaunch:
        """Return a launch of a tenant alone, as if launched separately: its turn at the end of this launch."""
        user = self.users[goes_on.tenant]
        return replace(
            self,
            label=user.cell + SOLO,
            users=(user.within(user.slice.alone),),
            mix="",
            baseline="quick",
            stands_for=goes_on.stands_for,
            goes_on=(),
        )

    @property
    def solo(self) -> bool:
        """True if one tenant is launched alone."""
        return self.baseline is not None

    @property
    def follows(self) -> bool | None:
        """True if another node keeps the record of a launch over several nodes; None on a single host."""
        return self.users[0].spec.follows

    @property
    def key(self) -> str:
        """The key of the launch in its suite: its label, and for tenants alone the tenant's number, too."""
        return f"{self.label} T{self.users[0].slice.tenant}" if self.solo else self.label

    @property
    def sharers(self) -> int:
        """The most tenants with the same processors that run at once: 1 if each has its own."""
        return max(Counter(user.slice.processors for user in self.met[0].users).values())
