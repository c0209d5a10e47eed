"""What the picture of a plan shows, as plain values: also the document of `cotenant plan --json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cotenant.finding import Finding


@dataclass(frozen=True, slots=True)
class CoreShape:
    """A physical core: its usable processors and whose each is, None for nobody's."""

    processors: tuple[int, ...]
    tenants: tuple[int | None, ...]
    kind: str
    """What sort of core, where the machine has several; else empty."""


@dataclass(frozen=True, slots=True)
class DeviceShape:
    """An accelerator, or a partition of one, and whose it is: nobody's, one tenant's, or shared."""

    label: str
    """Its number on this host, `0`; of a partition also its number within, `0.3`."""
    vendor: str
    name: str
    uuid: str
    pci: str
    node: int
    memory_bytes: int
    tenants: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BoxShape:
    """The part of a socket that lies on one NUMA node. A node of several sockets has its devices in the first."""

    package: int | None
    """None for a node without usable processors."""
    node: int
    memory_bytes: int
    cores: tuple[CoreShape, ...]
    devices: tuple[DeviceShape, ...]


@dataclass(frozen=True, slots=True)
class TenantShape:
    """A tenant's slice. Lists are in the kernel's format (`0-15,128-143`)."""

    tenant: int
    processors: str
    processor_total: int
    core_total: int
    nodes: str
    memory_bytes: int
    devices: tuple[str, ...]
    environment: Mapping[str, str]
    """The variables that show it its own devices only."""


@dataclass(frozen=True, slots=True)
class PlanShape:
    """A machine and how it is shared."""

    version: int
    """Of this document; it grows when a field changes its meaning or goes."""
    hostname: str
    model_name: str
    processors_online: int
    processors_usable: int
    quota_processors: float | None
    processors_unused: str
    memory_bytes: int
    reserve_bytes: int
    memory_unused_bytes: int
    policy: str
    mems: str
    backend: str
    unenforced: tuple[str, ...]
    """What the backend does not hold tenants to."""
    tenants: tuple[TenantShape, ...]
    boxes: tuple[BoxShape, ...]
    homeless_devices: tuple[DeviceShape, ...]
    """Those of an unknown node, where there are several nodes."""
    findings: tuple[Finding, ...]
