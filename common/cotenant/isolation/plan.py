"""The plan: the processors, nodes, memory and accelerators of each tenant. Pure: it reads no machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from cotenant.errors import CotenantError
from cotenant.finding import Finding
from cotenant.isolation.assignment import assign
from cotenant.isolation.cores import Cpus
from cotenant.isolation.device_modes import ShareMode, device_parts
from cotenant.isolation.device_shares import Devices, share_devices, wanted_nodes
from cotenant.isolation.memory_shares import Mems, equal_share, memory_nodes, reserve_of
from cotenant.isolation.plan_findings import partition_findings, plan_findings, quota_findings
from cotenant.isolation.sharing import consecutive, everything, share_cores, tenants_of_each
from cotenant.isolation.slice import Slice
from cotenant.machine.topology import Machine
from cotenant.procfs import shortened_list
from cotenant.text import gib, listed, many

Policy = Literal["cores", "contiguous"]


@dataclass(frozen=True, slots=True)
class Plan:
    """A slice for each tenant, with the unused resources, and findings for readers of the records."""

    slices: tuple[Slice, ...]
    unused_processors: tuple[int, ...]
    reserve_bytes: int
    findings: tuple[Finding, ...]

    @property
    def device_share_bytes(self) -> int | None:
        """The least device memory of any tenant if a device's tenants have equal parts; None without devices."""
        if shares := [slice_.device_share for slice_ in self.slices if slice_.device_share is not None]:
            return min(share.memory_bytes for share in shares)
        tenants_of = Counter(device for slice_ in self.slices for device in slice_.accelerators)
        return min((device.memory_bytes // tenants for device, tenants in tenants_of.items()), default=None)

    @property
    def whole_device(self) -> str:
        """The model of the devices if no two tenants share one and all are alike; else empty."""
        devices = [device for slice_ in self.slices for device in slice_.accelerators]
        models = {device.name for device in devices}
        return models.pop() if len(models) == 1 and len(set(devices)) == len(devices) else ""

    @property
    def parts(self) -> tuple[Cpus, ...]:
        """The tenants' processors; shared ones once."""
        return tuple({slice_.part: slice_.processors for slice_ in self.slices}.values())

    @property
    def sharers(self) -> int:
        """The number of tenants on the same processors, equal everywhere."""
        return self.slices[0].sharers

    def __str__(self) -> str:
        """Return, for one, `4 users: processors 0 | 1 (each shared by 2), 5.64 GiB each`."""
        memory = f"{gib(self.slices[0].memory_bytes)}{' each' if len(self.slices) > 1 else ''}"
        return f"{self.processors_words}, {memory}"

    @property
    def processors_words(self) -> str:
        """The users and their processors, without the memory: `2 users: processors 0 | 1`."""
        processors = listed(map(shortened_list, self.parts), most=16, between=" | ")
        shared = f" ({'each ' if len(self.parts) > 1 else ''}shared by {self.sharers})" if self.sharers > 1 else ""
        return f"{many(len(self.slices), 'user')}: processors {processors}{shared}"


def tenants_by_default(machine: Machine, users: int | None) -> int:
    """Return the number of tenants of a launch: as asked, else one per accelerator, else at most two."""
    return users if users is not None else len(machine.accelerators) or min(2, _processor_limit(machine))


def ranks_of_all(machine: Machine, made: Plan) -> int:
    """Return the number of ranks of a launch that owns the machine: one per accelerator, else per planned slice."""
    return len(machine.accelerators) or len(made.parts)


def plan(
    machine: Machine,
    tenants: int,
    *,
    slices: int | None = None,
    share: ShareMode | None = None,
    policy: Policy = "cores",
    mems: Mems = "local",
    reserve_bytes: int | None = None,
) -> Plan:
    """Return a plan of equal slices for `tenants`. Raises CotenantError if there can be none.

    With `slices`, processors and devices are divided into that many slices, each shared by equally many consecutive
    tenants; with `share`, each tenant has a part of one device.
    `cores` gives whole physical cores near each tenant's device, `contiguous` consecutive logical ids. With fewer
    processors than tenants, equally many tenants share each of several equal parts. Memory comes from the nodes of a
    slice's processors, with `mems="all"` from every node.
    `reserve_bytes` stays with the host, by default 3 % of the memory and at least 1 GiB.
    """
    if tenants < 1:
        raise CotenantError(f"{tenants} users cannot be planned.", "Use --users 1 or more.")
    limit = _processor_limit(machine)
    per_slice = 1 if slices is None else tenants_of_each(slices, tenants, limit)
    in_slices, idle = share_devices(machine.accelerators, tenants // per_slice)
    # Consecutive tenants share a slice.
    assignment = [cpus for cpus in _assignment(machine, limit, policy, in_slices) for _ in range(per_slice)]
    devices = [of_slice for of_slice in in_slices for _ in range(per_slice)]
    reserve = reserve_of(machine, reserve_bytes)
    nodes = memory_nodes(machine, assignment, mems)
    memory = equal_share(machine, nodes, reserve)
    sharers = tenants // len({cpus[0] for cpus in assignment})
    parts = [None] * tenants if share is None else device_parts(devices, share)
    made = tuple(
        Slice(i, assignment[i], nodes[i], memory, devices[i], tenants, sharers, parts[i]) for i in range(tenants)
    )
    findings = tuple(plan_findings(machine, made, limit, reserve, idle))
    return Plan(made, _unused(machine, made), reserve, findings)


def plan_whole(machine: Machine, reserve_bytes: int | None = None) -> Plan:
    """Return a plan of one slice with everything usable but the reserve, for a launch that owns the machine."""
    limit = _processor_limit(machine)
    processors = everything(machine.processors, limit)
    nodes = memory_nodes(machine, [processors], "all")
    reserve = reserve_of(machine, reserve_bytes)
    whole = Slice(0, processors, nodes[0], equal_share(machine, nodes, reserve), machine.accelerators)
    findings = (*quota_findings(machine, limit), *partition_findings(machine, [whole]))
    return Plan((whole,), _unused(machine, [whole]), reserve, findings)


def split_ranks(machine: Machine, whole: Slice, ranks: int) -> tuple[tuple[int, ...], ...]:
    """Return each rank's processors within `whole`: equally many, whole cores, rank i near device i, which it uses."""
    limit = len(whole.processors)
    if not 1 <= ranks <= limit:
        raise CotenantError(
            f"{ranks} ranks do not fit a slice of {limit} processors: each needs one of its own.",
            # A launch that owns the machine has one for each device, whatever --users says.
            f"Show the suite at most {many(limit, 'device')}, or leave the jobs of the group all out with --exclude.",
        )
    devices = [whole.accelerators[rank : rank + 1] for rank in range(ranks)]
    ids = set(whole.processors)
    processors = [processor for processor in machine.processors if processor.id in ids]
    return tuple(assign(processors, limit, wanted_nodes(processors, devices)))


def _processor_limit(machine: Machine) -> int:
    usable = len(machine.processors)
    quota = machine.quota_processors
    return usable if quota is None else max(1, min(usable, int(quota)))


def _assignment(machine: Machine, limit: int, policy: Policy, devices: Sequence[Devices]) -> list[Cpus]:
    """Return the processors of each tenant, given its devices."""
    wanted = wanted_nodes(machine.processors, devices)
    if policy == "contiguous":
        return consecutive(machine.processors, limit, wanted)
    deal = share_cores if len(devices) > limit else assign
    return deal(machine.processors, limit, wanted)


def _unused(machine: Machine, slices: Sequence[Slice]) -> tuple[int, ...]:
    parts = {slice_.part: slice_.processors for slice_ in slices}
    given = set(chain.from_iterable(parts.values()))
    return tuple(sorted(processor.id for processor in machine.processors if processor.id not in given))
